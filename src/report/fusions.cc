// SPDX-License-Identifier: Apache-2.0
#include "report/fusions.h"

#include "graph/path_name.h"
#include "graph/verify_plan.h"
#include "report/graph_text.h"

#include <algorithm>
#include <map>

namespace lr::report {
namespace {

using graph::RewriteKind;
using graph::Step;

const graph::Node& node_at(const Step& step, std::int32_t id) {
    return step.nodes[static_cast<std::size_t>(id)];
}

std::string names_of(const Step& step, const std::vector<std::int32_t>& nodes) {
    std::string text;
    const std::int32_t layer = node_at(step, nodes.front()).layer;
    for (std::int32_t id : nodes) {
        const graph::Node& node = node_at(step, id);
        text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ",
                            node.layer == layer ? "" : "next.", node.number, node.name);
    }
    return text;
}

// Launches with a node of `nodes`, and what they move and take.
struct Sum {
    std::int64_t launches = 0, bytes = 0;
    double floor_us = 0;
};
Sum sum_of(const Step& step, const graph::Plan& plan, const graph::Machine& machine,
           const std::vector<std::int32_t>& nodes) {
    Sum sum;
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        const auto& launched = plan.launches[i].nodes;
        if (std::none_of(launched.begin(), launched.end(), [&](std::int32_t id) {
                return std::binary_search(nodes.begin(), nodes.end(), id);
            }))
            continue;
        const graph::Work work = graph::launch_work(step, plan, i);
        ++sum.launches;
        sum.bytes += work.bytes();
        sum.floor_us += graph::floor_of(machine, work).us;
    }
    return sum;
}

Result<FusionRow> find_fusion(const Step& step, const graph::Plan& reference,
                              const graph::Rewrite& rewrite, const graph::Machine& machine) {
    FusionRow row{.rewrite = &rewrite, .places = {}, .traced = {}};
    std::map<std::string, std::vector<std::vector<std::int32_t>>, std::greater<>> by_path;
    for (auto& nodes : graph::find_matches(step, rewrite))
        // Two quantisations that are one node already leave nothing to fuse.
        if (rewrite.kind != RewriteKind::kFuse || nodes.size() > 1)
            by_path[graph::path_name(step, node_at(step, nodes.front()))].push_back(
                std::move(nodes));
    if (by_path.empty())
        return row;
    LR_TRY_ASSIGN(const graph::Plan plan, graph::apply_rewrite(step, reference, rewrite.name));
    const graph::MemoryPlan memory = graph::plan_memory(step, plan);
    LR_TRY(graph::verify_plan(step, plan, &memory));
    for (const auto& [path, places] : by_path) {
        const auto& nodes = places.front();
        const Sum before = sum_of(step, reference, machine, nodes);
        const Sum after = sum_of(step, plan, machine, nodes);
        row.places.push_back({.path = path,
                              .nodes = nodes,
                              .names = names_of(step, nodes),
                              .count = static_cast<std::int64_t>(places.size()),
                              .launches = before.launches - after.launches,
                              .bytes = before.bytes - after.bytes,
                              .floor_us = before.floor_us - after.floor_us});
    }
    return row;
}

std::string_view kind_text(RewriteKind kind) {
    switch (kind) {
    case RewriteKind::kFuse:
        return "one launch";
    case RewriteKind::kShift:
        return "two launches, divided elsewhere";
    case RewriteKind::kMove:
        return "another lane";
    case RewriteKind::kExpand:
        break;
    }
    return "stages";
}

// "-" for nothing, else with its sign where more is moved.
std::string saved_text(std::int64_t bytes) {
    return bytes == 0 ? "-" : group_digits(bytes);
}
std::string saved_us(double us) {
    return us < 0 ? "-" + microseconds_text(-us) : microseconds_text(us);
}

std::string rewrite_text(const FusionRow& row) {
    const graph::Rewrite& rewrite = *row.rewrite;
    std::string text = fmt::format("{}: {}", rewrite.name, kind_text(rewrite.kind));
    if (rewrite.grid_sync)
        text += ", its blocks wait for one another";
    text += "\n";
    if (row.places.empty())
        text += "  nodes       stand nowhere in this step\n";
    for (const FusionPlace& place : row.places)
        text += fmt::format("  nodes       {}: {}\n", place.path, place.names);
    text += fmt::format("  vanishes    {}\n  keeps       {}\n  to respect  {}\n  verdict     {}\n",
                        rewrite.vanishes, rewrite.keeps, rewrite.constraint, rewrite.verdict);
    return text;
}

Json place_json(const FusionPlace& place) {
    return Json::object({{"path", Json(place.path)},
                         {"nodes", Json(place.names)},
                         {"places", Json(place.count)},
                         {"launches_saved", Json(place.launches)},
                         {"bytes_saved", Json(place.bytes)},
                         {"floor_saved_us", Json(place.floor_us)}});
}

