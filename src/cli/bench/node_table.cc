// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/node_table.h"

#include "core/check.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace lr::cli {
namespace {

std::string group_of(const graph::Step& step, const graph::Node& node) {
    if (node.layer < 0)
        return node.id;
    const model::LayerKind kind = step.layers[static_cast<std::size_t>(node.layer)];
    return fmt::format("{}.{}", kind == model::LayerKind::kGdn ? "gdn" : "attn", node.number);
}

double rate(double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
}

void print_row(const std::string& label, const NodeRow& row, double total) {
    const double seconds = row.seconds.median();
    fmt::print("{:<44.44} {:>5} {:>11.1f} {:>6.1f} {:>10.2f} {:>8.2f} {:>9.1f} {:>8.1f}\n", label,
               row.count, 1e6 * seconds, 100 * rate(seconds, total),
               static_cast<double>(row.cost.bytes()) / 1e6,
               rate(static_cast<double>(row.cost.bytes()) / 1e9, seconds),
               rate(static_cast<double>(row.cost.flops) / 1e9, seconds),
               100 * rate(row.floor_seconds, seconds));
}

double total_seconds(const std::vector<NodeRow>& rows) {
    double total = 0;
    for (const NodeRow& row : rows)
        total += row.seconds.median();
    return total;
}

} // namespace

std::vector<NodeRow> node_rows(const graph::Step& step, const std::vector<ops::Cost>& cost,
                               const std::vector<NodeSeconds>& runs, const Floors& floors,
                               const NodeTableOptions& options) {
    LR_CHECK_EQ(cost.size(), step.nodes.size());
    std::vector<NodeRow> rows;
    std::vector<std::vector<double>> seconds; // of each row, by run
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < step.nodes.size(); ++i) {
        const graph::Node& node = step.nodes[i];
        if (node.alias)
            continue;
        const std::string id = options.each ? node.id : group_of(step, node);
        const auto [place, fresh] = places.emplace(id + node.name, rows.size());
        if (fresh) {
            rows.push_back({.id = id, .name = node.name});
            seconds.emplace_back(runs.size());
        }
        NodeRow& row = rows[place->second];
        ++row.count;
        row.cost += cost[i];
        row.floor_seconds += floors.seconds(cost[i]);
        for (std::size_t run = 0; run < runs.size(); ++run)
            seconds[place->second][run] += runs[run][i];
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (double value : seconds[i])
            rows[i].seconds.add(value);
    if (options.sort == "time")
        std::stable_sort(rows.begin(), rows.end(), [](const NodeRow& a, const NodeRow& b) {
            return a.seconds.median() > b.seconds.median();
        });
    return rows;
}

void print_node_rows(const std::vector<NodeRow>& rows, const NodeTableOptions& options) {
    const double total = total_seconds(rows);
    const std::size_t shown = options.top == 0
                                  ? rows.size()
                                  : std::min(rows.size(), static_cast<std::size_t>(options.top));
    fmt::print("more than 100 % of a floor: some of it came out of the caches\n\n");
    fmt::print("{:<44} {:>5} {:>11} {:>6} {:>10} {:>8} {:>9} {:>8}\n", "node", "count", "us", "%",
               "MB", "GB/s", "GFLOP/s", "% floor");
    NodeRow rest;
    double rest_seconds = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i < shown) {
            print_row(rows[i].id + " " + rows[i].name, rows[i], total);
            continue;
        }
        rest.count += rows[i].count;
        rest.cost += rows[i].cost;
        rest.floor_seconds += rows[i].floor_seconds;
        rest_seconds += rows[i].seconds.median();
    }
    if (shown == rows.size())
        return;
    rest.seconds.add(rest_seconds);
    print_row(fmt::format("({} more, --top 0 shows them)", rows.size() - shown), rest, total);
}

Json node_rows_json(const std::vector<NodeRow>& rows) {
    const double total = total_seconds(rows);
    JsonArray array;
    for (const NodeRow& row : rows) {
        const double seconds = row.seconds.median();
        array.push_back(Json::object({{"id", Json(row.id)},
                                      {"name", Json(row.name)},
                                      {"count", Json(row.count)},
                                      {"us", Json(1e6 * seconds)},
                                      {"spread", Json(row.seconds.spread())},
                                      {"share", Json(rate(seconds, total))},
                                      {"weight_bytes", Json(row.cost.weight_bytes)},
                                      {"bytes", Json(row.cost.bytes())},
                                      {"flops", Json(row.cost.flops)},
                                      {"floor_us", Json(1e6 * row.floor_seconds)}}));
    }
    return Json(std::move(array));
}

} // namespace lr::cli
