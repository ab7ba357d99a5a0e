// SPDX-License-Identifier: Apache-2.0
//
// The traced layer of the kernel graph's part 3.6 (tests/fixtures/decode_gdn_layer.csv says which
// of its times the seed gives): what is on the critical path, and what each candidate can save
// there.
#include "core/text_file.h"
#include "report/traced_fusions.h"
#include "tests/graph/steps.h"
#include "trace/csv.h"

#include <map>

namespace lr::report {
namespace {

const std::map<std::string, TracedFusion>& traced() {
    static const auto result = [] {
        const graph::Step step = graph::build(graph::declare("397B-A17B", "nvfp4-mixed"),
                                              graph::decode_shape(54), {.tp = 2}, {.w4a4 = true});
        const std::string file =
            std::string(LR_SOURCE_DIR) + "/tests/fixtures/decode_gdn_layer.csv";
        const auto text = read_text_file(file);
        EXPECT_TRUE(text) << (text ? "" : text.error().message());
        auto rows = trace::parse_csv(*text, file);
        EXPECT_TRUE(rows) << (rows ? "" : rows.error().message());
        const auto analysis = trace::analyse(std::move(*rows), step, false);
        EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().message());
        const graph::Machine b300 = *graph::machine("b300");
        auto fusions = *find_fusions(step, b300);
        const Status status = add_trace(fusions, step, b300, *analysis);
        EXPECT_TRUE(status.ok()) << status.message();
        std::map<std::string, TracedFusion> found;
        for (const FusionRow& row : fusions)
            if (row.traced)
                found[std::string(row.rewrite->name)] = *row.traced;
        return found;
    }();
    return result;
}

TEST(TracedFusions, SumTheDurationsOfTheSeed) {
    const std::map<std::string, double> sums = {
        {"8+9", 4.736},   {"16+18", 11.328}, {"23+24", 7.552},   {"13+15", 4.096},
        {"15+16", 5.312}, {"17+19", 4.960},  {"1+3", 8.576},     {"11+13+15", 13.025},
        {"6+7", 43.455},  {"7+8", 40.799},   {"6+7+8+9", 48.191}};
    for (const auto& [name, sum] : sums) {
        ASSERT_TRUE(traced().contains(name)) << name;
        EXPECT_NEAR(traced().at(name).sum_us, sum, 1e-6) << name;
        EXPECT_EQ(traced().at(name).places, 1) << name;
    }
    EXPECT_FALSE(traced().contains("23+24+next.1+next.3")) << "the trace has one layer";
}

TEST(TracedFusions, GainNothingOffTheCriticalPath) {
    const TracedFusion& shared = traced().at("17+19");
    EXPECT_EQ(shared.on_path, 0);
    EXPECT_NEAR(shared.slack_us, 98.081, 1e-6) << "the slack of the shared branch";
    EXPECT_EQ(shared.longest_stays_us, 0);
    EXPECT_EQ(shared.at_floor_us, 0);
}

// 8 ends where 9 did no more: 9's 2.080 and the 0.480 between the two go. Likewise the others.
TEST(TracedFusions, SaveTheShorterLaunchAndTheWayToItOnThePath) {
    EXPECT_NEAR(traced().at("8+9").longest_stays_us, 2.080 + 0.480, 1e-6);
    EXPECT_NEAR(traced().at("23+24").longest_stays_us, 2.432 + 0.608, 1e-6);
    EXPECT_NEAR(traced().at("6+7").longest_stays_us, 5.312 + 0.640, 1e-6);
    EXPECT_NEAR(traced().at("16+18").longest_stays_us, 3.264 + 0.672, 1e-6);
    for (const auto& [name, fusion] : traced()) {
        EXPECT_GE(fusion.at_floor_us, fusion.longest_stays_us) << name;
        EXPECT_EQ(fusion.on_path == 0, fusion.slack_us > 0) << name;
    }
    // Two launches stay: a trace bounds them by their floors alone.
    EXPECT_NEAR(traced().at("8+9-amax").longest_stays_us, 0, 1e-6);
    EXPECT_GT(traced().at("8+9-amax").at_floor_us, 3);
}

// Node 15 needs node 11 alone and queues behind the router today: routing begins earlier without
// it.
TEST(TracedFusions, AMoveToAnotherLaneSavesWhatQueuedBehindIt) {
    const TracedFusion& move = traced().at("15-shared-lane");
    EXPECT_EQ(move.on_path, 1);
    // 16 begins 0.480 after 12 ends instead of after 15: 97.761 - 94.977.
    EXPECT_NEAR(move.longest_stays_us, 2.784, 1e-6);
    EXPECT_EQ(move.at_floor_us, move.longest_stays_us);
}

} // namespace
} // namespace lr::report
