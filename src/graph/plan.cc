// SPDX-License-Identifier: Apache-2.0
#include "graph/plan.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <set>

namespace lr::graph {
namespace {

// Launch of each node, -1 for an alias; a node with several stages maps to all of them.
std::vector<std::vector<std::int32_t>> launches_of_nodes(const Step& step, const Plan& plan) {
    std::vector<std::vector<std::int32_t>> launches(step.nodes.size());
    for (std::size_t i = 0; i < plan.launches.size(); ++i)
        for (std::int32_t node : plan.launches[i].nodes)
            launches[static_cast<std::size_t>(node)].push_back(static_cast<std::int32_t>(i));
    return launches;
}

// Edges between nodes that launch, with aliases short-circuited.
std::vector<HappensBefore::Pair> live_edges(const Step& step) {
    std::vector<std::vector<std::int32_t>> producers(step.nodes.size());
    for (const Edge& edge : step.edges)
        producers[static_cast<std::size_t>(edge.to)].push_back(edge.from);
    std::vector<HappensBefore::Pair> pairs;
    for (std::size_t n = 0; n < step.nodes.size(); ++n) {
        if (step.nodes[n].alias)
            continue;
        std::vector<std::int32_t> todo = producers[n];
        while (!todo.empty()) {
            const std::int32_t from = todo.back();
            todo.pop_back();
            if (!step.nodes[static_cast<std::size_t>(from)].alias) {
                pairs.emplace_back(from, static_cast<std::int32_t>(n));
                continue;
            }
            const auto& above = producers[static_cast<std::size_t>(from)];
            todo.insert(todo.end(), above.begin(), above.end());
        }
    }
    return pairs;
}

std::set<HappensBefore::Pair> launch_edges(const Step& step, const Plan& plan) {
    const auto launches = launches_of_nodes(step, plan);
    std::set<HappensBefore::Pair> edges;
    for (const auto& [from, to] : live_edges(step))
        for (std::int32_t a : launches[static_cast<std::size_t>(from)])
            for (std::int32_t b : launches[static_cast<std::size_t>(to)])
                if (a != b)
                    edges.emplace(a, b);
    for (const auto& stages : launches)
        for (std::size_t i = 1; i < stages.size(); ++i)
            edges.emplace(stages[i - 1], stages[i]);
    return edges;
}

// Where a launch stands in its lane, and the position in each lane up to which everything has ended
// when it begins.
struct Clock {
    std::int32_t position = 0;
    std::array<std::int32_t, kLanes> ended;
};

void wait_for(Plan& plan, std::vector<Clock>& clocks, std::size_t launch, std::int32_t producer) {
    Launch& from = plan.launches[static_cast<std::size_t>(producer)];
    if (from.event < 0)
        from.event = plan.events++;
    plan.launches[launch].waits.push_back(from.event);
    const Clock& seen = clocks[static_cast<std::size_t>(producer)];
    Clock& clock = clocks[launch];
    for (std::size_t l = 0; l < kLanes; ++l)
        clock.ended[l] = std::max(clock.ended[l], seen.ended[l]);
    auto& own = clock.ended[static_cast<std::size_t>(from.lane)];
    own = std::max(own, seen.position);
}

// Events for a plan in topological order whose lanes run strictly in order: each launch waits, in
// every other lane, for the last launch that it needs and has no order after yet.
void add_events(const Step& step, Plan& plan) {
    plan.events = 0;
    for (Launch& launch : plan.launches) {
        launch.event = -1;
        launch.waits.clear();
        launch.pdl = Pdl::kNone;
    }
    std::vector<std::vector<std::int32_t>> producers(plan.launches.size());
    for (const auto& [from, to] : launch_edges(step, plan))
        producers[static_cast<std::size_t>(to)].push_back(from);
    std::vector<Clock> clocks(plan.launches.size());
    std::array<std::int32_t, kLanes> last;
    last.fill(-1);
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        const auto lane = static_cast<std::size_t>(plan.launches[i].lane);
        Clock& clock = clocks[i];
        clock.ended.fill(-1);
        if (last[lane] >= 0) {
            clock = clocks[static_cast<std::size_t>(last[lane])];
            clock.ended[lane] = clock.position++;
        }
        last[lane] = static_cast<std::int32_t>(i);
        // Descending: the later producer of a lane makes waiting for an earlier one needless.
        std::sort(producers[i].rbegin(), producers[i].rend());
        for (std::int32_t from : producers[i]) {
            const auto other =
                static_cast<std::size_t>(plan.launches[static_cast<std::size_t>(from)].lane);
            if (clocks[static_cast<std::size_t>(from)].position > clock.ended[other])
                wait_for(plan, clocks, i, from);
        }
    }
}

// A fusion need not store what nobody else reads.
void find_swallowed(const Step& step, Plan& plan) {
    const auto launches = launches_of_nodes(step, plan);
    constexpr std::int32_t kMany = -2;
    struct Life {
        std::int32_t launch = -1; // the only one that touches it
        bool written = false, read = false;
    };
    std::vector<Life> lives(step.tensors.size());
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        for (std::int32_t launch : launches[n])
            for (const Use& use : step.nodes[n].uses) {
                Life& life = lives[static_cast<std::size_t>(use.tensor)];
                life.launch = life.launch == -1 || life.launch == launch ? launch : kMany;
                (use.access == Access::kRead ? life.read : life.written) = true;
            }
    for (Launch& launch : plan.launches)
        launch.swallowed.clear();
    for (std::size_t t = 0; t < lives.size(); ++t)
        if (step.tensors[t].role == Role::kActivation && lives[t].launch >= 0 && lives[t].read &&
            lives[t].written)
            plan.launches[static_cast<std::size_t>(lives[t].launch)].swallowed.push_back(
                static_cast<TensorId>(t));
}

// Launches in an order that respects their data, as near to the list's own as possible; an error
// when a fused launch would have to wait for itself.
Result<Plan> sorted(const Step& step, Plan plan) {
    const auto edges = launch_edges(step, plan);
    std::vector<std::int32_t> waiting(plan.launches.size(), 0);
    std::vector<std::vector<std::int32_t>> next(plan.launches.size());
    for (const auto& [a, b] : edges) {
        ++waiting[static_cast<std::size_t>(b)];
        next[static_cast<std::size_t>(a)].push_back(b);
    }
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < waiting.size(); ++i)
        if (waiting[i] == 0)
            ready.push(static_cast<std::int32_t>(i));
    Plan result{.rewrites = plan.rewrites, .launches = {}, .events = 0};
    while (!ready.empty()) {
        const auto i = static_cast<std::size_t>(ready.top());
        ready.pop();
        result.launches.push_back(plan.launches[i]);
        for (std::int32_t b : next[i])
            if (--waiting[static_cast<std::size_t>(b)] == 0)
                ready.push(b);
    }
    if (result.launches.size() == plan.launches.size())
        return result;
    for (std::size_t i = 0; i < waiting.size(); ++i)
        if (waiting[i] > 0 && plan.launches[i].nodes.size() > 1)
            return fail(Code::kInvalidArgument,
                        "rewrite {}: launch {} would wait for its own output", plan.rewrites.back(),
                        plan.launches[i].name);
    return fail(Code::kInvalidArgument, "rewrite {}: the launches cannot be ordered",
                plan.rewrites.back());
}

