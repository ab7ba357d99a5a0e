// SPDX-License-Identifier: Apache-2.0
#include "experts/schedule.h"
#include "tests/experts/worked_example.h"

#include <gtest/gtest.h>

namespace lr::experts {
namespace {

TEST(Schedule, WorkedExampleGoesToTwoPersistentCtas) {
    const std::vector<WorkTile> tiles = work_list(plan_launch(worked_problem(), 256));
    EXPECT_EQ(tiles, (std::vector<WorkTile>{{3, 0}, {3, 1}, {4, 0}, {4, 1}, {5, 0}, {5, 1}}));
    EXPECT_EQ(tiles_of_cta(6, 2, 0), (std::vector<std::int32_t>{0, 2, 4}));
    EXPECT_EQ(tiles_of_cta(6, 2, 1), (std::vector<std::int32_t>{1, 3, 5}));
    EXPECT_TRUE(tiles_of_cta(6, 8, 7).empty());
}

TEST(Schedule, SixTilesTakeThreeRoundsOfTwoOrTwoOfFour) {
    EXPECT_EQ(round_count(6, 2), 3);
    EXPECT_EQ(last_round_fill(6, 2), 1);
    EXPECT_EQ(round_count(6, 4), 2);
    EXPECT_EQ(last_round_fill(6, 4), 0.5); // the last round has work for half of the places
    EXPECT_EQ(round_count(0, 4), 0);
    EXPECT_EQ(last_round_fill(0, 4), 0);
}

TEST(Schedule, TheThreeCasesOfASmallerBatch) {
    // 24 rows or 12 are one block of 64.
    EXPECT_EQ(count_blocks(std::vector<std::int32_t>{24}, 64).blocks,
              count_blocks(std::vector<std::int32_t>{12}, 64).blocks);
    EXPECT_EQ(time_change(1, 1, 132).kind, TimeCase::kSameTiles);
    EXPECT_EQ(time_change(1, 1, 132).ratio(), 1);
    // 6 tiles to 3, all of which can run at once.
    const TimeChange once = time_change(6, 3, 6);
    EXPECT_EQ(once.kind, TimeCase::kSameRounds);
    EXPECT_EQ(once.ratio(), 1);
    // 12 tiles to 6, three at a time: 4 rounds become 2.
    const TimeChange rounds = time_change(12, 6, 3);
    EXPECT_EQ(rounds.kind, TimeCase::kFewerRounds);
    EXPECT_EQ(rounds.rounds_before, 4);
    EXPECT_EQ(rounds.rounds_after, 2);
    EXPECT_EQ(rounds.ratio(), 0.5);
    EXPECT_EQ(time_change(6, 8, 2).kind, TimeCase::kMoreTiles);
    EXPECT_EQ(time_change(12, 11, 3).kind, TimeCase::kSameRounds);
    EXPECT_EQ(time_change(0, 0, 3).ratio(), 1);
}

TEST(Schedule, TheNextReplayHasTwoTiles) {
    EXPECT_EQ(work_list(plan_launch(worked_problem({64, 0}), 256)).size(), 2u);
}

} // namespace
} // namespace lr::experts
