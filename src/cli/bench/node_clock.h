// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/node_clock.h: how long each node of a step ran, seen from the engine's calls after
// each.
#pragma once

#include "engine/observer.h"

#include <vector>

namespace lr::cli {

// Seconds of each node by its index in Step::nodes; 0 for one that is not launched.
using NodeSeconds = std::vector<double>;

class NodeClock final : public engine::NodeObserver {
  public:
    Status after(const engine::Launched& launched) override;

    // Call these while no step runs: when all that were submitted have been waited for.
    void clear();
    // The steps since clear(), in their order. Of a step's first node only its end is seen: its
    // time is what is left of `step_seconds`, the steps' run times, and so holds their beginning.
    std::vector<NodeSeconds> take(const std::vector<double>& step_seconds);
    // Experts with rows of their own, on average of all routings since clear(); 0: there were none.
    double live_experts() const;

  private:
    struct StepLaps {
        NodeSeconds seconds;
        std::size_t first = 0; // node
    };
    void count_live(const engine::Launched& launched);

    std::vector<StepLaps> steps_;
    double last_ = 0;      // end of the node before
    std::size_t next_ = 0; // nodes below have run in this step
    std::int64_t routings_ = 0, live_ = 0;
};

} // namespace lr::cli