struct NodeKey {
    std::int32_t layer, number;
    friend auto operator<=>(const NodeKey&, const NodeKey&) = default;
};

std::map<NodeKey, std::int32_t> nodes_by_number(const Step& step) {
    std::map<NodeKey, std::int32_t> found;
    for (std::size_t n = 0; n < step.nodes.size(); ++n) {
        const Node& node = step.nodes[n];
        if (node.layer < 0 || node.alias)
            continue;
        found[{node.layer, node.number}] = static_cast<std::int32_t>(n);
        for (std::int32_t other : node.also)
            found[{node.layer, other}] = static_cast<std::int32_t>(n);
    }
    return found;
}

// Whether `layer` exists and is of this kind.
bool is_layer(const Step& step, std::int32_t layer, model::LayerKind kind) {
    const auto i = static_cast<std::size_t>(layer);
    return i < step.layers.size() && step.layers[i] == kind;
}

// Numbers of patterns are those of a mixture's charts; behind its second norm a dense layer numbers
// other nodes.
bool has_experts(const Step& step) {
    return std::any_of(step.nodes.begin(), step.nodes.end(), [](const Node& node) {
        return std::holds_alternative<ops::ExpertsDownArgs>(node.args);
    });
}
bool in_expert_half(const Pattern& pattern) {
    const std::int32_t norm = pattern.layer == model::LayerKind::kGdn ? 11 : 10;
    return std::any_of(pattern.numbers.begin(), pattern.numbers.end(),
                       [&](std::int32_t number) { return number > norm && number < kNextLayer; });
}

std::string fused_name(const Step& step, const std::vector<std::int32_t>& nodes) {
    std::string name = step.nodes[static_cast<std::size_t>(nodes.front())].id;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
        const Node& node = step.nodes[static_cast<std::size_t>(nodes[i])];
        const bool same = node.layer == step.nodes[static_cast<std::size_t>(nodes.front())].layer;
        name += fmt::format("+{}{}", same ? "" : "next.", node.number);
    }
    return name;
}

