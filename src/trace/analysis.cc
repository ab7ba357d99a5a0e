// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis.h"

#include "graph/path_name.h"
#include "trace/recorder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace lr::trace {
namespace {

struct Number {
    std::int32_t layer_offset, number;
};

// "23+24+next.1" -> 23, 24, 1 of the next layer; "21 gemm" -> 21.
std::vector<Number> numbers_of(const std::string& nodes) {
    std::vector<Number> found;
    for (std::size_t at = 0; at < nodes.size();) {
        const std::size_t plus = std::min(nodes.find('+', at), nodes.size());
        std::string_view part = std::string_view(nodes).substr(at, plus - at);
        at = plus + 1;
        Number number{0, -1};
        if (part.starts_with("next.")) {
            number.layer_offset = 1;
            part.remove_prefix(5);
        }
        part = part.substr(0, part.find(' '));
        std::from_chars(part.data(), part.data() + part.size(), number.number);
        found.push_back(number);
    }
    return found;
}

// The rows' nodes in the step.
class Matching {
  public:
    Matching(const std::vector<Row>& rows, const graph::Step& step, bool any_layer)
        : rows_(rows), step_(step), row_of_node(step.nodes.size(), -1) {
        for (std::size_t n = 0; n < step.nodes.size(); ++n) {
            const graph::Node& node = step.nodes[n];
            by_place_[{graph::path_name(step, node), node.layer, node.number}] =
                static_cast<std::int32_t>(n);
            for (std::int32_t other : node.also)
                by_place_[{graph::path_name(step, node), node.layer, other}] =
                    static_cast<std::int32_t>(n);
        }
        if (any_layer)
            lay_out();
        if (!too_many.empty())
            return;
        for (std::size_t r = 0; r < rows.size(); ++r)
            place_row(r);
    }

  private:
    const std::vector<Row>& rows_;
    const graph::Step& step_;
    std::map<std::tuple<std::string, std::int32_t, std::int32_t>, std::int32_t> by_place_;
    std::map<std::int32_t, std::int32_t> laid_on_; // layer of the rows -> of the step

    // Each layer of the rows, in order, on the next of the step's that has its kind.
    void lay_out() {
        std::map<std::int32_t, std::string> wanted;
        for (const Row& row : rows_)
            if (row.layer >= 0)
                wanted.emplace(row.layer, row.path);
        std::int32_t next = 0;
        for (const auto& [layer, path] : wanted) {
            for (; static_cast<std::size_t>(next) < step_.layers.size(); ++next) {
                const bool gdn =
                    step_.layers[static_cast<std::size_t>(next)] == model::LayerKind::kGdn;
                if (path.ends_with(gdn ? "-gdn" : "-attention")) {
                    laid_on_[layer] = next++;
                    break;
                }
            }
            if (!laid_on_.contains(layer)) {
                too_many = path;
                return;
            }
        }
    }

