// SPDX-License-Identifier: Apache-2.0
//
// graph/plan.h: how a step is launched, as data.
//
// A plan is an ordered list of launches over a whole step. The reference plan has one launch for
// each node that does something. A rewrite changes a plan: it fuses neighbouring nodes into one
// launch, in every layer where its pattern stands, expands one node into stages, shifts the first
// part of a node into the launch before it, or moves a node to another lane. What a rewrite may not
// change (roundings, order, who reads what) it says itself; verify_plan and the backends hold it to
// that.
//
// Three things order two launches, and nothing else does: their place in one lane, an event that
// the one records and the other waits for, and the wait of a programmatic dependent launch.
#pragma once

#include "graph/order.h"
#include "graph/step.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lr::graph {

// Programmatic dependent launch (PDL): a kernel that may begin while the launch before it in its
// lane still runs.
enum class Pdl : std::uint8_t {
    kNone,  // begins when that launch has ended
    kWaits, // waits for that end before its first read of anything but weights, and before its
            // first write
    kNever, // waits later, or never: nothing of its lane is ordered before it
};

struct Launch {
    std::string name;                // "L17.8+9", "L17.21 gather"
    std::vector<std::int32_t> nodes; // of the step, ascending; several: fused
    std::int32_t stage = -1;         // >= 0: this stage of its last node, and the others whole
    Lane lane = Lane::kMain;
    Pdl pdl = Pdl::kNone;
    std::int32_t event = -1;         // of the plan, recorded when this launch has ended; -1: none
    std::vector<std::int32_t> waits; // events of launches of other lanes, recorded earlier in the
                                     // list; it begins when they have happened
    std::vector<TensorId> swallowed; // written and read in this launch only, so never stored
    bool grid_sync = false;          // its blocks wait for one another,
    bool cooperative = false;        // so all of them must be resident
};

struct Plan {
    std::vector<std::string> rewrites; // applied, in order; empty: the reference
    std::vector<Launch> launches;      // as enqueued: a topological order
    std::int32_t events = 0;           // numbered 0..events-1, each recorded once a step
};

enum class RewriteKind : std::uint8_t {
    kFuse,   // the nodes become one launch
    kExpand, // the node becomes its stages, a launch each
    kShift,  // two launches stay: the first node with stage 0 of the second, and stage 1 of that
    kMove,   // the node's launch goes to another lane, as early as its inputs allow
};

// One place a rewrite applies to. Numbers are those of the charts, so behind the second norm only
// mixtures have them; numbers of the next layer are written as number + kNextLayer.
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
    std::vector<std::string_view> stages; // kExpand, kShift: what the node becomes
    std::string_view vanishes;            // launches, bytes and tensors that go
    std::string_view keeps;               // roundings and results that must stay
    std::string_view constraint;          // what stands in the way
    std::string_view verdict;             // of the traced graph's analysis: whether to try it
    bool grid_sync = false;               // blocks of the fused launch wait for one another
    Lane lane = Lane::kMain;              // kMove: where to
    // kShift: bytes that stage 0 writes for stage 1 beyond what the plain nodes hand on. Nodes of
    // the step as one match of the pattern.
    std::int64_t (*handed_bytes)(const Step& step,
                                 const std::vector<std::int32_t>& nodes) = nullptr;
};

const std::vector<Rewrite>& all_rewrites();
// kInvalidArgument, with the list of names.
Result<const Rewrite*> find_rewrite(std::string_view name);
// Every place of the step where the whole pattern stands: nodes, ascending. Two numbers that are
// one node there (Node::also) stand once.
std::vector<std::vector<std::int32_t>> find_matches(const Step& step, const Rewrite& rewrite);

// One launch a node, aliases left out; an event only where lanes and other events leave two
// launches that share data unordered.
Plan reference_plan(const Step& step);

// The plan with this rewrite applied wherever its pattern stands whole; events and swallowed
// tensors are found anew and every launch is Pdl::kNone. An error when the pattern stands nowhere,
// overlaps an earlier rewrite, or a fusion would need a result of its own output.
Result<Plan> apply_rewrite(const Step& step, const Plan& plan, std::string_view name);

// The plan with Pdl::kWaits wherever a launch may have it: it follows another in its lane, with no
// event to wait for between the two.
Plan with_pdl(Plan plan);

// What a plan orders, by lanes, events and PDL waits.
HappensBefore plan_order(const Plan& plan);

} // namespace lr::graph
