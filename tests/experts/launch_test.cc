// SPDX-License-Identifier: Apache-2.0
#include "experts/launch.h"
#include "tests/experts/worked_example.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lr::experts {
namespace {

Problem with_layout(Layout layout) {
    Problem problem = worked_problem();
    problem.layout = layout;
    return problem;
}

TEST(Launch, WorkedExampleHas14ProgramsOfWhich6Compute) {
    const Launch launch = plan_launch(worked_problem(), 256);
    EXPECT_EQ(launch.positions, 445);
    EXPECT_EQ(launch.list->padded, 384);
    EXPECT_EQ(launch.column_blocks, 2);
    ASSERT_EQ(launch.blocks.size(), 7u);
    EXPECT_EQ(launch.blocks[0], (RowBlock{0, -1, 0, 64, Action::kZero}));
    EXPECT_EQ(launch.blocks[1], (RowBlock{64, -1, 64, 64, Action::kZero}));
    EXPECT_EQ(launch.blocks[2], (RowBlock{128, -1, 128, 46, Action::kZero})); // and 18 sentinels
    EXPECT_EQ(launch.blocks[3], (RowBlock{192, 0, 0, 64, Action::kCompute}));
    EXPECT_EQ(launch.blocks[4], (RowBlock{256, 0, 64, 6, Action::kCompute}));
    EXPECT_EQ(launch.blocks[5], (RowBlock{320, 1, 0, 12, Action::kCompute}));
    EXPECT_EQ(launch.blocks[6], (RowBlock{384, -1, 0, 0, Action::kExit})); // behind the list's 445
    EXPECT_EQ(count_programs(launch),
              (Programs{.launched = 14, .computing = 6, .zeroing = 6, .exiting = 2}));
}

TEST(Launch, TheNextReplayHasTheSameProgramsAndOtherWork) {
    const Launch launch = plan_launch(worked_problem({64, 0}), 256);
    EXPECT_EQ(count_programs(launch),
              (Programs{.launched = 14, .computing = 2, .zeroing = 6, .exiting = 6}));
}

TEST(Launch, WorkedExampleForEachBlockSize) {
    struct Row {
        std::int64_t block, capacity, launched, computing, blocks, covered;
        double fill;
    };
    for (const Row& row :
         {Row{64, 445, 14, 6, 3, 192, 0.427}, Row{32, 349, 22, 8, 4, 128, 0.641},
          Row{16, 301, 38, 12, 6, 96, 0.854}, Row{8, 277, 70, 22, 11, 88, 0.932}}) {
        Problem problem = worked_problem();
        problem.tiling.rows = row.block;
        const Launch launch = plan_launch(problem, 256);
        EXPECT_EQ(launch.positions, row.capacity);
        EXPECT_EQ(count_programs(launch).launched, row.launched);
        EXPECT_EQ(count_programs(launch).computing, row.computing);
        const BlockFill fill = row_fill(launch);
        EXPECT_EQ(fill.live_rows, 82);
        EXPECT_EQ(fill.blocks, row.blocks);
        EXPECT_EQ(fill.covered_rows, row.covered);
        EXPECT_NEAR(fill.fill(), row.fill, 5e-4);
        EXPECT_EQ(count_blocks(std::vector<std::int32_t>{70, 12}, row.block).blocks, row.blocks);
    }
}

TEST(Launch, SplittingTheBatchCoversMoreRows) {
    const BlockFill whole = count_blocks(std::vector<std::int32_t>{70, 12}, 64);
    const BlockFill half = count_blocks(std::vector<std::int32_t>{35, 6}, 64);
    EXPECT_EQ(whole.blocks, 3);
    EXPECT_EQ(half.blocks, 2);
    EXPECT_EQ(whole.covered_rows, 192);
    EXPECT_EQ(2 * half.covered_rows, 256);
    EXPECT_NEAR(whole.fill(), 0.427, 5e-4);
    EXPECT_NEAR(82.0 / static_cast<double>(2 * half.covered_rows), 0.320, 5e-4);
    // An expert of 24 rows is one block, and one block in each half.
    EXPECT_EQ(count_blocks(std::vector<std::int32_t>{24}, 64).blocks, 1);
    EXPECT_EQ(count_blocks(std::vector<std::int32_t>{12}, 64).blocks, 1);
    EXPECT_EQ(count_blocks({}, 64).fill(), 0);
}

TEST(Launch, EndpointsLaunchWhatTheWorstRoutingNeedsAndZeroNothing) {
    const Launch launch = plan_launch(with_layout(Layout::kEndpoints), 256);
    EXPECT_EQ(launch.start, (std::vector<std::int32_t>{0, 128}));
    EXPECT_EQ(launch.end, (std::vector<std::int32_t>{70, 140}));
    EXPECT_EQ(launch.positions, 256);
    ASSERT_EQ(launch.blocks.size(), 4u); // 2 experts * ceil(128 / 64)
    EXPECT_EQ(launch.blocks[0], (RowBlock{0, 0, 0, 64, Action::kCompute}));
    EXPECT_EQ(launch.blocks[1], (RowBlock{64, 0, 64, 6, Action::kCompute}));
    EXPECT_EQ(launch.blocks[2], (RowBlock{128, 1, 0, 12, Action::kCompute}));
    EXPECT_EQ(launch.blocks[3].action, Action::kExit);
    EXPECT_EQ(count_programs(launch),
              (Programs{.launched = 8, .computing = 6, .zeroing = 0, .exiting = 2}));
}

TEST(Launch, AlignedEndsComputeTheirPadding) {
    Problem problem = with_layout(Layout::kAlignedEnd);
    const Launch full = plan_launch(problem, 256);
    // Both experts are padded to 128 rows: 2 blocks each, of which one has no live row.
    ASSERT_EQ(full.blocks.size(), 4u);
    EXPECT_EQ(full.blocks[3], (RowBlock{192, 1, 64, 0, Action::kCompute}));
    EXPECT_EQ(row_fill(full).covered_rows, 256);
    // Behind the last aligned end the label is -1, and zeros are written.
    problem.alignment = 64;
    const Launch tail = plan_launch(problem, 256);
    ASSERT_EQ(tail.blocks.size(), 4u);
    EXPECT_EQ(tail.blocks[2], (RowBlock{128, 1, 0, 12, Action::kCompute}));
    EXPECT_EQ(tail.blocks[3], (RowBlock{192, -1, 0, 0, Action::kZero}));
}

TEST(Launch, MetadataShrinksFromALabelForEachRowToAnEndForEachExpert) {
    // 28,672 rows of 32 experts: 112 KiB of labels against 128 bytes of ends.
    Problem problem;
    problem.routing = deal_routing(std::vector<std::int32_t>(32, 96), 896, 32);
    problem.capacity = 896;
    problem.hidden = problem.width = 128;
    problem.alignment = 128;
    problem.layout = Layout::kAlignedEnd;
    EXPECT_EQ(allocated_rows(problem), 28672);
    EXPECT_EQ(row_fill(plan_launch(problem, 256)).live_rows, 3072);
    EXPECT_EQ(metadata_bytes(plan_launch(problem, 256), problem.layout), 112 * 1024);
    problem.layout = Layout::kEndpoints;
    EXPECT_EQ(metadata_bytes(plan_launch(problem, 256), problem.layout), 128);
    problem.layout = Layout::kExpertMajor;
    problem.order = RowOrder::kAscending;
    const Launch list = plan_launch(problem, 256);
    EXPECT_EQ(metadata_bytes(list, problem.layout),
              4 * (28672 + 33 * 63 + (28672 + 33 * 63 + 63) / 64 + 1));
}

TEST(Launch, EveryLayoutComputesEachLiveRowOnce) {
    for (Layout layout : kLayouts) {
        const BlockFill fill = row_fill(plan_launch(with_layout(layout), 256));
        EXPECT_EQ(fill.live_rows, 82) << layout_name(layout);
        EXPECT_EQ(fill.blocks, layout == Layout::kAlignedEnd ? 4 : 3) << layout_name(layout);
    }
}

TEST(Problem, RefusesCountsThatCannotBe) {
    const auto message = [](std::vector<std::int64_t> counts, std::int64_t capacity) {
        const auto checked = check_counts(counts, capacity, "--counts");
        EXPECT_FALSE(checked);
        EXPECT_EQ(checked.error().code(), Code::kInvalidArgument);
        return checked.error().message();
    };
    EXPECT_EQ(message({70, 129}, 128),
              "--counts: expert 1: expected at most 128 rows (the capacity), got 129");
    EXPECT_EQ(message({70, -1}, 128), "--counts: expert 1: expected 0 rows or more, got -1");
    EXPECT_EQ(message({}, 128), "--counts: expected the rows of at least one expert, got none");
    EXPECT_EQ(message({2147483647, 1}, 2147483647),
              "--counts: expected at most 2147483647 rows together (rows are int32), got "
              "2147483648 by expert 1");
    EXPECT_EQ(*check_counts(std::vector<std::int64_t>{70, 12}, 128, "--counts"),
              (std::vector<std::int32_t>{70, 12}));
}

TEST(Problem, RefusesSizesThatCannotBe) {
    const auto message = [](auto change) {
        Problem problem = worked_problem();
        change(problem);
        const Status status = check(problem);
        EXPECT_EQ(status.code(), Code::kInvalidArgument);
        return status.message();
    };
    EXPECT_TRUE(check(worked_problem()).ok());
    EXPECT_EQ(message([](Problem& p) { p.tiling.rows = 0; }),
              "tile rows (BM): expected 1 to 65536, got 0");
    EXPECT_EQ(message([](Problem& p) { p.capacity = 69; }),
              "counts: expert 0: expected at most 69 rows (the capacity), got 70");
    EXPECT_EQ(message([](Problem& p) { p.capacity = 600; }),
              "small-batch order: expected fewer than 1024 rows and at most 63 experts, got 1200 "
              "and 2; beyond, the traced kernel promises no order");
    EXPECT_EQ(message([](Problem& p) {
                  p.layout = Layout::kAlignedEnd;
                  p.alignment = 96;
              }),
              "aligned-end: expected an alignment that is a multiple of BM 64, got 96");
    EXPECT_EQ(message([](Problem& p) {
                  p.layout = Layout::kRankMajor;
                  p.ranks = 2;
                  p.capacity = 120;
              }),
              "rank-major: expected at least 64 rows for each of 2 source ranks, got capacity 120 "
              "for all of them");
    EXPECT_EQ(message([](Problem& p) {
                  p.capacity = 1 << 24;
                  p.order = RowOrder::kAscending;
              }),
              "expert-major: expected at most 16777216 rows or list positions to describe, got "
              "33554621 (experts 2, capacity 16777216, BM 64)");
}

TEST(Problem, RefusesMoreProgramsThanCanBeRead) {
    Problem problem = worked_problem();
    problem.order = RowOrder::kAscending;
    problem.capacity = 20000;
    problem.tiling.rows = problem.tiling.columns = 1;
    // A block for each of 40,000 rows, a column block for each of 256 columns.
    EXPECT_EQ(check(problem).message(), "tiles: expected at most 4194304 programs of a GEMM to "
                                        "describe, got 10240000 (BM 1, BN 1)");
}

} // namespace
} // namespace lr::experts