    void place_row(std::size_t r) {
        const Row& row = rows_[r];
        std::int32_t layer = row.layer;
        if (const auto laid = laid_on_.find(layer); laid != laid_on_.end())
            layer = laid->second;
        bool known = true;
        for (const Number number : numbers_of(row.nodes)) {
            std::int32_t node = -1;
            for (const char* path : {row.path.c_str(), "decode-gdn", "decode-attention"}) {
                if (number.layer_offset == 0 && path != row.path.c_str())
                    continue;
                const auto found =
                    by_place_.find({path, layer + number.layer_offset, number.number});
                node = node < 0 && found != by_place_.end() ? found->second : node;
            }
            known = known && node >= 0;
            if (node >= 0)
                row_of_node[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(r);
        }
        if (!known)
            unknown.push_back(r);
    }

  public:
    std::vector<std::int32_t> row_of_node; // -1: none
    std::vector<std::size_t> unknown;
    std::string too_many; // path of a layer for which the step has no more of its kind
};

// Edges between rows; through nodes that have none (aliases, launches that were not recorded).
std::vector<graph::Dependency> data_edges(const graph::Step& step, const Matching& matching) {
    std::vector<std::set<std::int32_t>> sources(step.nodes.size()); // rows that a node waits for
    std::vector<std::vector<std::int32_t>> producers(step.nodes.size());
    for (const graph::Edge& edge : step.edges)
        producers[static_cast<std::size_t>(edge.to)].push_back(edge.from);
    std::set<graph::Dependency> edges;
    for (std::size_t n = 0; n < step.nodes.size(); ++n) { // a topological order
        for (const std::int32_t from : producers[n]) {
            const std::int32_t row = matching.row_of_node[static_cast<std::size_t>(from)];
            if (row >= 0)
                sources[n].insert(row);
            else
                sources[n].insert(sources[static_cast<std::size_t>(from)].begin(),
                                  sources[static_cast<std::size_t>(from)].end());
        }
        if (const std::int32_t row = matching.row_of_node[n]; row >= 0)
            for (const std::int32_t from : sources[n])
                if (from != row)
                    edges.insert({from, row});
    }
    return {edges.begin(), edges.end()};
}

// Nodes that should have run in the layers that did: see Analysis::untraced.
std::vector<std::int32_t> untraced_nodes(const graph::Step& step, const Matching& matching) {
    const auto part_of = [&](std::size_t n) {
        return std::pair(graph::path_name(step, step.nodes[n]), step.nodes[n].layer);
    };
    std::set<std::pair<std::string, std::int32_t>> traced;
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        if (matching.row_of_node[n] >= 0)
            traced.insert(part_of(n));
    std::vector<std::int32_t> untraced;
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        if (matching.row_of_node[n] < 0 && !step.nodes[n].alias && traced.contains(part_of(n)))
            untraced.push_back(static_cast<std::int32_t>(n));
    return untraced;
}

// Drops edges that another way through the graph implies: who waits for a merge need not be said to
// wait for what the merge waited for. (The residual and the norm's rows are read far downstream.)
std::vector<graph::Dependency> nearest(const std::vector<graph::Dependency>& edges,
                                       std::size_t count) {
    std::vector<std::vector<std::int32_t>> from(count);
    for (const auto& [a, b] : edges)
        from[static_cast<std::size_t>(b)].push_back(a);
    // Rows are sorted by start, so what is earlier than `a` cannot lie between it and another.
    const bool ascending = std::all_of(edges.begin(), edges.end(),
                                       [](const auto& edge) { return edge.first < edge.second; });
    const auto reaches = [&](std::int32_t a, std::int32_t b) { // a ancestor of b
        std::vector<std::int32_t> todo{b};
        std::set<std::int32_t> seen;
        while (!todo.empty()) {
            const std::int32_t at = todo.back();
            todo.pop_back();
            for (std::int32_t p : from[static_cast<std::size_t>(at)]) {
                if (p == a)
                    return true;
                if ((p > a || !ascending) && seen.insert(p).second)
                    todo.push_back(p);
            }
        }
        return false;
    };
    std::vector<graph::Dependency> kept;
    for (const auto& [a, b] : edges) {
        bool implied = false;
        for (std::int32_t other : from[static_cast<std::size_t>(b)])
            implied = implied || (other != a && reaches(a, other));
        if (!implied)
            kept.emplace_back(a, b);
    }
    return kept;
}

// Data, and each launch after the one before it in its lane; those of `left_out` have no lane.
std::vector<graph::Dependency> with_lanes(const std::vector<Row>& rows,
                                          const std::vector<graph::Dependency>& edges,
                                          std::span<const std::int32_t> left_out = {}) {
    std::map<std::string, std::int32_t> last;
    std::set<graph::Dependency> all(edges.begin(), edges.end());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        if (std::find(left_out.begin(), left_out.end(), static_cast<std::int32_t>(r)) !=
            left_out.end())
            continue;
        const auto [before, first] = last.emplace(rows[r].lane, static_cast<std::int32_t>(r));
        if (first)
            continue;
        const auto row = static_cast<std::int32_t>(r);
        if (!all.contains({row, before->second}))
            all.insert({before->second, row});
        before->second = row;
    }
    return {all.begin(), all.end()};
}

std::vector<Join> joins_of(const std::vector<graph::Span>& spans,
                           const std::vector<graph::Dependency>& data) {
    std::map<std::int32_t, std::vector<graph::Arrival>> by_row;
    for (const graph::Arrival& arrival : graph::arrivals(spans, data))
        by_row[arrival.to].push_back(arrival);
    std::vector<Join> joins;
    for (auto& [row, arrivals] : by_row) {
        std::sort(arrivals.begin(), arrivals.end(),
                  [](const auto& a, const auto& b) { return a.early_us > b.early_us; });
        for (const graph::Arrival& arrival : arrivals)
            if (arrival.early_us > 0)
                joins.push_back({static_cast<std::size_t>(row),
                                 static_cast<std::size_t>(arrivals.back().from),
                                 static_cast<std::size_t>(arrival.from), arrival.early_us});
    }
    return joins;
}

// The rewrite at one place: its rows, each a launch of its own.
std::optional<std::vector<std::int32_t>> rows_of(const graph::Launch& launch,
                                                 const Matching& matching) {
    std::set<std::int32_t> rows;
    for (const std::int32_t node : launch.nodes)
        rows.insert(matching.row_of_node[static_cast<std::size_t>(node)]);
    if (rows.size() != launch.nodes.size() || rows.contains(-1))
        return {};
    return std::vector<std::int32_t>(rows.begin(), rows.end());
}

Result<WhatIf> what_if(const graph::Rewrite& rewrite, const graph::Step& step,
                       const Matching& matching, const Analysis& analysis,
                       std::span<const graph::TimedNode> timed) {
    WhatIf result{.rewrite = std::string(rewrite.name)};
    const Result<graph::Plan> plan =
        graph::apply_rewrite(step, graph::reference_plan(step), rewrite.name);
    if (!plan) // it stands nowhere in this step
        return result;
    for (const graph::Launch& launch : plan->launches) {
        const auto rows = launch.nodes.size() > 1 ? rows_of(launch, matching) : std::nullopt;
        if (!rows)
            continue;
        double longest = 0;
        bool critical = false;
        for (const std::int32_t r : *rows) {
            const auto at = static_cast<std::size_t>(r);
            longest = std::max(longest, analysis.rows[at].duration_us);
            result.sum += analysis.rows[at].duration_us;
            critical = critical || std::find(analysis.path.nodes.begin(), analysis.path.nodes.end(),
                                             r) != analysis.path.nodes.end();
        }
        ++result.places;
        result.critical += critical;
        const auto edges = with_lanes(analysis.rows, analysis.data, std::span(*rows).subspan(1));
        Result<graph::CriticalPath> merged = graph::merged_path(timed, edges, *rows, longest);
        if (!merged) // a launch of its own lane lies between: then data alone orders it
            merged = graph::merged_path(timed, analysis.data, *rows, longest);
        if (!merged)
            return fail(std::move(merged).error());
        result.most += std::max(0.0, analysis.path.length_us - merged->length_us);
    }
    return result;
}

bool several_ranks(const graph::Node& node) {
    if (const auto* norm = std::get_if<ops::AddRmsnormArgs>(&node.args))
        return norm->ranks > 1;
    return !node.alias && (std::holds_alternative<ops::AllReduceArgs>(node.args) ||
                           std::holds_alternative<ops::AllGatherArgs>(node.args));
}

} // namespace

