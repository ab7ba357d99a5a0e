// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"
#include "core/function_ref.h"
#include "experts/endpoints.h"
#include "report/experts_parts.h"

#include <algorithm>

namespace lr::report {
namespace {

using namespace experts;

struct Bound {
    const char* name;
    const char* formula;
    std::optional<std::int64_t> rows; // none: something that it needs is not known
    const char* needs;
};

std::vector<Bound> bounds(const ExpertsInput& input) {
    const Problem& p = input.problem;
    std::vector<Bound> all = {
        {"plain", "L * R", p.local() * p.capacity, ""},
        {"compact", "min(L * R, R * K)", std::nullopt, "--top-k"},
        {"tight", "P * b * K", std::nullopt, "--top-k and --rank-tokens"},
        {"endpoints", "least for any routing, aligned to A", std::nullopt, "--top-k"}};
    if (input.top_k == 0)
        return all;
    all[1].rows = compact_rows(p.local(), p.capacity, input.top_k);
    all[3].rows = rows_capacity(p.capacity, input.top_k, p.local(), p.alignment);
    if (input.rank_tokens > 0)
        all[2].rows = tight_rows(p.ranks, input.rank_tokens, input.top_k);
    return all;
}

double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Table weights_table(const Problem& p, const Work& work, double expected) {
    Table table("Weights",
                {{"what", Align::kLeft}, {"experts or blocks"}, {"bytes"}, {"in short"}});
    const std::int64_t one = expert_weight_bytes(p);
    const auto add = [&](const char* what, const std::string& count, double bytes) {
        const auto whole = static_cast<std::int64_t>(bytes);
        table.add({what, count, group_digits(whole), format_bytes(whole)});
    };
    add("one expert, both GEMMs", "1", static_cast<double>(one));
    add("experts with rows, once", group_digits(work.live_experts),
        static_cast<double>(work.weight_bytes));
    add("expected of such a batch", fmt::format("{:.2f}", expected),
        expected * static_cast<double>(one));
    add("as row blocks ask for them", group_digits(work.tile_weight_bytes / one),
        static_cast<double>(work.tile_weight_bytes));
    return table;
}

// Whole, first, second, both halves, and halves over whole.
std::vector<std::string> split_line(const char* what, const Split& split,
                                    FunctionRef<double(const BatchCost&)> value,
                                    std::string (*text)(double)) {
    const double whole = value(split.whole), halves = value(split.halves);
    return {what,
            text(whole),
            text(value(split.first)),
            text(value(split.second)),
            text(halves),
            whole > 0 ? fmt::format("x {:.2f}", halves / whole) : "-"};
}

std::string whole_number(double value) {
    return group_digits(static_cast<std::int64_t>(value + 0.5));
}

Table split_table(const Split& split) {
    Table table("The batch whole, and as two halves", {{"what", Align::kLeft},
                                                       {"whole"},
                                                       {"first"},
                                                       {"second"},
                                                       {"both halves"},
                                                       {"halves / whole"}});
    struct Count {
        const char* what;
        std::int64_t BatchCost::*field;
    };
    const Count counts[] = {{"live rows", &BatchCost::live_rows},
                            {"allocated rows", &BatchCost::allocated_rows},
                            {"row blocks that compute", &BatchCost::blocks},
                            {"rows they cover", &BatchCost::covered_rows},
                            {"tiles of the gate and up GEMM", &BatchCost::tiles},
                            {"rounds on the CTAs", &BatchCost::rounds},
                            {"launches", &BatchCost::launches},
                            {"experts with rows", &BatchCost::experts},
                            {"weight bytes, once an expert", &BatchCost::weight_bytes},
                            {"activation bytes that move", &BatchCost::activation_bytes}};
    for (const Count& count : counts)
        table.add(split_line(
            count.what, split,
            [&](const BatchCost& c) { return static_cast<double>(c.*count.field); }, whole_number));
    table.add(split_line(
        "live share of covered rows", split, [](const BatchCost& c) { return c.fill(); }, percent));
    table.add(split_line(
        "expected experts", split, [](const BatchCost& c) { return c.expected_experts; },
        [](double value) { return fmt::format("{:.2f}", value); }));
    table.add(split_line(
        "expected weight bytes", split, [](const BatchCost& c) { return c.expected_weight_bytes; },
        whole_number));
    table.add(split_line(
        "floor", split, [](const BatchCost& c) { return c.floor_seconds; }, microseconds));
    return table;
}

Json batch_json(const BatchCost& c) {
    return Json::object({{"tokens", Json(c.tokens)},
                         {"live_rows", Json(c.live_rows)},
                         {"allocated_rows", Json(c.allocated_rows)},
                         {"blocks", Json(c.blocks)},
                         {"covered_rows", Json(c.covered_rows)},
                         {"fill", Json(c.fill())},
                         {"tiles", Json(c.tiles)},
                         {"rounds", Json(c.rounds)},
                         {"launches", Json(c.launches)},
                         {"experts", Json(c.experts)},
                         {"expected_experts", Json(c.expected_experts)},
                         {"weight_bytes", Json(c.weight_bytes)},
                         {"expected_weight_bytes", Json(c.expected_weight_bytes)},
                         {"activation_bytes", Json(c.activation_bytes)},
                         {"floor_us", Json(1e6 * c.floor_seconds)}});
}

// The problem with one value of the sweep.
Problem swept(Problem problem, const std::string& key, std::int64_t value) {
    (key == "bm"      ? problem.tiling.rows
     : key == "bn"    ? problem.tiling.columns
     : key == "align" ? problem.alignment
                      : problem.ctas) = value;
    return problem;
}

// Both GEMMs, or the first alone where the sum of the second has no such feature or column.
std::vector<Gemm> followed_gemms(const Problem& p, const ElementRequest& request) {
    const auto [gate_up, down] = gemms(p);
    if (request.depth < down.depth && request.column < down.columns)
        return {gate_up, down};
    return {gate_up};
}

Json element_json(const Gemm& gemm, const Element& e) {
    return Json::object({{"gemm", Json(gemm.name)},
                         {"row", Json(e.row)},
                         {"column", Json(e.column)},
                         {"depth", Json(e.depth)},
                         {"expert", Json(std::int64_t{e.expert})},
                         {"position", Json(e.position)},
                         {"block_row", Json(e.local_row)},
                         {"program", Json(e.program)},
                         {"activation", Json(e.activation)},
                         {"weight", Json(e.weight)},
                         {"activation_scale", Json(e.activation_scale)},
                         {"weight_scale", Json(e.weight_scale)},
                         {"output", Json(e.output)}});
}

} // namespace

Section capacity_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    Section section{.id = "capacity", .title = "Capacity"};
    Table table("Rows that a fixed buffer must have", {{"bound", Align::kLeft},
                                                       {"formula", Align::kLeft},
                                                       {"rows"},
                                                       {"of plain"},
                                                       {"live share"}});
    const std::int64_t plain = p.local() * p.capacity;
    const auto live = static_cast<std::int64_t>(p.routing.pairs()) -
                      std::count(p.routing.ids.begin(), p.routing.ids.end(), -1);
    std::vector<JsonMember> members = {{"live_rows", Json(live)}};
    for (const Bound& bound : bounds(input)) {
        members.push_back({bound.name, optional_json(bound.rows)});
        if (bound.rows)
            table.add({bound.name, bound.formula, group_digits(*bound.rows),
                       percent(share(*bound.rows, plain)), percent(share(live, *bound.rows))});
        else
            table.add({bound.name, bound.formula, fmt::format("needs {}", bound.needs), "-", "-"});
    }
    section.tables.push_back(std::move(table));
    section.notes.push_back(fmt::format(
        "L = {} experts here, R = {} rows an expert{}, P = {} source ranks{}, A = {}.", p.local(),
        p.capacity, input.top_k > 0 ? fmt::format(", K = {}", input.top_k) : "", p.ranks,
        input.rank_tokens > 0 ? fmt::format(" of at most b = {} tokens", input.rank_tokens) : "",
        p.alignment));
    section.notes.push_back("b must bound every source rank: a rank that sends nothing may still "
                            "receive from all others.");
    section.json = Json::object(std::move(members));
    return section;
}

