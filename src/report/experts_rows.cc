// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"
#include "experts/endpoints.h"
#include "experts/tiles.h"
#include "report/experts_parts.h"

#include <algorithm>
#include <span>

namespace lr::report {
namespace {

using namespace experts;

Json json_ints(std::span<const std::int32_t> values) {
    JsonArray array;
    for (std::int32_t value : values)
        array.emplace_back(std::int64_t{value});
    return Json(std::move(array));
}

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

std::string joined(const std::vector<std::int32_t>& rows, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < std::min(rows.size(), most); ++i)
        text += fmt::format("{}{}", i ? " " : "", rows[i]);
    return rows.size() > most ? fmt::format("{} ... ({} more)", text, rows.size() - most) : text;
}

std::string block_range(const Launch& launch, const RowBlock& block) {
    return fmt::format("[{}, {})", block.first, block.first + launch.block);
}

// "46 dead rows and 18 of padding": what the positions of a block hold.
std::string block_holds(const Problem& p, const Launch& launch, const RowBlock& block) {
    const std::int64_t padding = launch.block - block.live;
    if (block.action == Action::kExit)
        return launch.list ? fmt::format("behind position {}", launch.list->padded)
                           : "behind the last live block";
    if (block.action == Action::kZero && !launch.list)
        return "no expert: capacity behind the last end";
    const char* rows = block.action == Action::kCompute   ? "live"
                       : p.layout == Layout::kExpertMajor ? "dead"
                                                          : "foreign";
    const std::string text = fmt::format("{} {} rows", block.live, rows);
    return padding == 0 ? text : fmt::format("{}, {} of padding", text, padding);
}

Json block_json(const Launch& launch, const RowBlock& block) {
    return Json::object({{"first", Json(block.first)},
                         {"last", Json(block.first + launch.block)},
                         {"expert", Json(std::int64_t{block.expert})},
                         {"row", Json(std::int64_t{block.row})},
                         {"rows", Json(std::int64_t{block.live})},
                         {"action", Json(action_name(block.action))}});
}

Routing half_of(const Routing& routing) {
    std::vector<std::int32_t> counts = count_rows(routing);
    for (std::int32_t& count : counts)
        count = (count + 1) / 2;
    return deal_routing(counts, routing.tokens(), routing.per_token);
}

// The time of other rows, by rounds.
struct Cases {
    Table table{
        "What other rows do to the time of a GEMM",
        {{"rows", Align::kLeft}, {"tiles"}, {"rounds"}, {"time"}, {"because", Align::kLeft}}};
    JsonArray json;
};

Cases time_cases(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const auto tiles = count_programs(gate_up_launch(p)).computing;
    std::vector<std::pair<const char*, Routing>> others = {
        {"half of each expert's", half_of(p.routing)}};
    if (input.next)
        others.emplace_back("the next replay's", *input.next);
    if (input.halves) {
        others.emplace_back("the first half's", input.halves->first);
        others.emplace_back("the second half's", input.halves->second);
    }
    Cases cases;
    for (const auto& [name, routing] : others) {
        const TimeChange change = time_change(
            tiles, count_programs(gate_up_launch(with_routing(p, routing))).computing, p.ctas);
        cases.table.add({name, fmt::format("{} -> {}", change.tiles_before, change.tiles_after),
                         fmt::format("{} -> {}", change.rounds_before, change.rounds_after),
                         fmt::format("x {:.2f}", change.ratio()), time_case_text(change.kind)});
        cases.json.push_back(Json::object({{"rows", Json(name)},
                                           {"tiles_before", Json(change.tiles_before)},
                                           {"tiles_after", Json(change.tiles_after)},
                                           {"rounds_before", Json(change.rounds_before)},
                                           {"rounds_after", Json(change.rounds_after)},
                                           {"ratio", Json(change.ratio())}}));
    }
    return cases;
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
    constexpr std::size_t kRowsOfALine = 24;
    Table table("Groups of the list", {{"group", Align::kLeft},
                                       {"from"},
                                       {"to"},
                                       {"rows"},
                                       {"padding"},
                                       {"rows in order", Align::kLeft}});
    std::vector<std::int32_t> rows;
    std::int64_t groups = 0, hidden = 0;
    for (std::size_t b = 0; b < launch.blocks.size(); ++b) {
        const RowBlock& block = launch.blocks[b];
        if (block.action == Action::kExit)
            break;
        const std::int64_t first = block.first - block.row / launch.block * launch.block;
        rows.insert(rows.end(), list.sorted_ids.begin() + block.first,
                    list.sorted_ids.begin() + block.first + block.live);
        if (b + 1 < launch.blocks.size() && launch.blocks[b + 1].action != Action::kExit &&
            launch.blocks[b + 1].expert == block.expert)
            continue;
        const std::int64_t end = block.first + launch.block;
        if (groups++ < shown_rows(input, p.local() + 1))
            table.add({block.expert < 0 ? "none (-1)" : fmt::format("expert {}", block.expert),
                       group_digits(first), group_digits(end), group_digits(std::ssize(rows)),
                       group_digits(end - first - std::ssize(rows)), joined(rows, kRowsOfALine)});
        else
            ++hidden;
        rows.clear();
    }
    section.tables.push_back(std::move(table));
    if (hidden > 0)
        section.notes.push_back(fmt::format("{} more groups: --top 0 shows them.", hidden));
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

Section programs_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    const auto blocks = std::ssize(launch.blocks);
    Section section{.id = "programs", .title = "Programs of one launch"};
    section.notes.push_back(fmt::format(
        "Each row block has a program for each of the {} column blocks; up to {} row blocks stand "
        "together at one column block before the next (a number, not an order in time).",
        launch.column_blocks, p.tiling.group));
    Table table("Row blocks of the gate and up GEMM", {{"block"},
                                                       {"programs", Align::kLeft},
                                                       {"positions", Align::kLeft},
                                                       {"expert"},
                                                       {"holds", Align::kLeft},
                                                       {"action", Align::kLeft}});
    JsonArray json;
    for (std::int32_t m = 0; m < blocks; ++m) {
        const RowBlock& block = launch.blocks[static_cast<std::size_t>(m)];
        json.push_back(block_json(launch, block));
        if (m >= shown_rows(input, blocks))
            continue;
        std::vector<std::int32_t> pids;
        for (std::int32_t n = 0; n < launch.column_blocks; ++n)
            pids.push_back(static_cast<std::int32_t>(program_of(launch, p.tiling, m, n)));
        table.add({fmt::format("{}", m), joined(pids, 6), block_range(launch, block),
                   block.action == Action::kExit ? "-" : fmt::format("{}", block.expert),
                   block_holds(p, launch, block), action_name(block.action)});
    }
    section.tables.push_back(std::move(table));
    note_hidden(input, blocks, "row blocks", section);
    std::vector<JsonMember> members = {{"column_blocks", Json(launch.column_blocks)},
                                       {"blocks", Json(std::move(json))}};
    if (input.next) {
        const Programs now = count_programs(launch),
                       then = count_programs(gate_up_launch(with_routing(p, *input.next)));
        Table replay("The same launch, replayed with other counts",
                     {{"replay", Align::kLeft}, {"launched"}, {"compute"}, {"zero"}, {"exit"}});
        for (const auto& [name, one] : {std::pair{"this", now}, std::pair{"next", then}})
            replay.add({name, group_digits(one.launched), group_digits(one.computing),
                        group_digits(one.zeroing), group_digits(one.exiting)});
        section.tables.push_back(std::move(replay));
        members.push_back({"next", Json::object({{"counts", json_ints(count_rows(*input.next))},
                                                 {"launched", Json(then.launched)},
                                                 {"computing", Json(then.computing)},
                                                 {"zeroing", Json(then.zeroing)},
                                                 {"exiting", Json(then.exiting)}})});
    }
    section.json = Json::object(std::move(members));
    return section;
}

Section schedule_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    const std::vector<WorkTile> tiles = work_list(launch);
    const auto count = std::ssize(tiles);
    Section section{.id = "schedule", .title = "Tiles on CTAs"};
    section.notes.push_back(fmt::format(
        "{} tiles on {} CTAs: {} rounds, the last with {} of them at work. Tile t goes to CTA t "
        "mod P; a tile is taken to last as long as any other.",
        count, p.ctas, round_count(count, p.ctas), percent(last_round_fill(count, p.ctas))));
    Table table("Tiles of each CTA",
                {{"CTA"}, {"tiles"}, {"live rows"}, {"tiles in order", Align::kLeft}});
    JsonArray ctas;
    for (std::int64_t c = 0; c < p.ctas; ++c) {
        const std::vector<std::int32_t> mine = tiles_of_cta(count, p.ctas, c);
        std::int64_t rows = 0;
        std::string order;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            const WorkTile& tile = tiles[static_cast<std::size_t>(mine[i])];
            rows += launch.blocks[static_cast<std::size_t>(tile.block)].live;
            if (i < 12)
                order += fmt::format("{}T{}", i ? " > " : "", mine[i]);
        }
        if (mine.size() > 12)
            order += fmt::format(" > ... ({} more)", mine.size() - 12);
        ctas.push_back(json_ints(mine));
        if (c < shown_rows(input, p.ctas))
            table.add({fmt::format("{}", c), group_digits(std::ssize(mine)), group_digits(rows),
                       std::move(order)});
    }
    Cases cases = time_cases(input);
    section.tables = {std::move(table), std::move(cases.table)};
    note_hidden(input, p.ctas, "CTAs", section);
    section.json = Json::object({{"ctas", Json(p.ctas)},
                                 {"tiles", Json(count)},
                                 {"rounds", Json(round_count(count, p.ctas))},
                                 {"last_round_fill", Json(last_round_fill(count, p.ctas))},
                                 {"cases", Json(std::move(cases.json))},
                                 {"tiles_of_cta", Json(std::move(ctas))}});
    return section;
}

} // namespace lr::report
