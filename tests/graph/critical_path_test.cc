// SPDX-License-Identifier: Apache-2.0
#include "graph/critical_path.h"

#include <gtest/gtest.h>

namespace lr::graph {
namespace {

CriticalPath path_of(const std::vector<TimedNode>& nodes, const std::vector<Dependency>& edges) {
    auto path = critical_path(nodes, edges);
    EXPECT_TRUE(path) << (path ? "" : path.error().message());
    return path ? std::move(*path) : CriticalPath{};
}

using Nodes = std::vector<std::int32_t>;

// A diamond: 0 -> {1, 2 -> 3} -> 4.
const std::vector<TimedNode> kDiamond = {{2}, {10}, {3}, {4}, {1}};
const std::vector<Dependency> kEdges = {{0, 1}, {0, 2}, {2, 3}, {1, 4}, {3, 4}};

TEST(CriticalPath, IsTheLongestAndTheShorterBranchSharesItsSlack) {
    const CriticalPath path = path_of(kDiamond, kEdges);
    EXPECT_EQ(path.length_us, 13);
    EXPECT_EQ(path.nodes, (Nodes{0, 1, 4}));
    EXPECT_EQ(path.start_us, (std::vector<double>{0, 2, 2, 5, 12}));
    EXPECT_EQ(path.end_us, (std::vector<double>{2, 12, 5, 9, 13}));
    EXPECT_EQ(path.slack_us, (std::vector<double>{0, 0, 3, 3, 0}));
}

TEST(CriticalPath, TakesNodesInAnyOrder) {
    const CriticalPath path = path_of({{5}, {1}, {2}}, {{2, 0}, {1, 2}});
    EXPECT_EQ(path.nodes, (Nodes{1, 2, 0}));
    EXPECT_EQ(path.length_us, 8);
}

TEST(CriticalPath, CountsGapsAndOverlaps) {
    // Node 1 begins 3 us before node 0 ends, node 2 comes 1.5 us late.
    const CriticalPath path = path_of({{10}, {4, -3}, {2, 1.5}}, {{0, 1}, {1, 2}});
    EXPECT_EQ(path.start_us, (std::vector<double>{0, 7, 12.5}));
    EXPECT_EQ(path.length_us, 14.5);
    EXPECT_EQ(path.slack_us, (std::vector<double>{0, 0, 0}));
}

TEST(CriticalPath, EndsWhereTheLastNodeEndsAndIsEmptyForNone) {
    const CriticalPath path = path_of({{1}, {7}, {2}}, {{0, 2}});
    EXPECT_EQ(path.nodes, (Nodes{1}));
    EXPECT_EQ(path.slack_us, (std::vector<double>{4, 0, 4}));
    EXPECT_EQ(path_of({}, {}).length_us, 0);
}

TEST(CriticalPath, RefusesCyclesAndForeignNodes) {
    const std::vector<TimedNode> nodes = {{1}, {1}, {1}};
    const std::vector<Dependency> cycle = {{0, 1}, {1, 2}, {2, 1}};
    EXPECT_EQ(critical_path(nodes, cycle).error().message(),
              "critical path: node 1 waits for its own end: expected no cycle");
    const std::vector<Dependency> foreign = {{0, 3}};
    EXPECT_EQ(critical_path(nodes, foreign).error().message(),
              "critical path: edge 0 -> 3: expected nodes 0..2");
}

// Measured: what a trace shows comes out again, and says who was waited for.
const std::vector<Span> kSpans = {{100, 102}, {101, 112}, {102.5, 105}, {105, 109}, {113, 115}};

TEST(CriticalPath, GivesMeasuredTimesBack) {
    const CriticalPath path = path_of(timed_nodes(kSpans, kEdges), kEdges);
    EXPECT_EQ(path.start_us, (std::vector<double>{0, 1, 2.5, 5, 13}));
    EXPECT_EQ(path.end_us, (std::vector<double>{2, 12, 5, 9, 15}));
    EXPECT_EQ(path.length_us, 15);
    EXPECT_EQ(path.nodes, (Nodes{0, 1, 4}));
    EXPECT_EQ(path.slack_us, (std::vector<double>{0, 0, 3, 3, 0}));
}

TEST(CriticalPath, SaysHowEarlyABranchArrived) {
    std::vector<std::pair<std::int32_t, double>> into_last;
    for (const Arrival& arrival : arrivals(kSpans, kEdges))
        if (arrival.to == 4)
            into_last.emplace_back(arrival.from, arrival.early_us);
    EXPECT_EQ(into_last, (std::vector<std::pair<std::int32_t, double>>{{1, 0}, {3, 3}}));
}

TEST(CriticalPath, OfAMergeOffThePathGainsNothing) {
    const Nodes branch = {2, 3};
    auto merged = merged_path(kDiamond, kEdges, branch, 1);
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->length_us, 13);
    EXPECT_EQ(merged->slack_us, (std::vector<double>{0, 0, 9, 9, 0}));
    merged = merged_path(kDiamond, kEdges, branch, 12);
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->length_us, 15);
    EXPECT_EQ(merged->nodes, (Nodes{0, 2, 4}));
}

TEST(CriticalPath, OfAMergeOnThePathGainsItsTimeUntilAnotherBranchIsLonger) {
    const Nodes pair = {0, 1};
    auto merged = merged_path(kDiamond, {}, pair, 5);
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->length_us, 5);
    // With its edges the other branch now waits for the whole launch: 0+1, 2, 3, 4.
    merged = merged_path(kDiamond, kEdges, pair, 5);
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->length_us, 13);
    EXPECT_EQ(merged->nodes, (Nodes{0, 2, 3, 4}));
}

TEST(CriticalPath, RefusesAMergeThatWaitsForItself) {
    const Nodes ends = {0, 3};
    const auto merged = merged_path(kDiamond, kEdges, ends, 1);
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().message(),
              "critical path: node 0 waits for its own end: expected no cycle");
    const Nodes foreign = {0, 9};
    EXPECT_EQ(merged_path(kDiamond, kEdges, foreign, 1).error().message(),
              "critical path: merged node 9: expected 0..4");
}

} // namespace
} // namespace lr::graph
