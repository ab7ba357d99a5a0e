// SPDX-License-Identifier: Apache-2.0
//
// trace/step_recorder.h: the recorder behind an engine's steps on the CPU.
#pragma once

#include "engine/observer.h"
#include "trace/recorder.h"

#include <array>
#include <mutex>

namespace lr::trace {

// Records every node of every rank. A rank runs its nodes one after the other, whatever lanes the
// graph gives them, so a rank is a lane: "cpu", with several ranks "rank 0", "rank 1".
class StepRecorder final : public engine::NodeObserver {
  public:
    StepRecorder(std::size_t events, std::int32_t ranks);

    Status after(const engine::Launched& launched) override;
    bool touches_memory() const override { return false; }

    // While no step runs: forgets what was recorded; steps are numbered from 0 again.
    void clear();
    // While no step runs. `program` describes the nodes of a step that ran (describe_nodes).
    std::vector<Row> rows(const std::function<Program(const graph::Step&)>& program) const;
    std::size_t dropped() const { return recorder_.dropped(); }

  private:
    // Where a rank stands: a node that is not behind the last begins a step.
    struct Rank {
        std::int32_t step = -1, next = 0;
        const graph::Step* of = nullptr;
        std::int32_t program = -1;
    };
    std::int32_t program_of(const graph::Step& step);

    Recorder recorder_;
    std::array<Rank, kMaxRanks> ranks_;
    std::mutex mutex_;                      // guards steps_
    std::vector<const graph::Step*> steps_; // by program
    std::vector<std::string> lanes_;
};

} // namespace lr::trace
