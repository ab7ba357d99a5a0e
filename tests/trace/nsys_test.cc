// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"
#include "trace/analysis.h"
#include "trace/nsys.h"

#include <gtest/gtest.h>

namespace lr::trace {
namespace {

std::string text_of(const std::string& path) {
    const auto text = read_text_file(std::string(LR_SOURCE_DIR) + "/" + path);
    EXPECT_TRUE(text);
    return *text;
}

TEST(NsysImport, GivesKernelsToTheNodesOfEachLayer) {
    const auto rules = parse_rules(text_of("tools/nsys/sglang.rules"), "rules");
    ASSERT_TRUE(rules) << rules.error().message();
    const std::string file = text_of("tests/fixtures/cuda_gpu_trace.csv");
    EXPECT_TRUE(is_nsys(file));
    const auto trace = parse_nsys(file, "nsys.csv", *rules);
    ASSERT_TRUE(trace) << trace.error().message();
    ASSERT_EQ(trace->rows.size(), 48u); // two layers; the copy is no kernel
    ASSERT_EQ(trace->unnamed.size(), 1u);
    EXPECT_EQ(trace->unnamed[0].first, "some_unrelated_kernel");
    std::vector<Row> first(trace->rows.begin(), trace->rows.begin() + 24);
    EXPECT_NEAR(totals_of(first).sum, 235.680, 5e-4);
    EXPECT_NEAR(totals_of(first).span, 211.202, 5e-4);
    // By start, as in the traced list: kernel and node by the names of both.
    const struct {
        std::size_t row;
        const char *nodes, *lane;
    } kSome[] = {{0, "1", "stream 7"},   {1, "2", "stream 7"},     {2, "3", "stream 7"},
                 {10, "11", "stream 7"}, {11, "12", "stream 277"}, {23, "24", "stream 7"}};
    for (const auto& some : kSome) {
        EXPECT_EQ(first[some.row].nodes, some.nodes);
        EXPECT_EQ(first[some.row].lane, some.lane);
        EXPECT_EQ(first[some.row].path, "decode-gdn");
    }
    EXPECT_EQ(trace->rows[24].layer, 1);
    EXPECT_EQ(trace->rows[24].nodes, "1");
}

TEST(NsysImport, PatternsFit) {
    EXPECT_TRUE(fits("*bmm*swiglu*", "bmm_e2m1_swiglu"));
    EXPECT_TRUE(fits("a*b*c", "axxbyyc"));
    EXPECT_FALSE(fits("a*b*c", "axxbyy"));
    EXPECT_FALSE(fits("nvjet", "nvjet_splitk"));
    EXPECT_TRUE(fits("*", ""));
}

TEST(NsysImport, NamesWhatIsWrongWithRules) {
    const auto refused = [](const char* text, const char* fragment) {
        const auto rules = parse_rules(text, "r");
        ASSERT_FALSE(rules) << text;
        EXPECT_NE(rules.error().message().find(fragment), std::string::npos)
            << rules.error().message();
    };
    refused("", "got none");
    refused("1 *gemm*\n", "r:1: expected \"path NAME\" before");
    refused("path decode-gdn\n# nothing\n", "at least one rule");
    refused("path decode-gdn\none *gemm*\n", "r:2: expected \"path NAME\" or \"NUMBER PATTERN\"");
    refused("path decode-gdn\n1\n", "r:2:");
}

TEST(NsysImport, TakesTheKernelsOfOneDevice) {
    const std::string two = "Start (ns),Duration (ns),GrdX,Device,Strm,Name\n"
                            "0,5,1,GPU (0),7,a\n"
                            "2,5,,GPU (1),7,[memcpy]\n" // no kernel
                            "9,5,1,GPU (1),7,a\n";
    const auto rules = parse_rules("path decode-gdn\n1 a\n", "r");
    ASSERT_TRUE(rules);
    const auto trace = parse_nsys(two, "two.csv", *rules);
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().message(),
              "two.csv:4: expected kernels of one device, \"GPU (0)\" as above, got \"GPU (1)\"");
}

TEST(NsysImport, NamesWhatIsWrongWithTheFile) {
    const auto rules = *parse_rules("path decode-gdn\n1 *\n", "r");
    const auto missing = parse_nsys("Start (ns),Duration (ns),Name\n1,2,k\n", "n.csv", rules);
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message().find("n.csv: expected column Strm"), std::string::npos)
        << missing.error().message();
    const auto negative =
        parse_nsys("Start (ns),Duration (ns),Strm,Name\n5,-2,7,k\n", "n.csv", rules);
    ASSERT_FALSE(negative);
    EXPECT_NE(negative.error().message().find("n.csv:2: Duration (ns): expected >= 0, got -2"),
              std::string::npos)
        << negative.error().message();
}

} // namespace
} // namespace lr::trace