Section bytes_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    const Work work = measure(p);
    const double expected = expected_distinct(input.load, p.routing.tokens());
    const double floor = floor_seconds(work, input.machine);
    Section section{.id = "bytes", .title = "Bytes and the floor"};
    Table walked("Activations, stage by stage",
                 {{"stage", Align::kLeft}, {"rows"}, {"bytes"}, {"for live rows"}, {"live share"}});
    JsonArray json;
    for (const Stage& stage : stages(p)) {
        walked.add({stage.name, group_digits(stage.rows), group_digits(stage.bytes),
                    group_digits(stage.live_bytes), percent(share(stage.live_bytes, stage.bytes))});
        json.push_back(Json::object({{"stage", Json(stage.name)},
                                     {"rows", Json(stage.rows)},
                                     {"bytes", Json(stage.bytes)},
                                     {"live_bytes", Json(stage.live_bytes)}}));
    }
    walked.add({"together", "", group_digits(work.moved_bytes), group_digits(work.live_bytes),
                percent(share(work.live_bytes, work.moved_bytes))});
    section.tables = {std::move(walked), weights_table(p, work, expected)};
    section.notes = {
        fmt::format("Operations: {} for live rows (6 m D I), {} in whole tiles.",
                    group_digits(work.flops), group_digits(work.tile_flops)),
        fmt::format("Floor {}: weights once and live rows at {:.0f} GB/s, or operations at {:.0f} "
                    "TFLOP/s, whichever takes longer. Caches may beat it, nothing else.",
                    microseconds(floor), input.machine.bytes_per_second / 1e9,
                    input.machine.flops_per_second / 1e12)};
    section.json = Json::object({{"stages", Json(std::move(json))},
                                 {"expert_weight_bytes", Json(expert_weight_bytes(p))},
                                 {"live_experts", Json(work.live_experts)},
                                 {"expected_experts", Json(expected)},
                                 {"weight_bytes", Json(work.weight_bytes)},
                                 {"tile_weight_bytes", Json(work.tile_weight_bytes)},
                                 {"live_bytes", Json(work.live_bytes)},
                                 {"moved_bytes", Json(work.moved_bytes)},
                                 {"flops", Json(work.flops)},
                                 {"tile_flops", Json(work.tile_flops)},
                                 {"floor_us", Json(1e6 * floor)}});
    return section;
}

