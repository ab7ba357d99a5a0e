// SPDX-License-Identifier: Apache-2.0
//
// graph/plan_facts.h: what verify_plan has found out about a plan, for its parts.
#pragma once

#include "graph/memory_plan.h"
#include "graph/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace lr::graph {

struct PlanFacts {
    PlanFacts(const Step& step, const Plan& plan)
        : step(step), plan(plan), launches(step.nodes.size()) {}

    const Launch& launch(std::int32_t id) const {
        return plan.launches[static_cast<std::size_t>(id)];
    }
    // True when `a` has surely ended before `b` begins.
    bool before(std::int32_t a, std::int32_t b) const { return order->before(a, b); }
    // For messages: what stands where `a` before `b` was expected.
    const char* relation(std::int32_t a, std::int32_t b) const {
        return before(b, a) ? "the opposite order" : "no order";
    }
    std::string names(const std::vector<std::int32_t>& ids) const;
    // The launch that swallows each tensor, -1 for none.
    std::vector<std::int32_t> swallower() const;

    const Step& step;
    const Plan& plan;
    std::vector<std::vector<std::int32_t>> launches; // of each node
    std::optional<HappensBefore> order;
};

// The arena against a plan whose order is proved (graph/verify_plan.h: lifetimes).
Status verify_memory(const PlanFacts& facts, const MemoryPlan& memory);

} // namespace lr::graph
