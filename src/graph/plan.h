// SPDX-License-Identifier: Apache-2.0
//
// graph/plan.h: how a step is launched, as data.
//
// A plan is an ordered list of launches over a whole step. The reference plan has one launch for
// each node that does something. A rewrite changes a plan: it fuses neighbouring nodes into one
// launch, in every layer where its pattern stands, or expands one node into stages. What a rewrite
// may not change (roundings, order, who reads what) it says itself; verify and the backends hold it
// to that.
#pragma once

#include "graph/order.h"
#include "graph/step.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lr::graph {

struct Launch {
    std::string name;                // "L17.8+9", "L17.21 gather"
    std::vector<std::int32_t> nodes; // of the step, ascending; several: fused
    std::int32_t stage = -1;         // >= 0: this stage of one expanded node
    Lane lane = Lane::kMain;
};

struct Plan {
    std::vector<std::string> rewrites; // applied, in order; empty: the reference
    std::vector<Launch> launches;      // a topological order
};

enum class RewriteKind : std::uint8_t { kFuse, kExpand };

// One place a rewrite applies to. Numbers of the next layer are written as number + kNextLayer.
inline constexpr std::int32_t kNextLayer = 1000;
struct Pattern {
    Phase phase;
    model::LayerKind layer;
    std::vector<std::int32_t> numbers;
    // Set where the pattern reaches into the next layer: the kind that layer must have.
    std::optional<model::LayerKind> next = {};
};

struct Rewrite {
    std::string_view name; // "8+9", "expand-routed-gate-up"
    RewriteKind kind;
    std::vector<Pattern> patterns;
    std::vector<std::string_view> stages; // kExpand: what the node becomes
    std::string_view vanishes;            // launches, bytes and tensors that go
    std::string_view keeps;               // roundings and results that must stay
    std::string_view constraint;          // what stands in the way
};

const std::vector<Rewrite>& all_rewrites();

// One launch a node, aliases left out.
Plan reference_plan(const Step& step);

// The plan with this rewrite applied wherever its pattern stands whole. An error when it stands
// nowhere, overlaps an earlier rewrite, or a fusion would need a result of its own output.
Result<Plan> apply_rewrite(const Step& step, const Plan& plan, std::string_view name);

// Order among the launches of a plan: lanes and data.
HappensBefore plan_order(const Step& step, const Plan& plan);

} // namespace lr::graph