Totals totals_of(std::span<const Row> rows) {
    Totals totals;
    if (rows.empty())
        return totals;
    double first = rows.front().start_us, until = first, last = first;
    for (const Row& row : rows) { // by start
        totals.sum += row.duration_us;
        totals.busy += std::max(0.0, row.end_us - std::max(row.start_us, until));
        until = std::max(until, row.end_us);
        last = std::max(last, row.end_us);
    }
    totals.span = last - first;
    return totals;
}

Result<Analysis> analyse(std::vector<Row> rows, const graph::Step& step, bool any_layer) {
    Analysis analysis;
    analysis.rows = std::move(rows);
    analysis.totals = totals_of(analysis.rows);
    const Matching matching(analysis.rows, step, any_layer);
    if (!matching.too_many.empty())
        return fail(Code::kInvalidArgument,
                    "trace: expected layers of one step in their order, got more {} layers than "
                    "the {} layers of the graph have room for; of several steps look at one layer",
                    matching.too_many, step.layers.size());
    analysis.unknown = matching.unknown;
    analysis.untraced = untraced_nodes(step, matching);
    analysis.data = nearest(data_edges(step, matching), analysis.rows.size());
    const std::vector<graph::Dependency> edges = with_lanes(analysis.rows, analysis.data);
    std::vector<graph::Span> spans;
    for (Row& row : analysis.rows)
        spans.push_back({row.start_us, row.end_us});
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        if (const std::int32_t row = matching.row_of_node[n]; row >= 0) {
            std::string& name = analysis.rows[static_cast<std::size_t>(row)].name;
            if (name.find(step.nodes[n].name) == std::string::npos)
                name =
                    name.empty() ||
                            numbers_of(analysis.rows[static_cast<std::size_t>(row)].nodes).size() ==
                                1
                        ? step.nodes[n].name
                        : name + " + " + step.nodes[n].name;
        }
    const std::vector<graph::TimedNode> timed = graph::timed_nodes(spans, edges);
    LR_TRY_ASSIGN(analysis.path, graph::critical_path(timed, edges));
    for (const graph::TimedNode& node : timed)
        analysis.waits.push_back(node.gap_us);
    analysis.joins = joins_of(spans, analysis.data);
    analysis.communicates.resize(analysis.rows.size());
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        if (const std::int32_t row = matching.row_of_node[n];
            row >= 0 && several_ranks(step.nodes[n]))
            analysis.communicates[static_cast<std::size_t>(row)] = true;
    for (const graph::Rewrite& rewrite : graph::all_rewrites()) {
        if (rewrite.kind != graph::RewriteKind::kFuse)
            continue;
        LR_TRY_ASSIGN(WhatIf found, what_if(rewrite, step, matching, analysis, timed));
        if (found.places > 0)
            analysis.what_if.push_back(std::move(found));
    }
    return analysis;
}

std::vector<NodeShare> shares_of(const Analysis& analysis) {
    std::vector<NodeShare> shares;
    std::map<std::pair<std::string, std::string>, std::size_t> at;
    for (std::size_t r = 0; r < analysis.rows.size(); ++r) {
        const Row& row = analysis.rows[r];
        const auto [found, first] = at.emplace(std::pair(row.path, row.nodes), shares.size());
        if (first)
            shares.push_back({.path = row.path,
                              .nodes = row.nodes,
                              .name = row.name,
                              .slack = analysis.path.slack_us[r]});
        NodeShare& share = shares[found->second];
        ++share.count;
        share.sum += row.duration_us;
        share.slack = std::min(share.slack, analysis.path.slack_us[r]);
        if (row.floor_pct >= 0)
            share.floor = std::max(0.0, share.floor) + 0.01 * row.floor_pct * row.duration_us;
        if (std::find(analysis.path.nodes.begin(), analysis.path.nodes.end(),
                      static_cast<std::int32_t>(r)) != analysis.path.nodes.end())
            share.on_path += row.duration_us;
    }
    return shares;
}

} // namespace lr::trace
