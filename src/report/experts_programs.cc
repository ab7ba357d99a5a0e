// SPDX-License-Identifier: Apache-2.0
#include "experts/schedule.h"
#include "report/experts_parts.h"

namespace lr::report {
namespace {

using namespace experts;

// Row blocks [first, last) that do the same: without an expert and as full as one another.
struct Run {
    std::int64_t first = 0, last = 0;
};

// Blocks one by one, but for runs of more than a few that compute nothing.
std::vector<Run> block_runs(const Launch& launch) {
    constexpr std::int64_t kFew = 3;
    const auto idle = [&](std::int64_t m, std::int64_t n) {
        const RowBlock& a = launch.blocks[static_cast<std::size_t>(m)];
        const RowBlock& b = launch.blocks[static_cast<std::size_t>(n)];
        return a.action != Action::kCompute && a.action == b.action && a.live == b.live;
    };
    std::vector<Run> runs;
    for (std::int64_t m = 0; m < std::ssize(launch.blocks);) {
        std::int64_t end = m + 1;
        while (end < std::ssize(launch.blocks) && idle(m, end))
            ++end;
        end = end - m > kFew ? end : m + 1;
        runs.push_back({m, end});
        m = end;
    }
    return runs;
}

std::string positions_of(const Launch& launch, Run run) {
    if (!launch.list && launch.blocks[static_cast<std::size_t>(run.first)].action == Action::kExit)
        return "-";
    return fmt::format("[{}, {})", launch.blocks[static_cast<std::size_t>(run.first)].first,
                       launch.blocks[static_cast<std::size_t>(run.last - 1)].first + launch.block);
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

Table blocks_table(const ExpertsInput& input, const Launch& launch, const std::vector<Run>& runs) {
    const Problem& p = input.problem;
    Table table("Row blocks of the gate and up GEMM", {{"block"},
                                                       {"programs", Align::kLeft},
                                                       {"positions", Align::kLeft},
                                                       {"expert"},
                                                       {"holds", Align::kLeft},
                                                       {"action", Align::kLeft}});
    for (std::int64_t i = 0; i < shown_rows(input, std::ssize(runs)); ++i) {
        const Run run = runs[static_cast<std::size_t>(i)];
        const RowBlock& block = launch.blocks[static_cast<std::size_t>(run.first)];
        const bool one = run.last - run.first == 1;
        std::vector<std::int32_t> pids;
        for (std::int64_t n = 0; one && n < launch.column_blocks; ++n)
            pids.push_back(static_cast<std::int32_t>(program_of(launch, p.tiling, run.first, n)));
        table.add(
            {one ? fmt::format("{}", run.first) : fmt::format("{} to {}", run.first, run.last - 1),
             one ? joined(pids, 6)
                 : fmt::format("{} of them", (run.last - run.first) * launch.column_blocks),
             positions_of(launch, run),
             block.action == Action::kExit ? "-" : fmt::format("{}", block.expert),
             fmt::format("{}{}", one ? "" : "each ", block_holds(p, launch, block)),
             action_name(block.action)});
    }
    return table;
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

Section programs_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Launch launch = gate_up_launch(p);
    Section section{.id = "programs", .title = "Programs of one launch"};
    section.notes.push_back(fmt::format(
        "Each row block has a program for each of the {} column blocks; up to {} row blocks stand "
        "together at one column block before the next (a number, not an order in time).",
        launch.column_blocks, p.tiling.group));
    const std::vector<Run> runs = block_runs(launch);
    section.tables.push_back(blocks_table(input, launch, runs));
    note_hidden(input, std::ssize(runs), "lines", section);
    JsonArray json;
    for (const RowBlock& block : launch.blocks)
        json.push_back(block_json(launch, block));
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
