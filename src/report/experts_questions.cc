// SPDX-License-Identifier: Apache-2.0
#include "core/function_ref.h"
#include "report/experts_parts.h"

namespace lr::report {
namespace {

using namespace experts;

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
