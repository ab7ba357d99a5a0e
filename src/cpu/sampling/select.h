// SPDX-License-Identifier: Apache-2.0
//
// cpu/sampling/select.h: top-k and top-p of ops/sampling/sample.h without sorting.
//
// A candidate is an id with its place in rank and its weight. Lists of them are in id order.
#pragma once

#include <cstdint>
#include <span>

namespace lr::cpu {

struct Candidate {
    std::uint64_t key;    // grows with z; of equal z the lower id has the larger key
    std::uint64_t weight; // numerics::softmax_weight
};

Candidate make_candidate(float z, std::int64_t id, std::uint64_t weight);
std::int64_t candidate_id(const Candidate& candidate);

// Removes what ranks behind the first k (k >= 1) and returns the rest. `scratch` has room for as
// many candidates.
std::span<Candidate> keep_top_k(std::span<Candidate> candidates, std::int64_t k,
                                Candidate* scratch);

// Removes what top-p removes: a candidate stays when the weights before it in rank add up to less
// than `limit`, and the first always. All weights add up to max(1, limit) at least.
std::span<Candidate> keep_top_p(std::span<Candidate> candidates, std::uint64_t limit,
                                Candidate* scratch);

} // namespace lr::cpu
