// SPDX-License-Identifier: Apache-2.0
#include "experts/endpoints.h"
#include "experts/tiles.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace lr::experts {
namespace {

TEST(Tiles, WorkedExampleHasSixInTheOrderOfTheirRows) {
    const std::vector<std::int32_t> counts = {70, 12};
    std::vector<std::int32_t> first(3);
    EXPECT_EQ(scan_blocks(counts.data(), 2, 64, first.data()), 3);
    EXPECT_EQ(first, (std::vector<std::int32_t>{0, 2, 3}));
    struct Row {
        std::int32_t expert, row, rows, column;
    };
    const Row expected[] = {{0, 0, 64, 0}, {0, 0, 64, 1}, {0, 64, 6, 0},
                            {0, 64, 6, 1}, {1, 0, 12, 0}, {1, 0, 12, 1}};
    for (std::int32_t t = 0; t < 6; ++t) {
        const Tile tile = tile_at(counts.data(), first.data(), 2, 64, 2, t);
        EXPECT_EQ(tile.expert, expected[t].expert) << t;
        EXPECT_EQ(tile.row, expected[t].row) << t;
        EXPECT_EQ(tile.rows, expected[t].rows) << t;
        EXPECT_EQ(tile.column, expected[t].column) << t;
    }
}

TEST(Tiles, CoverEveryLiveRowOnceWhateverIsEmpty) {
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::int32_t> counts(1 + random() % 20);
        for (auto& count : counts)
            count = random() % 2 ? static_cast<std::int32_t>(random() % 200) : 0;
        const auto local = static_cast<std::int32_t>(counts.size());
        const auto block = static_cast<std::int32_t>(1 + random() % 70);
        std::vector<std::int32_t> first(counts.size() + 1);
        const std::int32_t blocks = scan_blocks(counts.data(), local, block, first.data());
        std::vector<std::int32_t> rows(counts.size(), 0);
        for (std::int32_t t = 0; t < blocks; ++t) {
            const Tile tile = tile_at(counts.data(), first.data(), local, block, 1, t);
            const auto e = static_cast<std::size_t>(tile.expert);
            ASSERT_EQ(tile.row, rows[e]); // in order, without a gap
            ASSERT_GE(tile.rows, 1);
            ASSERT_LE(tile.rows, block);
            rows[e] += tile.rows;
        }
        ASSERT_EQ(rows, counts);
    }
}

TEST(Tiles, ProgramsOfTheWorkedExampleGoDownTheRowsFirst) {
    for (std::int32_t pid = 0; pid < 14; ++pid) {
        EXPECT_EQ(program_place(pid, 7, 2, 32).m, pid % 7);
        EXPECT_EQ(program_place(pid, 7, 2, 32).n, pid / 7);
    }
}

TEST(Tiles, ProgramsVisitEveryPlaceOnce) {
    for (std::int32_t m : {1, 7, 32, 33, 70})
        for (std::int32_t n : {1, 2, 5})
            for (std::int32_t group : {1, 8, 32}) {
                std::set<std::pair<std::int32_t, std::int32_t>> seen;
                for (std::int32_t pid = 0; pid < m * n; ++pid) {
                    const ProgramPlace place = program_place(pid, m, n, group);
                    ASSERT_TRUE(place.m >= 0 && place.m < m && place.n >= 0 && place.n < n);
                    seen.insert({place.m, place.n});
                    ASSERT_EQ(program_at(place, m, n, group), pid);
                }
                ASSERT_EQ(seen.size(), static_cast<std::size_t>(m * n));
            }
}

// 12 index checks for each of 2,004 count sets: the recursion against the sum of aligned counts
// before, and the grid-stride loop of several launch widths against the live rows.
TEST(Tiles, GridStrideLoopsCoverExactlyTheLiveRows) {
    constexpr std::int32_t kAlignments[] = {1, 16, 128};
    constexpr std::int32_t kPrograms[] = {1, 3, 32, 257};
    std::mt19937 random(4);
    std::int64_t checks = 0;
    for (int set = 0; set < 2004; ++set) {
        std::vector<std::int32_t> counts(1 + random() % 16);
        for (auto& count : counts)
            count = random() % 4 ? static_cast<std::int32_t>(random() % 260) : 0;
        const auto local = static_cast<std::int32_t>(counts.size());
        for (std::int32_t alignment : kAlignments) {
            std::vector<std::int32_t> start(counts.size()), end(counts.size());
            scan_endpoints(counts.data(), local, alignment, start.data(), end.data());
            const std::int64_t rows = align_up(end.back(), alignment) + alignment;
            std::vector<int> live(static_cast<std::size_t>(rows), 0);
            std::int64_t before = 0;
            for (std::size_t e = 0; e < counts.size(); ++e) {
                ASSERT_EQ(start[e], before);
                ASSERT_EQ(end[e], before + counts[e]);
                std::fill_n(live.begin() + before, counts[e], 1);
                before += align_up(counts[e], alignment);
            }
            for (std::int32_t programs : kPrograms) {
                std::vector<int> visits(live.size(), 0);
                for (std::size_t e = 0; e < counts.size(); ++e)
                    for (std::int32_t pid = 0; pid < programs; ++pid)
                        for_live_rows(start[e], end[e], pid, programs, [&](std::int32_t row) {
                            ++visits[static_cast<std::size_t>(row)];
                        });
                ASSERT_EQ(visits, live) << "set " << set << ", alignment " << alignment;
                ++checks;
            }
        }
    }
    EXPECT_EQ(checks, 24048);
}

} // namespace
} // namespace lr::experts
