// SPDX-License-Identifier: Apache-2.0
//
// graph/memory_plan.h: where each activation lives in the step's arena.
//
// Two tensors may share bytes when every launch that touches the one has surely ended before the
// first that touches the other begins, by happens-before (plan_order) and not by list order.
#pragma once

#include "graph/plan.h"

#include <vector>

namespace lr::graph {

inline constexpr std::int64_t kArenaAlign = 256; // bytes

struct MemoryPlan {
    std::vector<std::int64_t> offset; // per tensor of the step; -1: not in the arena
    std::int64_t arena_bytes = 0;
    std::int64_t unshared_bytes = 0; // what it would be without sharing
};

// Activations and outputs are placed, but not what a launch swallows; inputs, weights and states
// are the engine's. Outputs never share, since the host reads them after the step.
MemoryPlan plan_memory(const Step& step, const Plan& plan);

} // namespace lr::graph