// A launch that a rewrite may take: one whole node, as the reference plan has it.
Status check_untouched(const Launch& launch, const Rewrite& rewrite) {
    if (launch.nodes.size() == 1 && launch.stage < 0)
        return {};
    return fail(Code::kInvalidArgument, "rewrite {}: {} is already part of another rewrite",
                rewrite.name, launch.name);
}

// Replaces the launches of `nodes` by one; they must each be whole launches of their own.
Status fuse(const Step& step, Plan& plan, const std::vector<std::int32_t>& nodes,
            const Rewrite& rewrite) {
    const std::set<std::int32_t> wanted(nodes.begin(), nodes.end());
    std::size_t covered = 0, last = 0;
    std::vector<Launch> kept;
    for (Launch& launch : plan.launches) {
        const bool inside = std::any_of(launch.nodes.begin(), launch.nodes.end(),
                                        [&](std::int32_t n) { return wanted.contains(n); });
        if (!inside) {
            kept.push_back(std::move(launch));
            continue;
        }
        LR_TRY(check_untouched(launch, rewrite));
        ++covered;
        last = kept.size();
    }
    LR_CHECK_EQ(covered, nodes.size());
    kept.insert(kept.begin() + static_cast<std::ptrdiff_t>(last),
                Launch{.name = fused_name(step, nodes),
                       .nodes = nodes,
                       .lane = step.nodes[static_cast<std::size_t>(nodes.back())].lane,
                       .grid_sync = rewrite.grid_sync,
                       .cooperative = rewrite.grid_sync});
    plan.launches = std::move(kept);
    return {};
}

// Where the launch of one node stands in the list.
Result<std::size_t> launch_of(const Plan& plan, std::int32_t node, const Rewrite& rewrite) {
    for (std::size_t i = 0; i < plan.launches.size(); ++i)
        if (const auto& nodes = plan.launches[i].nodes;
            std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
            LR_TRY(check_untouched(plan.launches[i], rewrite));
            return i;
        }
    return fail(Code::kInvalidArgument, "rewrite {}: its node has no launch", rewrite.name);
}

Launch stage_launch(const Step& step, std::int32_t node, std::size_t stage,
                    const Rewrite& rewrite) {
    const Node& of = step.nodes[static_cast<std::size_t>(node)];
    return {.name = fmt::format("{} {}", of.id, rewrite.stages[stage]),
            .nodes = {node},
            .stage = static_cast<std::int32_t>(stage),
            .lane = of.lane};
}

Status expand(const Step& step, Plan& plan, std::int32_t node, const Rewrite& rewrite) {
    LR_TRY_ASSIGN(const std::size_t at, launch_of(plan, node, rewrite));
    std::vector<Launch> stages;
    for (std::size_t s = 0; s < rewrite.stages.size(); ++s) {
        stages.push_back(stage_launch(step, node, s, rewrite));
        stages.back().lane = plan.launches[at].lane;
    }
    const auto place = plan.launches.erase(plan.launches.begin() + static_cast<std::ptrdiff_t>(at));
    plan.launches.insert(place, stages.begin(), stages.end());
    return {};
}

// {first, second} with two stages: "first+stage 0", then stage 1.
Status shift(const Step& step, Plan& plan, const std::vector<std::int32_t>& nodes,
             const Rewrite& rewrite) {
    LR_CHECK_EQ(nodes.size(), std::size_t{2});
    LR_CHECK_EQ(rewrite.stages.size(), std::size_t{2});
    LR_TRY_ASSIGN(const std::size_t first, launch_of(plan, nodes[0], rewrite));
    LR_TRY_ASSIGN(const std::size_t second, launch_of(plan, nodes[1], rewrite));
    plan.launches[second] = stage_launch(step, nodes[1], 1, rewrite);
    Launch& longer = plan.launches[first];
    longer.name =
        fmt::format("{}+{} {}", longer.name, step.nodes[static_cast<std::size_t>(nodes[1])].number,
                    rewrite.stages[0]);
    longer.nodes = nodes;
    longer.stage = 0;
    return {};
}

// Right behind the last launch that it needs, so that nothing of its new lane holds it up.
Status move(const Step& step, Plan& plan, std::int32_t node, const Rewrite& rewrite) {
    LR_TRY_ASSIGN(const std::size_t at, launch_of(plan, node, rewrite));
    std::size_t place = 0;
    for (const auto& [from, to] : launch_edges(step, plan))
        if (to == static_cast<std::int32_t>(at))
            place = std::max(place, static_cast<std::size_t>(from) + 1);
    Launch moved = plan.launches[at];
    moved.lane = rewrite.lane;
    plan.launches.erase(plan.launches.begin() + static_cast<std::ptrdiff_t>(at));
    plan.launches.insert(plan.launches.begin() + static_cast<std::ptrdiff_t>(place), moved);
    return {};
}

