// SPDX-License-Identifier: Apache-2.0
#include "experts/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace lr::experts {
namespace {

// The worked example: two experts of capacity 128, counts [70, 12], flat row q = e*128 + slot.
std::vector<std::int32_t> worked_ids() {
    std::vector<std::int32_t> ids(256, -1);
    std::fill_n(ids.begin(), 70, 0);
    std::fill_n(ids.begin() + 128, 12, 1);
    return ids;
}

std::vector<std::int32_t> positions(const Alignment& a, std::int64_t first, std::int64_t last) {
    return {a.sorted_ids.begin() + first, a.sorted_ids.begin() + last};
}

TEST(Alignment, WorkedExampleHasThePublishedLists) {
    const Alignment a = align_blocks(worked_ids(), 2, 64, RowOrder::kSmallBatch);
    EXPECT_EQ(a.sorted_ids.size(), 445u);
    EXPECT_EQ(a.expert_ids, (std::vector<std::int32_t>{-1, -1, -1, 0, 0, 1, kUnsetExpert}));
    EXPECT_EQ(a.padded, 384);

    for (std::int32_t id : positions(a, 0, 174))
        EXPECT_TRUE((id >= 70 && id < 128) || (id >= 140 && id < 256)) << id;
    EXPECT_EQ(positions(a, 174, 192), std::vector<std::int32_t>(18, 256));
    std::vector<std::int32_t> expert0;
    for (std::int32_t thread = 0; thread < 32; ++thread)
        for (std::int32_t q = thread; q < 70; q += 32)
            expert0.push_back(q);
    EXPECT_EQ(positions(a, 192, 262), expert0);
    EXPECT_EQ(positions(a, 192, 210), (std::vector<std::int32_t>{0, 32, 64, 1, 33, 65, 2, 34, 66, 3,
                                                                 35, 67, 4, 36, 68, 5, 37, 69}));
    EXPECT_EQ(positions(a, 210, 214), (std::vector<std::int32_t>{6, 38, 7, 39}));
    EXPECT_EQ(positions(a, 254, 262), (std::vector<std::int32_t>{28, 60, 29, 61, 30, 62, 31, 63}));
    EXPECT_EQ(a.sorted_ids[197], 65);
    EXPECT_EQ(positions(a, 256, 262), (std::vector<std::int32_t>{29, 61, 30, 62, 31, 63}));
    EXPECT_EQ(positions(a, 262, 320), std::vector<std::int32_t>(58, 256));
    std::vector<std::int32_t> expert1(12);
    std::iota(expert1.begin(), expert1.end(), 128);
    EXPECT_EQ(positions(a, 320, 332), expert1);
    EXPECT_EQ(positions(a, 332, 445), std::vector<std::int32_t>(113, 256));
}

TEST(Alignment, AscendingOrderHasTheSameGroups) {
    const Alignment seed = align_blocks(worked_ids(), 2, 64, RowOrder::kSmallBatch);
    const Alignment ours = align_blocks(worked_ids(), 2, 64);
    EXPECT_EQ(ours.expert_ids, seed.expert_ids);
    EXPECT_EQ(ours.padded, seed.padded);
    std::vector<std::int32_t> expert0(70);
    std::iota(expert0.begin(), expert0.end(), 0);
    EXPECT_EQ(positions(ours, 192, 262), expert0);
    EXPECT_EQ(positions(ours, 320, 332), positions(seed, 320, 332));
}

TEST(Alignment, FewRowsGetABlockEach) {
    // S = 2 < L + 1 = 5: Q = S * BM, where the general formula would give 2 + 5*15 = 77.
    EXPECT_EQ(alignment_capacity(2, 4, 16), 32);
    EXPECT_EQ(alignment_capacity(4, 4, 16), 64);
    EXPECT_EQ(alignment_capacity(5, 4, 16), 5 + 5 * 15);
    const Alignment a = align_blocks(std::vector<std::int32_t>{3, 1}, 4, 16, RowOrder::kSmallBatch);
    EXPECT_EQ(a.expert_ids, (std::vector<std::int32_t>{1, 3}));
    EXPECT_EQ(a.sorted_ids[0], 1);
    EXPECT_EQ(a.sorted_ids[16], 0);
    EXPECT_EQ(a.padded, 32);
}

TEST(Alignment, NoRowsAndOnlyForeignRows) {
    const Alignment none = align_blocks({}, 4, 16);
    EXPECT_TRUE(none.sorted_ids.empty());
    EXPECT_EQ(none.padded, 0);
    const Alignment foreign = align_blocks(std::vector<std::int32_t>(20, -1), 4, 16);
    EXPECT_EQ(foreign.padded, 32);
    EXPECT_EQ(foreign.expert_ids[0], -1);
    EXPECT_EQ(foreign.expert_ids[1], -1);
}

TEST(Alignment, ThreadStrideFollowsTheExperts) {
    // L + 1 = 41 counting threads: rows 0, 41, 82 come first.
    const std::vector<std::int32_t> ids(100, 7);
    const Alignment a = align_blocks(ids, 40, 8, RowOrder::kSmallBatch);
    EXPECT_EQ(positions(a, 0, 6), (std::vector<std::int32_t>{0, 41, 82, 1, 42, 83}));
    EXPECT_TRUE(small_batch_order(1023, 63));
    EXPECT_FALSE(small_batch_order(1024, 63));
    EXPECT_FALSE(small_batch_order(1023, 64));
}

TEST(Alignment, EveryRowAppearsOnceInItsExpertsBlocks) {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        const auto local = static_cast<std::int32_t>(random() % 12);
        std::vector<std::int32_t> ids(random() % 90);
        for (auto& id : ids)
            id = static_cast<std::int32_t>(random() % static_cast<unsigned>(local + 1)) - 1;
        const auto block = static_cast<std::int64_t>(1 + random() % 20);
        for (RowOrder order : {RowOrder::kAscending, RowOrder::kSmallBatch}) {
            const Alignment a = align_blocks(ids, local, block, order);
            ASSERT_LE(a.padded, static_cast<std::int64_t>(a.sorted_ids.size()) + block - 1);
            std::vector<int> seen(ids.size(), 0);
            for (std::size_t p = 0; p < a.sorted_ids.size(); ++p) {
                const auto q = static_cast<std::size_t>(a.sorted_ids[p]);
                if (q == ids.size())
                    continue;
                ASSERT_LT(static_cast<std::int64_t>(p), a.padded);
                ++seen[q];
                ASSERT_EQ(a.expert_ids[p / static_cast<std::size_t>(block)], ids[q]);
            }
            ASSERT_EQ(seen, std::vector<int>(ids.size(), 1));
        }
    }
}

