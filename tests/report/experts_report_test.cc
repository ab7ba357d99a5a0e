// SPDX-License-Identifier: Apache-2.0
#include "report/experts_report.h"
#include "tests/experts/worked_example.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace lr::report {
namespace {

using namespace experts;

ExpertsInput worked_input() {
    ExpertsInput input;
    input.problem = worked_problem();
    input.source = "the test";
    input.load = {70.0 / 128, 12.0 / 128};
    input.machine = {4.8e12, 1.979e15};
    return input;
}

std::vector<Section> sections_of(const ExpertsInput& input) {
    const auto sections = experts_sections(input);
    EXPECT_TRUE(sections) << sections.error().message();
    return sections ? *sections : std::vector<Section>{};
}

const Section& find(const std::vector<Section>& sections, std::string_view id) {
    static const Section none;
    for (const Section& section : sections)
        if (section.id == id)
            return section;
    ADD_FAILURE() << "no section " << id;
    return none;
}

std::int64_t number(const Json& json, std::string_view key) {
    const Json* value = json.find(key);
    EXPECT_TRUE(value && value->is_int()) << key;
    return value && value->is_int() ? value->as_int() : -1;
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

TEST(ExpertsReport, JsonHoldsTheWorkedExample) {
    ExpertsInput input = worked_input();
    input.top_k = 1;
    input.rank_tokens = 100;
    const std::vector<Section> sections = sections_of(input);
    const Json& rows = find(sections, "rows").json;
    EXPECT_EQ(number(rows, "live_rows"), 82);
    EXPECT_EQ(number(rows, "allocated_rows"), 256);
    EXPECT_EQ(number(rows, "positions"), 445);
    EXPECT_EQ(number(rows, "padded"), 384);
    for (const Json& gemm : rows.find("gemms")->as_array()) {
        EXPECT_EQ(number(gemm, "launched"), 14);
        EXPECT_EQ(number(gemm, "computing"), 6);
        EXPECT_EQ(number(gemm, "zeroing"), 6);
        EXPECT_EQ(number(gemm, "exiting"), 2);
    }
    const JsonArray& ids = find(sections, "list").json.find("sorted_ids")->as_array();
    ASSERT_EQ(ids.size(), 445u);
    EXPECT_EQ(ids[197].as_int(), 65);
    const JsonArray& experts = find(sections, "list").json.find("expert_ids")->as_array();
    ASSERT_EQ(experts.size(), 7u);
    EXPECT_EQ(experts[5].as_int(), 1);
    EXPECT_TRUE(experts[6].is_null()); // the kernel leaves it as it was
    const Json& capacity = find(sections, "capacity").json;
    EXPECT_EQ(number(capacity, "plain"), 256);
    EXPECT_EQ(number(capacity, "compact"), 128);
    EXPECT_EQ(number(capacity, "tight"), 100);
    EXPECT_TRUE(parse_json(experts_json(input, sections), "json"));
}

TEST(ExpertsReport, ProgramTableSaysWhatEachFinds) {
    const Table table = find(sections_of(worked_input()), "programs").tables.front();
    ASSERT_EQ(table.rows.size(), 7u);
    EXPECT_EQ(table.rows[2], (std::vector<std::string>{"2", "2 9", "[128, 192)", "-1",
                                                       "46 dead rows, 18 of padding", "zeroes"}));
    EXPECT_EQ(table.rows[3], (std::vector<std::string>{"3", "3 10", "[192, 256)", "0",
                                                       "64 live rows", "computes"}));
    EXPECT_EQ(table.rows[6], (std::vector<std::string>{"6", "6 13", "[384, 448)", "-",
                                                       "behind position 384", "exits"}));
}

TEST(ExpertsReport, QuestionsThatAreAskedHaveSections) {
    ExpertsInput input = worked_input();
    const auto ids = [](const std::vector<Section>& sections) {
        std::vector<std::string> names;
        for (const Section& section : sections)
            names.push_back(section.id);
        return names;
    };
    EXPECT_EQ(ids(sections_of(input)), (std::vector<std::string>{"rows", "list", "programs",
                                                                 "schedule", "capacity", "bytes"}));
    const Routing half = deal_routing(std::vector<std::int32_t>{35, 6}, 64, 2);
    input.problem.layout = Layout::kEndpoints;
    input.halves.emplace(half, half);
    input.times = SplitTimes{102.10, 153.67, 150.78};
    input.sweep = Sweep{"bm", {8, 16, 32, 64}};
    input.elements = {{65, 129, 130}, {65, 129, 2}};
    const std::vector<Section> sections = sections_of(input);
    EXPECT_EQ(ids(sections),
              (std::vector<std::string>{"rows", "programs", "schedule", "capacity", "bytes",
                                        "split", "times", "sweep", "elements"}));
    const JsonArray& swept = find(sections, "sweep").json.as_array();
    ASSERT_EQ(swept.size(), 4u);
    EXPECT_EQ(number(swept[0], "computing"), 22);
    EXPECT_EQ(number(swept[3], "computing"), 6);
    EXPECT_EQ(number(*find(sections, "split").json.find("halves"), "tiles"), 8);
    EXPECT_EQ(number(*find(sections, "split").json.find("whole"), "tiles"), 6);
    // Feature 130 is none of the down GEMM's; feature 2 is one of both.
    EXPECT_EQ(find(sections, "elements").json.as_array().size(), 3u);
    const std::string text = experts_text(input, sections);
    EXPECT_NE(text.find("T_B - T_A = 51.57 ms, T_B - T_C = 2.89 ms: the split does not pay."),
              text.npos);
}

TEST(ExpertsReport, ErrorsOfTheQuestionsNameThem) {
    ExpertsInput input = worked_input();
    input.sweep = Sweep{"bm", {64, 0}};
    EXPECT_EQ(experts_sections(input).error().message(),
              "--sweep bm=0: tile rows (BM): expected 1 to 65536, got 0");
    input = worked_input();
    input.elements = {{100, 0, 0}};
    EXPECT_EQ(experts_sections(input).error().message(),
              "element: expected a row of an expert, got row 100, which is dead");
    input = worked_input();
    const Routing half = deal_routing(std::vector<std::int32_t>{35, 5}, 64, 2);
    input.halves.emplace(half, half);
    EXPECT_EQ(experts_sections(input).error().message(),
              "split: expert 1: expected halves that add up to 12 rows, got 5 + 5");
}

TEST(ExpertsReport, TablesLeaveOutRowsAndSaySo) {
    ExpertsInput input = worked_input();
    input.top = 1;
    const std::vector<Section> sections = sections_of(input);
    const Section& rows = find(sections, "rows");
    EXPECT_EQ(rows.tables.back().rows.size(), 1u);
    EXPECT_EQ(rows.notes.back(), "1 more experts: --top 0 shows them.");
    EXPECT_EQ(find(sections, "programs").json.find("blocks")->as_array().size(), 7u);
    input.top = 0;
    EXPECT_EQ(find(sections_of(input), "rows").tables.back().rows.size(), 2u);
}

TEST(ExpertsReport, PageDrawsTheTileMapAndRepeatsItInTables) {
    const ExpertsInput input = worked_input();
    const std::vector<Section> sections = sections_of(input);
    const std::string html = experts_html(input, sections);
    for (const Section& section : sections) {
        EXPECT_NE(html.find(fmt::format("<h2 id=\"{}\">", section.id)), html.npos) << section.id;
        for (const Table& table : section.tables)
            EXPECT_NE(html.find(fmt::format("<caption>{}</caption>", table.caption)), html.npos);
    }
    // 14 cells: expert 0's tail is live in 6 of 64 rows, 9.375 %.
    EXPECT_EQ(count(html, "<div>program "), 14u);
    EXPECT_EQ(count(html, "<i class=\"m live\" style=\"width:9.375%\"></i>"
                          "<i class=\"m pad\" style=\"width:90.625%\"></i>"),
              2u);
    EXPECT_NE(html.find("12 live, 52 padded"), html.npos);
    EXPECT_NE(html.find("<b>CTA 0</b><span>T0 e0</span><span>T2 e0</span><span>T4 e1</span>"),
              html.npos);
}

TEST(ExpertsReport, PageOfManyProgramsDrawsASquareForEachRowBlock) {
    ExpertsInput input = worked_input();
    input.problem.tiling.rows = 1;
    input.problem.order = RowOrder::kAscending;
    const std::string html = experts_html(input, sections_of(input));
    // Q = 256 rows, a block each.
    EXPECT_EQ(count(html, "<span><i class=\"m "), 256u);
    EXPECT_EQ(count(html, "<div>program "), 0u);
}

TEST(ExpertsReport, MapOfVeryManyBlocksDrawsThoseThatCompute) {
    ExpertsInput input = worked_input();
    input.problem.capacity = 4096;
    input.problem.tiling.rows = 1;
    input.problem.order = RowOrder::kAscending;
    const std::vector<Section> sections = sections_of(input);
    const std::string html = experts_html(input, sections);
    EXPECT_EQ(count(html, "<span><i class=\"m live\""), 82u);
    EXPECT_EQ(count(html, "<span><i class=\"m zero\""), 0u);
    EXPECT_NE(html.find("8,110 more row blocks are not drawn"), html.npos);
    // The table has the 8110 idle blocks in one line.
    const Table table = find(sections, "programs").tables.front();
    EXPECT_EQ(table.rows[0][0], "0 to 8109");
    EXPECT_EQ(table.rows[0][1], "16220 of them");
}

} // namespace
} // namespace lr::report