Status apply(const Step& step, Plan& plan, const std::vector<std::int32_t>& nodes,
             const Rewrite& rewrite) {
    switch (rewrite.kind) {
    case RewriteKind::kExpand:
        return expand(step, plan, nodes.front(), rewrite);
    case RewriteKind::kShift:
        return shift(step, plan, nodes, rewrite);
    case RewriteKind::kMove:
        return move(step, plan, nodes.front(), rewrite);
    case RewriteKind::kFuse:
        break;
    }
    return nodes.size() > 1 ? fuse(step, plan, nodes, rewrite) : Status();
}

} // namespace

Plan reference_plan(const Step& step) {
    Plan plan;
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        if (!step.nodes[n].alias)
            plan.launches.push_back({.name = step.nodes[n].id,
                                     .nodes = {static_cast<std::int32_t>(n)},
                                     .lane = step.nodes[n].lane});
    add_events(step, plan);
    return plan;
}

Result<const Rewrite*> find_rewrite(std::string_view name) {
    std::string names;
    for (const Rewrite& rewrite : all_rewrites()) {
        if (rewrite.name == name)
            return &rewrite;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", rewrite.name);
    }
    return fail(Code::kInvalidArgument, "rewrite: expected one of {}, got \"{}\"", names, name);
}

std::vector<std::vector<std::int32_t>> find_matches(const Step& step, const Rewrite& rewrite) {
    const auto by_number = nodes_by_number(step);
    const bool experts = has_experts(step);
    std::set<std::int32_t> layers;
    for (const auto& [key, node] : by_number)
        layers.insert(key.layer);
    std::vector<std::vector<std::int32_t>> matches;
    for (std::int32_t layer : layers)
        for (const Pattern& pattern : rewrite.patterns) {
            if (pattern.phase != step.shape.phase || !is_layer(step, layer, pattern.layer) ||
                (pattern.next && !is_layer(step, layer + 1, *pattern.next)) ||
                (in_expert_half(pattern) && !experts))
                continue;
            std::set<std::int32_t> nodes;
            bool whole = true;
            for (std::int32_t number : pattern.numbers) {
                const bool next = number >= kNextLayer;
                const NodeKey key{layer + (next ? 1 : 0), next ? number - kNextLayer : number};
                const auto found = by_number.find(key);
                whole = whole && found != by_number.end();
                if (whole)
                    nodes.insert(found->second);
            }
            const auto moves = [&] { // or stands in that lane already
                return step.nodes[static_cast<std::size_t>(*nodes.begin())].lane != rewrite.lane;
            };
            if (whole && (rewrite.kind != RewriteKind::kMove || moves()))
                matches.emplace_back(nodes.begin(), nodes.end());
        }
    return matches;
}

Result<Plan> apply_rewrite(const Step& step, const Plan& plan, std::string_view name) {
    LR_TRY_ASSIGN(const Rewrite* rewrite, find_rewrite(name));
    const auto matches = find_matches(step, *rewrite);
    if (matches.empty())
        return fail(Code::kInvalidArgument, "rewrite {}: its nodes stand nowhere in this {} step",
                    name, step.shape.phase == Phase::kDecode ? "decode" : "prefill");
    Plan result = plan;
    result.rewrites.emplace_back(name);
    for (const auto& nodes : matches)
        LR_TRY(apply(step, result, nodes, *rewrite));
    LR_TRY_ASSIGN(result, sorted(step, std::move(result)));
    add_events(step, result);
    find_swallowed(step, result);
    return result;
}

Plan with_pdl(Plan plan) {
    std::array<bool, kLanes> begun{};
    for (Launch& launch : plan.launches) {
        bool& lane = begun[static_cast<std::size_t>(launch.lane)];
        if (lane && launch.waits.empty())
            launch.pdl = Pdl::kWaits;
        lane = true;
    }
    return plan;
}

HappensBefore plan_order(const Plan& plan) {
    std::vector<std::int32_t> recorder(static_cast<std::size_t>(plan.events), -1);
    std::vector<HappensBefore::Pair> pairs;
    std::array<std::int32_t, kLanes> previous;
    previous.fill(-1);
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        const Launch& launch = plan.launches[i];
        const auto id = static_cast<std::int32_t>(i);
        std::int32_t& last = previous[static_cast<std::size_t>(launch.lane)];
        if (last >= 0 && launch.pdl != Pdl::kNever)
            pairs.emplace_back(last, id);
        last = id;
        for (std::int32_t event : launch.waits) {
            LR_CHECK_LT(event, plan.events);
            pairs.emplace_back(recorder[static_cast<std::size_t>(event)], id);
        }
        LR_CHECK_LT(launch.event, plan.events);
        if (launch.event >= 0)
            recorder[static_cast<std::size_t>(launch.event)] = id;
    }
    return HappensBefore(static_cast<std::int32_t>(plan.launches.size()), pairs);
}

} // namespace lr::graph