TEST(Alignment, DescribesTheWorkedExample) {
    EXPECT_EQ(describe(align_blocks(worked_ids(), 2, 64, RowOrder::kSmallBatch)),
              "[0, 174)  expert -1, 174 rows\n"
              "[174, 192)  padding of expert -1\n"
              "[192, 262)  expert 0, 70 rows\n"
              "[262, 320)  padding of expert 0\n"
              "[320, 332)  expert 1, 12 rows\n"
              "[332, 384)  padding of expert 1\n"
              "[384, 445)  unused capacity\n");
}

TEST(Alignment, GroupsOfTheWorkedExample) {
    const auto groups = list_groups(align_blocks(worked_ids(), 2, 64, RowOrder::kSmallBatch));
    ASSERT_EQ(groups.size(), 3u);
    EXPECT_EQ(groups[0].expert, -1);
    EXPECT_EQ(groups[0].last, 192);
    EXPECT_EQ(groups[0].rows.size(), 174u);
    EXPECT_EQ(groups[1].expert, 0);
    EXPECT_EQ(groups[1].first, 192);
    EXPECT_EQ(groups[1].last, 320);
    EXPECT_EQ(groups[1].rows.size(), 70u);
    EXPECT_EQ(groups[1].rows[5], 65);
    EXPECT_EQ(groups[2].last, 384);
    EXPECT_EQ(groups[2].rows.front(), 128);
    EXPECT_TRUE(list_groups(align_blocks({}, 4, 16)).empty());
}

TEST(AlignmentDeathTest, RefusesIdsOfNoExpert) {
    EXPECT_DEATH(align_blocks(std::vector<std::int32_t>{2}, 2, 8), "id < local");
    EXPECT_DEATH(align_blocks(std::vector<std::int32_t>(1024, 0), 2, 8, RowOrder::kSmallBatch),
                 "small_batch_order");
}

} // namespace
} // namespace lr::experts
