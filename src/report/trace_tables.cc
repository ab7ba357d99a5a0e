// SPDX-License-Identifier: Apache-2.0
#include "report/trace_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lr::report {
namespace {

std::string us(double value) {
    return fmt::format("{:.3f}", value);
}
std::string percent(double part, double whole) {
    return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "-";
}
// A node of a path over all layers: "decode-gdn 7"; alone in its path: "7".
std::string node_name(const trace::Row& row) {
    return row.path + " " + row.nodes;
}

} // namespace

std::vector<std::pair<std::string, std::string>> trace_facts(const trace::Analysis& analysis) {
    const trace::Totals& totals = analysis.totals;
    double on_path = 0;
    for (const std::int32_t row : analysis.path.nodes)
        on_path += analysis.rows[static_cast<std::size_t>(row)].duration_us;
    return {{"launches", group_digits(std::ssize(analysis.rows))},
            {"sum of durations", us(totals.sum) + " us"},
            {"first start to last end", us(totals.span) + " us"},
            {"ran at the same time", us(totals.overlap()) + " us"},
            {"nothing ran", us(totals.idle()) + " us"},
            {"critical path", fmt::format("{} launches, {} us of durations",
                                          analysis.path.nodes.size(), us(on_path))}};
}

Table node_table(const trace::Analysis& analysis) {
    Table table("Nodes, all layers together (us)", {{"node", Align::kLeft},
                                                    {"name", Align::kLeft},
                                                    {"launches"},
                                                    {"sum"},
                                                    {"% of sum"},
                                                    {"on critical path"},
                                                    {"least slack"},
                                                    {"waited"},
                                                    {"floor %"}});
    std::map<std::string, double> waited;
    for (std::size_t r = 0; r < analysis.rows.size(); ++r)
        waited[node_name(analysis.rows[r])] += analysis.waits[r];
    for (const trace::NodeShare& share : trace::shares_of(analysis))
        table.add({share.path + " " + share.nodes, share.name, fmt::format("{}", share.count),
                   us(share.sum), percent(share.sum, analysis.totals.sum), us(share.on_path),
                   us(share.slack), us(waited[share.path + " " + share.nodes]),
                   share.floor < 0 ? "-" : percent(share.floor, share.sum)});
    return table;
}

Table path_table(const trace::Analysis& analysis) {
    Table table("Critical path, launch by launch (us)", {{"launch", Align::kLeft},
                                                         {"name", Align::kLeft},
                                                         {"start"},
                                                         {"end"},
                                                         {"duration"},
                                                         {"waited"}});
    for (const std::int32_t r : analysis.path.nodes) {
        const trace::Row& row = analysis.rows[static_cast<std::size_t>(r)];
        table.add({trace::place(row), row.name, us(row.start_us - analysis.rows.front().start_us),
                   us(row.end_us - analysis.rows.front().start_us), us(row.duration_us),
                   us(analysis.waits[static_cast<std::size_t>(r)])});
    }
    return table;
}

Table join_table(const trace::Analysis& analysis) {
    Table table("Where branches meet (us, in the mean)", {{"launch", Align::kLeft},
                                                          {"waited for", Align::kLeft},
                                                          {"ready before", Align::kLeft},
                                                          {"by"},
                                                          {"times"}});
    struct Sum {
        double early = 0;
        std::int64_t times = 0;
    };
    std::map<std::array<std::string, 3>, Sum> sums;
    std::vector<std::array<std::string, 3>> order;
    for (const trace::Join& join : analysis.joins) {
        const std::array<std::string, 3> key = {node_name(analysis.rows[join.row]),
                                                node_name(analysis.rows[join.last]),
                                                node_name(analysis.rows[join.early])};
        if (!sums.contains(key))
            order.push_back(key);
        sums[key].early += join.early_us;
        ++sums[key].times;
    }
    for (const auto& key : order)
        table.add({key[0], key[1], key[2],
                   us(sums[key].early / static_cast<double>(sums[key].times)),
                   fmt::format("{}", sums[key].times)});
    return table;
}

Table what_if_table(const trace::Analysis& analysis) {
    Table table("Fusions: what they are made of, and the most they could save (us)",
                {{"fusion", Align::kLeft},
                 {"places"},
                 {"sum of durations"},
                 {"on critical path"},
                 {"at most"},
                 {"% of span"}});
    for (const trace::WhatIf& what : analysis.what_if)
        table.add({what.rewrite, fmt::format("{}", what.places), us(what.sum),
                   fmt::format("{} of {}", what.critical, what.places), us(what.most),
                   percent(what.most, analysis.totals.span)});
    return table;
}

} // namespace lr::report