Json traced_json(const TracedFusion& traced) {
    return Json::object({{"places", Json(traced.places)},
                         {"on_critical_path", Json(traced.on_path)},
                         {"sum_us", Json(traced.sum_us)},
                         {"slack_us", Json(traced.slack_us)},
                         {"saves_if_longest_stays_us", Json(traced.longest_stays_us)},
                         {"saves_at_most_us", Json(traced.at_floor_us)}});
}

} // namespace

Result<std::vector<FusionRow>> find_fusions(const Step& step, const graph::Machine& machine) {
    const graph::Plan reference = graph::reference_plan(step);
    std::vector<FusionRow> rows;
    for (const graph::Rewrite& rewrite : graph::all_rewrites()) {
        if (rewrite.kind == RewriteKind::kExpand)
            continue;
        LR_TRY_ASSIGN(FusionRow row, find_fusion(step, reference, rewrite, machine));
        rows.push_back(std::move(row));
    }
    return rows;
}

Table fusions_table(const std::vector<FusionRow>& rows, const graph::Machine& machine) {
    Table table(fmt::format("Saved at each place; floors on {}", machine.name),
                {{"rewrite", Align::kLeft},
                 {"path", Align::kLeft},
                 {"places"},
                 {"launches"},
                 {"bytes"},
                 {"floor us"},
                 {"verdict of the trace's analysis", Align::kLeft}});
    for (const FusionRow& row : rows) {
        if (row.places.empty())
            table.add({std::string(row.rewrite->name), "stands nowhere", "-", "-", "-", "-",
                       std::string(row.rewrite->verdict)});
        for (const FusionPlace& place : row.places)
            table.add({std::string(row.rewrite->name), place.path, group_digits(place.count),
                       place.launches == 0 ? "-" : group_digits(place.launches),
                       saved_text(place.bytes), saved_us(place.floor_us),
                       std::string(row.rewrite->verdict)});
    }
    return table;
}

Table traced_table(const std::vector<FusionRow>& rows, const graph::Machine& machine) {
    Table table("In the trace, all its places together (us)",
                {{"rewrite", Align::kLeft},
                 {"places"},
                 {"on the critical path"},
                 {"durations"},
                 {"least slack"},
                 {"saves if the longest part stays"},
                 {fmt::format("at most, at floors of {}", machine.name)}});
    for (const FusionRow& row : rows)
        if (row.traced)
            table.add({std::string(row.rewrite->name), group_digits(row.traced->places),
                       group_digits(row.traced->on_path), fmt::format("{:.3f}", row.traced->sum_us),
                       fmt::format("{:.3f}", row.traced->slack_us),
                       fmt::format("{:.3f}", row.traced->longest_stays_us),
                       fmt::format("{:.3f}", row.traced->at_floor_us)});
    return table;
}

std::string fusions_text(const std::vector<FusionRow>& rows, const graph::Machine& machine,
                         std::string_view what) {
    std::string text = fmt::format("{}\n\n{}\n", what, table_text(fusions_table(rows, machine)));
    if (std::any_of(rows.begin(), rows.end(), [](const FusionRow& row) { return row.traced; }))
        text += table_text(traced_table(rows, machine)) + "\n";
    for (const FusionRow& row : rows)
        text += rewrite_text(row);
    return text + "\nEvery plan above is proved: order, lifetimes, coverage. Savings of rewrites "
                  "that share nodes do not add up.\nFusions into a product's own body (2+4, 3+5, "
                  "9+10, 14+17, 19+20) change a GEMM and are no rewrites here.\n";
}

Json fusions_json(const std::vector<FusionRow>& rows, const graph::Machine& machine) {
    JsonArray list;
    for (const FusionRow& row : rows) {
        JsonArray places;
        for (const FusionPlace& place : row.places)
            places.push_back(place_json(place));
        const graph::Rewrite& rewrite = *row.rewrite;
        list.push_back(Json::object({{"rewrite", Json(rewrite.name)},
                                     {"kind", Json(kind_text(rewrite.kind))},
                                     {"vanishes", Json(rewrite.vanishes)},
                                     {"keeps", Json(rewrite.keeps)},
                                     {"constraint", Json(rewrite.constraint)},
                                     {"verdict", Json(rewrite.verdict)},
                                     {"grid_sync", Json(rewrite.grid_sync)},
                                     {"places", Json(std::move(places))},
                                     {"traced", row.traced ? traced_json(*row.traced) : Json()}}));
    }
    return Json::object({{"machine", machine_json(machine)}, {"rewrites", Json(std::move(list))}});
}

} // namespace lr::report
