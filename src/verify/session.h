// SPDX-License-Identifier: Apache-2.0
//
// verify/session.h: the steps that are verified: prompts in two prefills each (the second continues
// from states), then decode steps; with a padding row, an unused sequence and an unused slot in
// each, so that what dead rows do shows.
#pragma once

#include "engine/batch.h"
#include "graph/step.h"

#include <string>
#include <vector>

namespace lr::verify {

struct Request {
    std::vector<std::int32_t> prompt; // at least 2 tokens
    engine::Sampling sampling = {};
    engine::LogprobWish logprobs = {};
};

struct Workload {
    std::vector<Request> requests;
    std::int64_t decode_steps = 2;
    bool all_logits = false; // of every row of a prompt, not of the last alone
};

// What one step feeds, and where its sequences stand.
struct StepWork {
    std::string name; // "prefill 1", "decode 2"
    graph::StepShape shape;
    std::vector<engine::Piece> pieces;
    std::vector<std::int64_t> positions;
};

class Session {
  public:
    explicit Session(const Workload& workload);

    std::int64_t steps() const { return 2 + workload_.decode_steps; }
    // The shape of a step; of all steps the largest states.
    graph::StepShape shape(std::int64_t step) const;
    // Step number `step`. Decode steps take the tokens that the one before drew.
    StepWork work(std::int64_t step) const;
    // Fills a block laid out for the step's shape; sequence s has slot s and pages of its own.
    std::vector<engine::LogitRange> fill(const graph::Step& step, const StepWork& work,
                                         std::byte* block) const;
    // The tokens that a step's rows drew, one a request.
    void drew(std::vector<std::int32_t> tokens) { last_ = std::move(tokens); }

  private:
    std::int64_t first_half(std::size_t request) const;
    std::int64_t pages_each() const { return (context_ + ops::kKvPage - 1) / ops::kKvPage; }

    const Workload& workload_;
    std::int64_t context_ = 0;
    std::vector<std::int32_t> last_;
};

} // namespace lr::verify