Result<Section> split_section(const ExpertsInput& input) {
    LR_TRY_ASSIGN(const Split split, split_batch(input.problem, input.halves->first,
                                                 input.halves->second, input.load, input.machine));
    const double launches =
        static_cast<double>(split.halves.launches - split.whole.launches) * input.launch_seconds;
    const double needed = break_even_seconds(split, input.launch_seconds);
    Section section{.id = "split", .title = "Split in two micro-batches"};
    section.tables.push_back(split_table(split));
    section.notes = {
        fmt::format("The split pays when it hides more than {} of communication: {} of floor and "
                    "{} for {} more launches, and whatever splitting costs outside the experts.",
                    microseconds(needed),
                    microseconds(split.halves.floor_seconds - split.whole.floor_seconds),
                    microseconds(launches), split.halves.launches - split.whole.launches),
        "Overlap decides when this work is done, not how much of it there is."};
    section.json = Json::object({{"whole", batch_json(split.whole)},
                                 {"first", batch_json(split.first)},
                                 {"second", batch_json(split.second)},
                                 {"halves", batch_json(split.halves)},
                                 {"break_even_us", Json(1e6 * needed)}});
    return section;
}

Section times_section(const ExpertsInput& input) {
    const SplitTimes& times = *input.times;
    Section section{.id = "times", .title = "Whole, split, overlapped"};
    Table table("Time of a token",
                {{"run", Align::kLeft}, {"ms"}, {"against A"}, {"what it shows", Align::kLeft}});
    const auto add = [&](const char* name, double value, const char* what) {
        table.add({name, fmt::format("{:.2f}", value),
                   fmt::format("{:+.2f} %", 100 * relative_change(times.whole, value)), what});
    };
    add("A whole", times.whole, "the batch in one piece");
    add("B split, in series", times.serial, "what splitting costs: T_B - T_A");
    add("C split, overlapped", times.overlapped, "what overlap brings back, net: T_B - T_C");
    section.tables.push_back(std::move(table));
    section.notes = {
        fmt::format("T_B - T_A = {:.2f} ms, T_B - T_C = {:.2f} ms: the split {}.", times.tax(),
                    times.gain(), times.pays() ? "pays" : "does not pay"),
        "T_B - T_C mixes hidden waiting, contention and synchronisation; it is not the "
        "communication that was hidden."};
    section.json = Json::object({{"whole_ms", Json(times.whole)},
                                 {"serial_ms", Json(times.serial)},
                                 {"overlapped_ms", Json(times.overlapped)},
                                 {"tax_ms", Json(times.tax())},
                                 {"gain_ms", Json(times.gain())},
                                 {"pays", Json(times.pays())}});
    return section;
}

