// SPDX-License-Identifier: Apache-2.0
#include "graph/plan.h"

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
    Plan result{.rewrites = plan.rewrites, .launches = {}};
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

// Every place of the step where the whole pattern stands, as sets of nodes.
std::vector<std::vector<std::int32_t>> find_matches(const Step& step, const Rewrite& rewrite) {
    const auto by_number = nodes_by_number(step);
    std::set<std::int32_t> layers;
    for (const auto& [key, node] : by_number)
        layers.insert(key.layer);
    std::vector<std::vector<std::int32_t>> matches;
    for (std::int32_t layer : layers)
        for (const Pattern& pattern : rewrite.patterns) {
            if (pattern.phase != step.shape.phase || !is_layer(step, layer, pattern.layer) ||
                (pattern.next && !is_layer(step, layer + 1, *pattern.next)))
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
            if (whole)
                matches.emplace_back(nodes.begin(), nodes.end());
        }
    return matches;
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

// Replaces the launches of `nodes` by one; they must each be whole launches of their own.
Status fuse(const Step& step, Plan& plan, const std::vector<std::int32_t>& nodes) {
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
        if (launch.nodes.size() != 1 || launch.stage >= 0)
            return fail(Code::kInvalidArgument, "rewrite {}: {} is already part of another rewrite",
                        plan.rewrites.back(), launch.name);
        ++covered;
        last = kept.size();
    }
    LR_CHECK_EQ(covered, nodes.size());
    kept.insert(kept.begin() + static_cast<std::ptrdiff_t>(last),
                Launch{.name = fused_name(step, nodes),
                       .nodes = nodes,
                       .lane = step.nodes[static_cast<std::size_t>(nodes.back())].lane});
    plan.launches = std::move(kept);
    return {};
}

Status expand(const Step& step, Plan& plan, std::int32_t node, const Rewrite& rewrite) {
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        const Launch launch = plan.launches[i];
        if (std::find(launch.nodes.begin(), launch.nodes.end(), node) == launch.nodes.end())
            continue;
        if (launch.nodes.size() != 1 || launch.stage >= 0)
            return fail(Code::kInvalidArgument, "rewrite {}: {} is already part of another rewrite",
                        rewrite.name, launch.name);
        std::vector<Launch> stages;
        for (std::size_t s = 0; s < rewrite.stages.size(); ++s)
            stages.push_back(
                {.name = fmt::format("{} {}", step.nodes[static_cast<std::size_t>(node)].id,
                                     rewrite.stages[s]),
                 .nodes = {node},
                 .stage = static_cast<std::int32_t>(s),
                 .lane = launch.lane});
        plan.launches.erase(plan.launches.begin() + static_cast<std::ptrdiff_t>(i));
        plan.launches.insert(plan.launches.begin() + static_cast<std::ptrdiff_t>(i), stages.begin(),
                             stages.end());
        return {};
    }
    return fail(Code::kInvalidArgument, "rewrite {}: its node has no launch", rewrite.name);
}

} // namespace

Plan reference_plan(const Step& step) {
    Plan plan;
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        if (!step.nodes[n].alias)
            plan.launches.push_back({.name = step.nodes[n].id,
                                     .nodes = {static_cast<std::int32_t>(n)},
                                     .lane = step.nodes[n].lane});
    return plan;
}

Result<Plan> apply_rewrite(const Step& step, const Plan& plan, std::string_view name) {
    const auto& known = all_rewrites();
    const auto rewrite =
        std::find_if(known.begin(), known.end(), [&](const Rewrite& r) { return r.name == name; });
    if (rewrite == known.end()) {
        std::string names;
        for (const Rewrite& r : known)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", r.name);
        return fail(Code::kNotFound, "rewrite: expected one of {}, got \"{}\"", names, name);
    }
    const auto matches = find_matches(step, *rewrite);
    if (matches.empty())
        return fail(Code::kInvalidArgument, "rewrite {}: its nodes stand nowhere in this {} step",
                    name, step.shape.phase == Phase::kDecode ? "decode" : "prefill");
    Plan result = plan;
    result.rewrites.emplace_back(name);
    for (const auto& nodes : matches) {
        if (rewrite->kind == RewriteKind::kExpand) {
            LR_TRY(expand(step, result, nodes.front(), *rewrite));
        } else if (nodes.size() > 1) {
            LR_TRY(fuse(step, result, nodes));
        }
    }
    return sorted(step, std::move(result));
}

HappensBefore plan_order(const Step& step, const Plan& plan) {
    const auto edges = launch_edges(step, plan);
    std::vector<HappensBefore::Pair> pairs(edges.begin(), edges.end());
    std::array<std::int32_t, 2> previous = {-1, -1};
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        std::int32_t& last = previous[static_cast<std::size_t>(plan.launches[i].lane)];
        if (last >= 0)
            pairs.emplace_back(last, static_cast<std::int32_t>(i));
        last = static_cast<std::int32_t>(i);
    }
    return HappensBefore(static_cast<std::int32_t>(plan.launches.size()), pairs);
}

} // namespace lr::graph
