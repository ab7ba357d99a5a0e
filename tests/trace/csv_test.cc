// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"
#include "trace/csv.h"

#include <gtest/gtest.h>

namespace lr::trace {
namespace {

const std::string kHead =
    "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct\n";

void expect_refused(const std::string& text, std::initializer_list<const char*> fragments) {
    const auto rows = parse_csv(text, "t.csv");
    ASSERT_FALSE(rows) << text;
    for (const char* fragment : fragments)
        EXPECT_NE(rows.error().message().find(fragment), std::string::npos)
            << "expected \"" << fragment << "\" in: " << rows.error().message();
}

TEST(TraceCsv, ReadsBackWhatItWrites) {
    const std::vector<Row> rows = {{.step = 0,
                                    .layer = -1,
                                    .path = "prologue",
                                    .nodes = "1",
                                    .lane = "main",
                                    .start_us = 0,
                                    .end_us = 1.25,
                                    .duration_us = 1.25,
                                    .bytes = 4096,
                                    .floor_pct = 12.5},
                                   {.step = 0,
                                    .layer = 4,
                                    .path = "decode-gdn",
                                    .nodes = "8+9",
                                    .lane = "stream \"7\", high",
                                    .start_us = 1.5,
                                    .end_us = 2,
                                    .duration_us = 0.5}};
    const std::string text = to_csv(rows);
    EXPECT_EQ(text, kHead + "0,-1,prologue,1,main,0.000,1.250,1.250,4096,12.5\n"
                            "0,4,decode-gdn,8+9,\"stream \"\"7\"\", high\",1.500,2.000,0.500,,\n");
    const auto back = parse_csv(text, "t.csv");
    ASSERT_TRUE(back) << back.error().message();
    ASSERT_EQ(back->size(), 2u);
    EXPECT_EQ((*back)[1].lane, "stream \"7\", high");
    EXPECT_EQ((*back)[1].bytes, -1);
    EXPECT_EQ((*back)[0].bytes, 4096);
    EXPECT_EQ(to_csv(*back), text);
    EXPECT_EQ(label((*back)[1]), "step 0 L4.8+9");
}

TEST(TraceCsv, NamesWhatIsWrongAndWhere) {
    expect_refused("", {"t.csv", "column names", "empty"});
    expect_refused("step,layer\n0,1\n",
                   {"t.csv", "expected columns path, nodes", "got step, layer"});
    expect_refused(kHead, {"at least one launch"});
    expect_refused(kHead + "0,1,decode-gdn,1,main,0,1\n", {"t.csv:2", "10 fields", "got 7"});
    expect_refused(kHead + "0,1,decode-gdn,1,main,zero,1,1,,\n", {"t.csv:2", "start_us", "zero"});
    expect_refused(kHead + "0.5,1,decode-gdn,1,main,0,1,1,,\n", {"t.csv:2", "step", "whole"});
    expect_refused(kHead + "0,1,decode-gdn,1,main,0,inf,1,,\n", {"t.csv:2", "end_us", "inf"});
    expect_refused(kHead + "0,1,decode-gdn,1,\"main,0,1,1,,\n", {"t.csv:2", "closing quote"});
}

TEST(TraceCsv, RefusesTimesThatRunBackwards) {
    expect_refused(kHead + "0,1,decode-gdn,7,main,5,4,1,,\n",
                   {"t.csv:2", "step 0 L1.7", "end_us >= start_us 5", "got 4"});
    expect_refused(kHead + "0,1,decode-gdn,7,main,5,6,2,,\n", {"t.csv:2", "duration_us", "1.000"});
    expect_refused(kHead + "0,1,decode-gdn,7,main,5,6,1,,\n0,1,decode-gdn,8,main,4,7,3,,\n",
                   {"t.csv:3", "step 0 L1.8", "backwards", "got 4"});
}

TEST(TraceCsv, PassesOverCommentsAndOtherColumns) {
    const auto text =
        read_text_file(std::string(LR_SOURCE_DIR) + "/tests/fixtures/decode_gdn_layer.csv");
    ASSERT_TRUE(text);
    const auto rows = parse_csv(*text, "fixture");
    ASSERT_TRUE(rows) << rows.error().message();
    EXPECT_EQ(rows->size(), 24u);
}

} // namespace
} // namespace lr::trace
