// SPDX-License-Identifier: Apache-2.0
#include "report/timeline.h"
#include "report/trace_tables.h"

#include <gtest/gtest.h>

namespace lr::report {
namespace {

// Three launches in two lanes: 1 and 2 run together, 3 waits for 2.
trace::Analysis three() {
    trace::Analysis analysis;
    const struct {
        const char *nodes, *lane;
        double start, end;
    } kRows[] = {{"1", "a<b", 0, 4}, {"2", "main", 1, 6}, {"3", "main", 7, 10}};
    for (const auto& row : kRows)
        analysis.rows.push_back({.step = 0,
                                 .layer = 2,
                                 .path = "decode-gdn",
                                 .nodes = row.nodes,
                                 .lane = row.lane,
                                 .start_us = row.start,
                                 .end_us = row.end,
                                 .duration_us = row.end - row.start,
                                 .bytes = 12345,
                                 .floor_pct = 50,
                                 .name = "op & co"});
    analysis.totals = trace::totals_of(analysis.rows);
    analysis.waits = {0, 1, 1};
    analysis.path.nodes = {1, 2};
    analysis.path.slack_us = {3, 0, 0};
    analysis.path.length_us = 10;
    analysis.joins = {{2, 1, 0, 2.0}};
    analysis.communicates = {true, false, false};
    analysis.what_if = {{"8+9", 1, 4.736, 1, 2.56}};
    return analysis;
}

TEST(Timeline, DrawsEveryLaunchOnceWithItsTimes) {
    const std::string page = timeline_page(three(), "a title", "notes");
    std::size_t bars = 0;
    for (std::size_t at = page.find("<rect"); at != std::string::npos;
         at = page.find("<rect", at + 1))
        ++bars;
    EXPECT_EQ(bars, 3u);
    EXPECT_NE(page.find("<g class=\"comm\"><title>L2.1 op &amp; co\n4.000 us, from 0.000 to 4.000\n"
                        "slack 3.000 us, 12,345 bytes, floor 50.0 %"),
              std::string::npos)
        << page;
    EXPECT_NE(page.find("<g class=\"live\"><title>L2.3"), std::string::npos);
    EXPECT_NE(page.find("a&lt;b"), std::string::npos); // a lane's name is text
    EXPECT_EQ(page.find("a<b"), std::string::npos);
}

TEST(Timeline, TablesHoldTheSameFigures) {
    const trace::Analysis analysis = three();
    const auto facts = trace_facts(analysis);
    EXPECT_EQ(facts[1].second, "12.000 us");
    EXPECT_EQ(facts[2].second, "10.000 us");
    EXPECT_EQ(facts[3].second, "3.000 us"); // [1, 4] twice
    EXPECT_EQ(facts[4].second, "1.000 us");
    EXPECT_EQ(facts[5].second, "2 launches, 8.000 us of durations");
    const std::string nodes = table_text(node_table(analysis));
    EXPECT_NE(nodes.find("decode-gdn 2"), std::string::npos);
    EXPECT_NE(table_text(join_table(analysis)).find("2.000"), std::string::npos);
    EXPECT_NE(table_text(what_if_table(analysis)).find("4.736"), std::string::npos);
    EXPECT_NE(table_text(path_table(analysis)).find("L2.3"), std::string::npos);
}

} // namespace
} // namespace lr::report
