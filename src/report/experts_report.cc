// SPDX-License-Identifier: Apache-2.0
#include "report/experts_report.h"

#include "core/version.h"
#include "report/experts_parts.h"
#include "report/html_page.h"

#include <algorithm>

namespace lr::report {
namespace {

using namespace experts;

Json problem_json(const ExpertsInput& input) {
    const Problem& p = input.problem;
    return Json::object(
        {{"source", Json(input.source)},
         {"layout", Json(layout_name(p.layout))},
         {"experts", Json(p.local())},
         {"capacity", Json(p.capacity)},
         {"tokens", Json(p.routing.tokens())},
         {"top_k", optional_json(input.top_k > 0 ? std::optional(input.top_k) : std::nullopt)},
         {"ranks", Json(p.ranks)},
         {"align", Json(p.alignment)},
         {"hidden", Json(p.hidden)},
         {"width", Json(p.width)},
         {"bm", Json(p.tiling.rows)},
         {"bn", Json(p.tiling.columns)},
         {"bk", Json(p.tiling.depth)},
         {"group", Json(p.tiling.group)},
         {"ctas", Json(p.ctas)},
         {"format", Json(numerics::weight_format_name(p.weights))},
         {"small_batch_order", Json(p.order == RowOrder::kSmallBatch)},
         {"gbs", Json(input.machine.bytes_per_second / 1e9)},
         {"tflops", Json(input.machine.flops_per_second / 1e12)}});
}

// The figure that stands above a section's tables.
std::string figure_of(const ExpertsInput& input, std::string_view id) {
    return id == "rows"       ? rows_figure(input)
           : id == "programs" ? programs_figure(input)
           : id == "schedule" ? schedule_figure(input)
                              : "";
}

std::vector<std::pair<std::string, std::string>> facts(const ExpertsInput& input) {
    const Launch launch = gate_up_launch(input.problem);
    const BlockFill fill = row_fill(launch);
    const Programs programs = count_programs(launch);
    const Work work = measure(input.problem);
    return {
        {"live rows", group_digits(fill.live_rows)},
        {"allocated rows", group_digits(allocated_rows(input.problem))},
        {"rows covered by tiles", group_digits(fill.covered_rows)},
        {"live share of them", percent(fill.fill())},
        {"programs a GEMM", group_digits(programs.launched)},
        {"of which compute", group_digits(programs.computing)},
        {"experts with rows", fmt::format("{} of {}", work.live_experts, input.problem.local())},
        {"floor", microseconds(floor_seconds(work, input.machine))}};
}

} // namespace

Result<std::vector<Section>> experts_sections(const ExpertsInput& input) {
    std::vector<Section> sections = {rows_section(input)};
    if (uses_index_list(input.problem.layout))
        sections.push_back(list_section(input));
    sections.push_back(programs_section(input));
    sections.push_back(schedule_section(input));
    sections.push_back(capacity_section(input));
    sections.push_back(bytes_section(input));
    if (input.halves) {
        LR_TRY_ASSIGN(Section section, split_section(input));
        sections.push_back(std::move(section));
    }
    if (input.times)
        sections.push_back(times_section(input));
    if (input.sweep) {
        LR_TRY_ASSIGN(Section section, sweep_section(input));
        sections.push_back(std::move(section));
    }
    if (!input.elements.empty()) {
        LR_TRY_ASSIGN(Section section, element_section(input));
        sections.push_back(std::move(section));
    }
    return sections;
}

std::string experts_headline(const ExpertsInput& input) {
    const Problem& p = input.problem;
    return fmt::format("{} live rows of {} experts (from {}), {}, capacity {}; D = {}, I = {}, {}; "
                       "tiles {} x {} x {}",
                       group_digits(row_fill(gate_up_launch(p)).live_rows), p.local(), input.source,
                       layout_name(p.layout), group_digits(p.capacity), p.hidden, p.width,
                       numerics::weight_format_name(p.weights), p.tiling.rows, p.tiling.columns,
                       p.tiling.depth);
}

std::string experts_text(const ExpertsInput& input, const std::vector<Section>& sections) {
    std::string text = experts_headline(input) + "\n";
    for (const Section& section : sections) {
        text += fmt::format("\n{}\n{}\n", section.title, std::string(section.title.size(), '='));
        for (std::size_t i = 0; i < section.tables.size(); ++i)
            text += (i ? "\n" : "") + table_text(section.tables[i]);
        if (!section.notes.empty())
            text += "\n";
        for (const std::string& note : section.notes)
            text += note + "\n";
    }
    return text;
}

std::string experts_json(const ExpertsInput& input, const std::vector<Section>& sections) {
    std::vector<JsonMember> members = {{"version", Json(std::string_view(kVersion))},
                                       {"problem", problem_json(input)}};
    for (const Section& section : sections)
        members.push_back({section.id, section.json});
    return to_json_string(Json::object(std::move(members)), 1) + "\n";
}

std::string experts_html(const ExpertsInput& input, const std::vector<Section>& sections) {
    HtmlPage page{.title = "Experts: rows, tiles and bytes",
                  .lead = experts_headline(input),
                  .body = html_facts(facts(input)),
                  .style = std::string(figure_style()),
                  .script = ""};
    for (const Section& section : sections) {
        std::string content = figure_of(input, section.id);
        for (const std::string& note : section.notes)
            content += fmt::format("<p>{}</p>\n", html_escape(note));
        for (const Table& table : section.tables)
            content += html_table(table);
        page.body += html_section(section.id, section.title, content);
    }
    return html_page(page);
}

Problem with_routing(Problem problem, Routing routing) {
    problem.routing = std::move(routing);
    return problem;
}

Launch gate_up_launch(const Problem& problem) {
    return plan_launch(problem, gemms(problem).front().columns);
}

std::int64_t shown_rows(const ExpertsInput& input, std::int64_t count) {
    return input.top == 0 ? count : std::min(count, input.top);
}

void note_hidden(const ExpertsInput& input, std::int64_t count, const char* what,
                 Section& section) {
    if (const std::int64_t hidden = count - shown_rows(input, count); hidden > 0)
        section.notes.push_back(fmt::format("{} more {}: --top 0 shows them.", hidden, what));
}

Json optional_json(std::optional<std::int64_t> value) {
    if (!value)
        return Json();
    return Json(*value);
}

Json json_ints(std::span<const std::int32_t> values) {
    JsonArray array;
    for (std::int32_t value : values)
        array.emplace_back(std::int64_t{value});
    return Json(std::move(array));
}

std::string joined(const std::vector<std::int32_t>& rows, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < std::min(rows.size(), most); ++i)
        text += fmt::format("{}{}", i ? " " : "", rows[i]);
    return rows.size() > most ? fmt::format("{} ... ({} more)", text, rows.size() - most) : text;
}

std::string percent(double share) {
    return fmt::format("{:.1f} %", 100 * share);
}

std::string microseconds(double seconds) {
    return fmt::format("{:.3f} us", 1e6 * seconds);
}

} // namespace lr::report
