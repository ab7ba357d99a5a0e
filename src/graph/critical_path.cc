// SPDX-License-Identifier: Apache-2.0
#include "graph/critical_path.h"

#include <algorithm>
#include <limits>

namespace lr::graph {
namespace {

std::size_t at(std::int32_t node) {
    return static_cast<std::size_t>(node);
}

// Producers and consumers of each node, and an order in which producers come first.
struct Sorted {
    std::vector<std::vector<std::int32_t>> producers, consumers;
    std::vector<std::int32_t> order;
};

Result<Sorted> sorted(std::size_t count, std::span<const Dependency> edges) {
    Sorted result{.producers = std::vector<std::vector<std::int32_t>>(count),
                  .consumers = std::vector<std::vector<std::int32_t>>(count),
                  .order = {}};
    for (const auto& [from, to] : edges) {
        for (std::int32_t node : {from, to})
            if (node < 0 || at(node) >= count)
                return fail(Code::kInvalidArgument,
                            "critical path: edge {} -> {}: expected nodes 0..{}", from, to,
                            static_cast<std::int64_t>(count) - 1);
        result.producers[at(to)].push_back(from);
        result.consumers[at(from)].push_back(to);
    }
    std::vector<std::size_t> waiting(count);
    for (std::size_t i = 0; i < count; ++i) {
        waiting[i] = result.producers[i].size();
        std::sort(result.producers[i].begin(), result.producers[i].end());
        if (waiting[i] == 0)
            result.order.push_back(static_cast<std::int32_t>(i));
    }
    for (std::size_t done = 0; done < result.order.size(); ++done)
        for (std::int32_t consumer : result.consumers[at(result.order[done])])
            if (--waiting[at(consumer)] == 0)
                result.order.push_back(consumer);
    if (result.order.size() == count)
        return result;
    const auto stuck = std::find_if(waiting.begin(), waiting.end(),
                                    [](std::size_t missing) { return missing != 0; });
    return fail(Code::kInvalidArgument,
                "critical path: node {} waits for its own end: expected no cycle",
                stuck - waiting.begin());
}

// Position in `list` of the value that wins, the first of equal ones; -1 for an empty list.
std::int32_t latest(const std::vector<std::int32_t>& list, const std::vector<double>& end) {
    std::int32_t best = -1;
    for (std::int32_t node : list)
        if (best < 0 || end[at(node)] > end[at(best)])
            best = node;
    return best;
}

} // namespace

Result<CriticalPath> critical_path(std::span<const TimedNode> nodes,
                                   std::span<const Dependency> edges) {
    const std::size_t count = nodes.size();
    LR_TRY_ASSIGN(const Sorted graph, sorted(count, edges));
    CriticalPath path{.start_us = std::vector<double>(count),
                      .end_us = std::vector<double>(count),
                      .slack_us = std::vector<double>(count),
                      .nodes = {},
                      .length_us = 0};
    if (count == 0)
        return path;
    for (std::int32_t node : graph.order) {
        const std::int32_t last = latest(graph.producers[at(node)], path.end_us);
        path.start_us[at(node)] = (last < 0 ? 0 : path.end_us[at(last)]) + nodes[at(node)].gap_us;
        path.end_us[at(node)] = path.start_us[at(node)] + nodes[at(node)].duration_us;
    }
    std::int32_t last = 0;
    for (std::size_t i = 1; i < count; ++i)
        if (path.end_us[i] > path.end_us[at(last)])
            last = static_cast<std::int32_t>(i);
    path.length_us = path.end_us[at(last)];
    for (std::int32_t node = last; node >= 0; node = latest(graph.producers[at(node)], path.end_us))
        path.nodes.push_back(node);
    std::reverse(path.nodes.begin(), path.nodes.end());
    for (auto node = graph.order.rbegin(); node != graph.order.rend(); ++node) {
        // A delay of this node is felt by a consumer once it outlasts the one that ends last.
        double slack = path.length_us - path.end_us[at(*node)];
        for (std::int32_t consumer : graph.consumers[at(*node)]) {
            const double early =
                path.start_us[at(consumer)] - nodes[at(consumer)].gap_us - path.end_us[at(*node)];
            slack = std::min(slack, early + path.slack_us[at(consumer)]);
        }
        path.slack_us[at(*node)] = slack;
    }
    for (std::int32_t node : path.nodes)
        path.slack_us[at(node)] = 0; // and not the last bit of a sum
    return path;
}

std::vector<TimedNode> timed_nodes(std::span<const Span> spans, std::span<const Dependency> edges) {
    double origin = std::numeric_limits<double>::infinity();
    for (const Span& span : spans)
        origin = std::min(origin, span.start_us);
    std::vector<double> ready(spans.size(), origin);
    std::vector<bool> needs(spans.size(), false);
    for (const auto& [from, to] : edges) {
        ready[at(to)] = needs[at(to)] ? std::max(ready[at(to)], spans[at(from)].end_us)
                                      : spans[at(from)].end_us;
        needs[at(to)] = true;
    }
    std::vector<TimedNode> nodes(spans.size());
    for (std::size_t i = 0; i < spans.size(); ++i)
        nodes[i] = {.duration_us = spans[i].end_us - spans[i].start_us,
                    .gap_us = spans[i].start_us - ready[i]};
    return nodes;
}

std::vector<Arrival> arrivals(std::span<const Span> spans, std::span<const Dependency> edges) {
    std::vector<double> last(spans.size(), -std::numeric_limits<double>::infinity());
    for (const auto& [from, to] : edges)
        last[at(to)] = std::max(last[at(to)], spans[at(from)].end_us);
    std::vector<Arrival> result;
    for (const auto& [from, to] : edges)
        result.push_back({from, to, last[at(to)] - spans[at(from)].end_us});
    return result;
}

Result<CriticalPath> merged_path(std::span<const TimedNode> nodes,
                                 std::span<const Dependency> edges,
                                 std::span<const std::int32_t> merged, double duration_us) {
    if (merged.empty())
        return critical_path(nodes, edges);
    const auto inside = [&](std::int32_t node) {
        return std::find(merged.begin(), merged.end(), node) != merged.end();
    };
    const std::int32_t first = *std::min_element(merged.begin(), merged.end());
    std::vector<TimedNode> timed(nodes.begin(), nodes.end());
    std::vector<Dependency> kept;
    for (const auto& [from, to] : edges)
        if (!inside(from) || !inside(to))
            kept.emplace_back(inside(from) ? first : from, inside(to) ? first : to);
    for (std::int32_t node : merged) {
        if (node < 0 || at(node) >= nodes.size())
            return fail(Code::kInvalidArgument, "critical path: merged node {}: expected 0..{}",
                        node, static_cast<std::int64_t>(nodes.size()) - 1);
        if (node != first)
            timed[at(node)] = {};
    }
    timed[at(first)].duration_us = duration_us;
    LR_TRY_ASSIGN(CriticalPath path, critical_path(timed, kept));
    for (std::int32_t node : merged) {
        path.start_us[at(node)] = path.start_us[at(first)];
        path.end_us[at(node)] = path.end_us[at(first)];
        path.slack_us[at(node)] = path.slack_us[at(first)];
    }
    return path;
}

} // namespace lr::graph
