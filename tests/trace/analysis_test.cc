// SPDX-License-Identifier: Apache-2.0
//
// The traced decode step of the kernel graph's part 3.6: every figure that it gives.
#include "core/text_file.h"
#include "model/presets.h"
#include "trace/analysis.h"
#include "trace/csv.h"

#include <gtest/gtest.h>

#include <map>

namespace lr::trace {
namespace {

constexpr double kDigit = 5e-4; // the seed has three

graph::Step traced_step() {
    model::Model model =
        model::Model::declare(*model::preset("397B-A17B"), *model::format_policy("nvfp4-mixed"));
    for (model::Entry& entry : model.entries())
        if (entry.format == model::WeightFormat::kNvfp4)
            entry.input_scale = 1.0f;
    graph::StepOptions options;
    options.w4a4 = true;
    auto step = graph::build_step(model, {.tp = 2},
                                  {.phase = graph::Phase::kDecode,
                                   .rows = 54,
                                   .sequences = 54,
                                   .logit_rows = 54,
                                   .context = 8192,
                                   .slots = 54,
                                   .kv_pages = 54 * 128},
                                  options);
    EXPECT_TRUE(step) << (step ? "" : step.error().message());
    return std::move(*step);
}

std::vector<Row> fixture() {
    const auto text =
        read_text_file(std::string(LR_SOURCE_DIR) + "/tests/fixtures/decode_gdn_layer.csv");
    auto rows = parse_csv(*text, "fixture");
    EXPECT_TRUE(rows) << (rows ? "" : rows.error().message());
    return std::move(*rows);
}

const Analysis& traced() {
    static const Analysis analysis = [] {
        auto result = analyse(fixture(), traced_step(), false);
        EXPECT_TRUE(result) << (result ? "" : result.error().message());
        return std::move(*result);
    }();
    return analysis;
}

double early(const std::string& from, const std::string& to) {
    for (const Join& join : traced().joins)
        if (traced().rows[join.early].nodes == from && traced().rows[join.row].nodes == to)
            return join.early_us;
    ADD_FAILURE() << from << " was not early for " << to;
    return 0;
}

const WhatIf& what(const std::string& rewrite) {
    for (const WhatIf& w : traced().what_if)
        if (w.rewrite == rewrite)
            return w;
    ADD_FAILURE() << rewrite;
    return traced().what_if.front();
}

double on_path(const std::string& nodes) {
    for (const NodeShare& share : shares_of(traced()))
        if (share.nodes == nodes)
            return share.on_path;
    return -1;
}

TEST(TraceAnalysis, EveryRowIsANode) {
    EXPECT_EQ(traced().rows.size(), 24u);
    EXPECT_TRUE(traced().unknown.empty());
    EXPECT_TRUE(traced().untraced.empty());
    EXPECT_EQ(traced().rows[0].name, "input_allreduce_add_rmsnorm");
}

TEST(TraceAnalysis, SumOfDurationsIsNotTheSpan) {
    EXPECT_NEAR(traced().totals.sum, 235.680, kDigit);
    EXPECT_NEAR(traced().totals.span, 211.202, kDigit);
    EXPECT_NEAR(traced().path.length_us, 211.202, kDigit); // the replay gives the trace again
    EXPECT_NEAR(traced().totals.sum, traced().totals.busy + traced().totals.overlap(), 1e-9);
}

TEST(TraceAnalysis, BranchesHaveTheSlackThatTheSeedFinds) {
    EXPECT_NEAR(early("4", "6"), 10.752, kDigit);   // BA before QKVZ
    EXPECT_NEAR(early("20", "24"), 98.081, kDigit); // shared before routed
}

TEST(TraceAnalysis, SlackAlongABranchIsThatOfItsJoin) {
    std::map<std::string, double> slack;
    for (std::size_t r = 0; r < traced().rows.size(); ++r)
        slack[traced().rows[r].nodes] = traced().path.slack_us[r];
    for (const char* shared : {"14", "17", "19", "20"})
        EXPECT_NEAR(slack[shared], 98.081, kDigit) << shared;
    EXPECT_NEAR(slack["4"], 10.752, kDigit);
    for (const char* critical : {"5", "6", "7", "8", "9", "18", "21", "22", "23", "24"})
        EXPECT_NEAR(slack[critical], 0, 1e-9) << critical;
}

TEST(TraceAnalysis, TheCriticalPathIsTheGdnChainAndTheRoutedExperts) {
    EXPECT_NEAR(on_path("7"), 38.143, kDigit);
    EXPECT_NEAR(on_path("24"), 2.432, kDigit);
    for (const char* off : {"2", "4", "13", "14", "17", "19", "20"})
        EXPECT_EQ(on_path(off), 0) << off;
}

TEST(TraceAnalysis, EveryCandidatesSumIsTheSeeds) {
    const std::pair<const char*, double> kSums[] = {
        {"8+9", 4.736},   {"16+18", 11.328}, {"23+24", 7.552},    {"13+15", 4.096},
        {"15+16", 5.312}, {"17+19", 4.960},  {"1+3", 8.576},      {"11+13+15", 13.025},
        {"6+7", 43.455},  {"7+8", 40.799},   {"6+7+8+9", 48.191},
    };
    for (const auto& [rewrite, sum] : kSums) {
        EXPECT_NEAR(what(rewrite).sum, sum, kDigit) << rewrite;
        EXPECT_EQ(what(rewrite).places, 1) << rewrite;
    }
    // The layer after it is not in the trace.
    for (const WhatIf& w : traced().what_if)
        EXPECT_NE(w.rewrite, "23+24+next.1+next.3");
}

TEST(TraceAnalysis, AFusionOffTheCriticalPathGainsNothing) {
    EXPECT_EQ(what("17+19").critical, 0);
    EXPECT_NEAR(what("17+19").most, 0, 1e-9);
    // 8+9: as long as 8, begun when 8 was; 9 and the wait before it go: 2.080 + 0.480.
    EXPECT_EQ(what("8+9").critical, 1);
    EXPECT_NEAR(what("8+9").most, 2.560, kDigit);
    // 23+24: 2.432 and the wait of 0.608 between the two.
    EXPECT_NEAR(what("23+24").most, 3.040, kDigit);
    for (const WhatIf& w : traced().what_if)
        EXPECT_LT(w.most, w.sum) << w.rewrite;
}

TEST(TraceAnalysis, OverlapAndIdleTimeAddUp) {
    // [0,4] and [2,6] on two lanes, then nothing until [8,9].
    std::vector<Row> rows(3);
    const double times[][2] = {{0, 4}, {2, 6}, {8, 9}};
    for (std::size_t i = 0; i < 3; ++i) {
        rows[i].start_us = times[i][0];
        rows[i].end_us = times[i][1];
        rows[i].duration_us = times[i][1] - times[i][0];
    }
    const Totals totals = totals_of(rows);
    EXPECT_DOUBLE_EQ(totals.sum, 9);
    EXPECT_DOUBLE_EQ(totals.span, 9);
    EXPECT_DOUBLE_EQ(totals.overlap(), 2);
    EXPECT_DOUBLE_EQ(totals.idle(), 2);
}

TEST(TraceAnalysis, RowsThatTheGraphDoesNotHaveAreNamed) {
    std::vector<Row> rows = fixture();
    rows[3].nodes = "77";
    const auto analysis = analyse(rows, traced_step(), false);
    ASSERT_TRUE(analysis);
    EXPECT_EQ(analysis->unknown, (std::vector<std::size_t>{3}));
}

TEST(TraceAnalysis, RefusesMoreLayersThanAStepHas) {
    std::vector<Row> rows;
    const graph::Step step = traced_step();
    const auto layers = static_cast<std::int32_t>(
        std::count(step.layers.begin(), step.layers.end(), model::LayerKind::kGdn));
    for (std::int32_t layer = 0; layer <= layers; ++layer)
        for (Row row : fixture()) {
            row.layer = layer;
            row.start_us += 300.0 * layer;
            row.end_us += 300.0 * layer;
            rows.push_back(row);
        }
    const auto analysis = analyse(rows, step, true);
    ASSERT_FALSE(analysis);
    EXPECT_NE(analysis.error().message().find("got more decode-gdn layers than the 60"),
              std::string::npos)
        << analysis.error().message();
    std::erase_if(rows, [&](const Row& row) { return row.layer == layers; });
    const auto whole = analyse(rows, step, true);
    EXPECT_TRUE(whole) << whole.error().message();
}

TEST(TraceAnalysis, NodesThatTheTraceDoesNotHaveAreNamed) {
    std::vector<Row> rows = fixture();
    std::erase_if(rows, [](const Row& row) { return row.nodes == "9"; });
    const graph::Step step = traced_step();
    const auto analysis = analyse(rows, step, false);
    ASSERT_TRUE(analysis);
    ASSERT_EQ(analysis->untraced.size(), 1u);
    EXPECT_EQ(step.nodes[static_cast<std::size_t>(analysis->untraced[0])].number, 9);
}

} // namespace
} // namespace lr::trace
