// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"
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

} // namespace lr::report
