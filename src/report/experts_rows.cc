// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"
#include "experts/endpoints.h"
#include "experts/tiles.h"
#include "report/experts_parts.h"

#include <algorithm>

namespace lr::report {
namespace {

using namespace experts;

Table totals_table(const Problem& p, const Launch& launch) {
    const BlockFill fill = row_fill(launch);
    const std::int64_t rows = allocated_rows(p);
    Table table("Rows in use, named and covered",
                {{"what", Align::kLeft}, {"count"}, {"of which, or how", Align::kLeft}});
    const auto add = [&](const char* what, std::int64_t count, std::string how) {
        table.add({what, group_digits(count), std::move(how)});
    };
    const double share =
        rows > 0 ? static_cast<double>(fill.live_rows) / static_cast<double>(rows) : 0;
    add("live rows", fill.live_rows, "rows that a token sent to an expert here");
    add("allocated rows", rows,
        fmt::format("{}; {} of them live", layout_name(p.layout), percent(share)));
    if (launch.list) {
        add("list positions, allocated (Q)", launch.positions,
            fmt::format("S = {} rows named, L + 1 = {} groups, BM = {}", launch.list->rows,
                        p.local() + 1, p.tiling.rows));
        add("list positions, in use", launch.list->padded, "each group padded to blocks of BM");
    }
    add("rows of computing blocks", fill.covered_rows,
        fmt::format("{} blocks of BM = {}; {} of them live", fill.blocks, p.tiling.rows,
                    percent(fill.fill())));
    add("accumulators of a tile", p.tiling.rows * p.tiling.columns, "BM x BN");
    const std::int64_t metadata = metadata_bytes(launch, p.layout);
    add("bytes of layout metadata", metadata,
        fmt::format("{}; {}", format_bytes(metadata),
                    launch.list                      ? "list, block ids, length"
                    : p.layout == Layout::kEndpoints ? "an end for each expert"
                                                     : "a label for each row"));
    return table;
}

Table gemms_table(const Problem& p) {
    Table table("Programs of the two GEMMs", {{"GEMM", Align::kLeft},
                                              {"N"},
                                              {"K"},
                                              {"steps of BK"},
                                              {"row blocks"},
                                              {"column blocks"},
                                              {"launched"},
                                              {"compute"},
                                              {"zero"},
                                              {"exit"}});
    for (const Gemm& gemm : gemms(p)) {
        const Launch launch = plan_launch(p, gemm.columns);
        const Programs programs = count_programs(launch);
        table.add({gemm.name, group_digits(gemm.columns), group_digits(gemm.depth),
                   group_digits(depth_steps(gemm, p.tiling)),
                   group_digits(std::ssize(launch.blocks)), group_digits(launch.column_blocks),
                   group_digits(programs.launched), group_digits(programs.computing),
                   group_digits(programs.zeroing), group_digits(programs.exiting)});
    }
    return table;
}

Json gemms_json(const Problem& p) {
    JsonArray array;
    for (const Gemm& gemm : gemms(p)) {
        const Programs programs = count_programs(plan_launch(p, gemm.columns));
        array.push_back(Json::object({{"gemm", Json(gemm.name)},
                                      {"n", Json(gemm.columns)},
                                      {"k", Json(gemm.depth)},
                                      {"steps", Json(depth_steps(gemm, p.tiling))},
                                      {"launched", Json(programs.launched)},
                                      {"computing", Json(programs.computing)},
                                      {"zeroing", Json(programs.zeroing)},
                                      {"exiting", Json(programs.exiting)}}));
    }
    return Json(std::move(array));
}

// Where the rows of expert e begin and end in the buffer; "-" where they have no range.
std::pair<std::string, std::string> range_of(const Problem& p, const Launch& launch, std::size_t e,
                                             std::int32_t count) {
    if (!launch.list)
        return {group_digits(launch.start[e]), group_digits(launch.end[e])};
    if (p.layout != Layout::kExpertMajor)
        return {"-", "-"};
    const std::int64_t start = static_cast<std::int64_t>(e) * p.capacity;
    return {group_digits(start), group_digits(start + count)};
}

Table experts_table(const ExpertsInput& input, const Launch& launch,
                    const std::vector<std::int32_t>& counts) {
    const Problem& p = input.problem;
    Table table("Rows of each expert", {{"expert"},
                                        {"live rows"},
                                        {"from row"},
                                        {"to row"},
                                        {"row blocks"},
                                        {"rows covered"},
                                        {"tiles a GEMM"},
                                        {"live share"}});
    for (std::int64_t i = 0; i < shown_rows(input, p.local()); ++i) {
        const auto e = static_cast<std::size_t>(i);
        BlockFill fill;
        for (const RowBlock& block : launch.blocks)
            if (block.action == Action::kCompute && block.expert == i) {
                fill.live_rows += block.live;
                ++fill.blocks;
                fill.covered_rows += launch.block;
            }
        auto [start, end] = range_of(p, launch, e, counts[e]);
        table.add({fmt::format("{}", i), group_digits(counts[e]), std::move(start), std::move(end),
                   group_digits(fill.blocks), group_digits(fill.covered_rows),
                   group_digits(fill.blocks * launch.column_blocks),
                   fill.blocks > 0 ? percent(fill.fill()) : "-"});
    }
    return table;
}

Table groups_table(const ExpertsInput& input, const Alignment& list) {
    constexpr std::size_t kRowsOfALine = 24;
    Table table("Groups of the list", {{"group", Align::kLeft},
                                       {"from"},
                                       {"to"},
                                       {"rows"},
                                       {"padding"},
                                       {"rows in order", Align::kLeft}});
    const std::vector<ListGroup> groups = list_groups(list);
    for (std::int64_t g = 0; g < shown_rows(input, std::ssize(groups)); ++g) {
        const ListGroup& group = groups[static_cast<std::size_t>(g)];
        const std::int64_t positions = group.last - group.first;
        table.add({group.expert < 0 ? "none (-1)" : fmt::format("expert {}", group.expert),
                   group_digits(group.first), group_digits(group.last),
                   group_digits(std::ssize(group.rows)),
                   group_digits(positions - std::ssize(group.rows)),
                   joined(group.rows, input.top == 0 ? group.rows.size() : kRowsOfALine)});
    }
    return table;
}

} // namespace

Section rows_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    const std::vector<std::int32_t> counts = count_rows(p.routing);
    const BlockFill fill = row_fill(launch);
    Section section{.id = "rows", .title = "Rows and tiles"};
    section.tables = {totals_table(p, launch), gemms_table(p),
                      experts_table(input, launch, counts)};
    note_hidden(input, p.local(), "experts", section);
    section.json = Json::object(
        {{"counts", json_ints(counts)},
         {"live_rows", Json(fill.live_rows)},
         {"allocated_rows", Json(allocated_rows(p))},
         {"positions", Json(launch.positions)},
         {"padded", optional_json(launch.list ? std::optional(launch.list->padded) : std::nullopt)},
         {"start", json_ints(launch.start)},
         {"end", json_ints(launch.end)},
         {"blocks", Json(fill.blocks)},
         {"covered_rows", Json(fill.covered_rows)},
         {"fill", Json(fill.fill())},
         {"gemms", gemms_json(p)},
         {"metadata_bytes", Json(metadata_bytes(launch, p.layout))},
         {"skew", Json(measured_skew(counts))}});
    return section;
}

Section list_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    const Alignment& list = *launch.list;
    Section section{.id = "list", .title = "The aligned index list"};
    section.notes.push_back(
        p.order == RowOrder::kSmallBatch
            ? fmt::format("Order of the traced kernel's small path: {} threads walk the rows in "
                          "steps of {}; within a group rows stand by thread, then by step.",
                          std::max<std::int64_t>(p.local() + 1, 32),
                          std::max<std::int64_t>(p.local() + 1, 32))
            : "Rows of a group ascend.");
    section.notes.push_back(fmt::format("Padding is written as row {}, which is none.", list.rows));
    section.tables.push_back(groups_table(input, list));
    note_hidden(input, std::ssize(list_groups(list)), "groups", section);
    JsonArray experts;
    for (std::int32_t id : list.expert_ids)
        experts.push_back(
            optional_json(id == kUnsetExpert ? std::nullopt : std::optional<std::int64_t>(id)));
    section.json = Json::object({{"rows", Json(list.rows)},
                                 {"padded", Json(list.padded)},
                                 {"sorted_ids", json_ints(list.sorted_ids)},
                                 {"expert_ids", Json(std::move(experts))}});
    return section;
}

} // namespace lr::report