Result<Section> sweep_section(const ExpertsInput& input) {
    const Sweep& sweep = *input.sweep;
    Section section{.id = "sweep", .title = "Sweep of " + sweep.key};
    Table table(fmt::format("The same rows for each {}", sweep.key), {{sweep.key},
                                                                      {"row blocks"},
                                                                      {"rows covered"},
                                                                      {"live share"},
                                                                      {"computing"},
                                                                      {"positions"},
                                                                      {"launched"},
                                                                      {"rounds"},
                                                                      {"weight bytes asked"}});
    JsonArray json;
    for (std::int64_t value : sweep.values) {
        const Problem p = swept(input.problem, sweep.key, value);
        if (const Status status = check(p); !status.ok())
            return fail(status.with_context(fmt::format("--sweep {}={}", sweep.key, value)));
        const Launch launch = gate_up_launch(p);
        const BlockFill fill = row_fill(launch);
        const Programs programs = count_programs(launch);
        const std::int64_t rounds = round_count(programs.computing, p.ctas);
        const std::int64_t asked = measure(p).tile_weight_bytes;
        table.add({fmt::format("{}", value), group_digits(fill.blocks),
                   group_digits(fill.covered_rows), percent(fill.fill()),
                   group_digits(programs.computing), group_digits(launch.positions),
                   group_digits(programs.launched), group_digits(rounds), group_digits(asked)});
        json.push_back(Json::object({{sweep.key, Json(value)},
                                     {"blocks", Json(fill.blocks)},
                                     {"covered_rows", Json(fill.covered_rows)},
                                     {"fill", Json(fill.fill())},
                                     {"computing", Json(programs.computing)},
                                     {"positions", Json(launch.positions)},
                                     {"launched", Json(programs.launched)},
                                     {"rounds", Json(rounds)},
                                     {"tile_weight_bytes", Json(asked)}}));
    }
    section.tables.push_back(std::move(table));
    section.notes.push_back("Arithmetic, not a measurement: smaller blocks cover fewer empty rows "
                            "and ask for the same weights more often.");
    section.json = Json(std::move(json));
    return section;
}

Result<Section> element_section(const ExpertsInput& input) {
    const Problem& p = input.problem;
    Section section{.id = "elements", .title = "Products, followed to their addresses"};
    Table table("Element offsets, all buffers dense", {{"GEMM", Align::kLeft},
                                                       {"row"},
                                                       {"column"},
                                                       {"depth"},
                                                       {"expert"},
                                                       {"program"},
                                                       {"position"},
                                                       {"row of block"},
                                                       {"activation"},
                                                       {"weight"},
                                                       {"its scale"},
                                                       {"weight's scale"},
                                                       {"output"}});
    JsonArray json;
    for (const ElementRequest& request : input.elements)
        for (const Gemm& gemm : followed_gemms(p, request)) {
            LR_TRY_ASSIGN(const Element e,
                          trace_element(p, gemm, request.row, request.column, request.depth));
            table.add({gemm.name, group_digits(e.row), group_digits(e.column),
                       group_digits(e.depth), fmt::format("{}", e.expert), group_digits(e.program),
                       e.position < 0 ? "-" : group_digits(e.position), group_digits(e.local_row),
                       group_digits(e.activation), group_digits(e.weight),
                       group_digits(e.activation_scale), group_digits(e.weight_scale),
                       group_digits(e.output)});
            json.push_back(element_json(gemm, e));
        }
    section.tables.push_back(std::move(table));
    section.json = Json(std::move(json));
    return section;
}

} // namespace lr::report
