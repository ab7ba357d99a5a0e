// SPDX-License-Identifier: Apache-2.0
#include "experts/endpoints.h"
#include "experts/layout.h"
#include "tests/experts/worked_example.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lr::experts {
namespace {

TEST(Layout, NamesGoBothWays) {
    for (Layout layout : kLayouts)
        EXPECT_EQ(layout_from_name(layout_name(layout)), layout);
    EXPECT_FALSE(layout_from_name("expert_major"));
}

TEST(Layout, ExpertMajorSlotsOfTheWorkedExample) {
    const std::vector<std::int32_t> ids = listed_ids(worked_problem());
    ASSERT_EQ(ids.size(), 256u);
    for (std::int32_t q = 0; q < 256; ++q)
        EXPECT_EQ(ids[static_cast<std::size_t>(q)], q < 70    ? 0
                                                    : q < 128 ? -1
                                                    : q < 140 ? 1
                                                              : -1)
            << q;
}

TEST(Layout, CompactingTheWorkedExampleMovesExpertOneBehindExpertZero) {
    const Problem problem = worked_problem();
    const RowMap slots = place_expert_major(problem.routing, 128);
    const RowMap compact = place_endpoints(problem.routing, 1, 82);
    const std::vector<std::int32_t> pack = gather_rows(slots, compact);
    ASSERT_EQ(pack.size(), 82u);
    for (std::int32_t row = 0; row < 70; ++row)
        EXPECT_EQ(pack[static_cast<std::size_t>(row)], row);
    for (std::int32_t row = 70; row < 82; ++row)
        EXPECT_EQ(pack[static_cast<std::size_t>(row)], 128 + row - 70);
    EXPECT_EQ(pack[72], 130);
    const std::vector<std::int32_t> restore = gather_rows(compact, slots);
    EXPECT_EQ(restore[130], 72);
    EXPECT_EQ(restore[100], -1); // a dead slot
}

TEST(Layout, DealtTokensGetAnExpertOnceAtMost) {
    const Routing routing = deal_routing(std::vector<std::int32_t>{3, 4, 0, 2}, 4, 3);
    EXPECT_EQ(count_rows(routing), (std::vector<std::int32_t>{3, 4, 0, 2}));
    EXPECT_EQ(routing.ids, (std::vector<std::int32_t>{0, 1, 3, 0, 1, -1, 0, 1, -1, 1, 3, -1}));
    EXPECT_EQ(count_rows(slice_tokens(routing, 1, 3)), (std::vector<std::int32_t>{2, 2, 0, 0}));
}

// Sends a batch through every pair of layouts and back: each pair must meet its own row.
TEST(Layout, ConversionsKeepTheIdentityOfRows) {
    std::mt19937 random(5);
    for (int round = 0; round < 100; ++round) {
        const auto local = static_cast<std::int64_t>(1 + random() % 8);
        const auto tokens = static_cast<std::int64_t>(1 + random() % 30);
        const auto per_token =
            static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(local));
        Routing routing{.local = local, .per_token = per_token, .ids = {}};
        for (std::int64_t t = 0; t < tokens; ++t) {
            std::vector<std::int32_t> experts(static_cast<std::size_t>(local));
            for (std::size_t e = 0; e < experts.size(); ++e)
                experts[e] = static_cast<std::int32_t>(e);
            std::shuffle(experts.begin(), experts.end(), random);
            for (std::int64_t k = 0; k < per_token; ++k)
                routing.ids.push_back(random() % 4 ? experts[static_cast<std::size_t>(k)] : -1);
        }
        const std::int64_t rows = rows_capacity(tokens, per_token, local, 16);
        const std::vector<RowMap> maps = {
            place_token_major(routing), place_expert_major(routing, tokens),
            place_endpoints(routing, 16, rows), place_aligned_end(routing, 16, rows)};
        const RowMap blocks = place_rank_major(routing, 3, tokens);
        for (const RowMap& to : maps) {
            for (const RowMap& from : maps) {
                const std::vector<std::int32_t> there = gather_rows(from, to);
                const std::vector<std::int32_t> back = gather_rows(to, from);
                for (std::size_t q = 0; q < routing.ids.size(); ++q) {
                    if (routing.ids[q] < 0) {
                        ASSERT_EQ(to.row_of[q], -1);
                        continue;
                    }
                    const auto row = static_cast<std::size_t>(to.row_of[q]);
                    ASSERT_EQ(there[row], from.row_of[q]);
                    ASSERT_EQ(back[static_cast<std::size_t>(from.row_of[q])], to.row_of[q]);
                    ASSERT_EQ(to.expert[row], routing.ids[q]);
                }
            }
            // Pairs of one token share its row of rank-major.
            const std::vector<std::int32_t> expand = gather_rows(blocks, to);
            for (std::size_t q = 0; q < routing.ids.size(); ++q)
                if (routing.ids[q] >= 0) {
                    ASSERT_EQ(expand[static_cast<std::size_t>(to.row_of[q])], blocks.row_of[q]);
                    ASSERT_EQ(blocks.row_of[q] / tokens,
                              static_cast<std::int64_t>(q) / per_token / ((tokens + 2) / 3));
                }
        }
    }
}

TEST(Layout, RankMajorKeepsARowForEachTokenThatComes) {
    // Tokens 0, 1 of rank 0 and 2, 3 of rank 1; token 1 chose nobody here.
    const Routing routing{.local = 2, .per_token = 2, .ids = {0, 1, -1, -1, 1, -1, -1, 0}};
    const RowMap map = place_rank_major(routing, 2, 2);
    EXPECT_EQ(map.rows, 4);
    EXPECT_EQ(map.row_of, (std::vector<std::int32_t>{0, 0, -1, -1, 2, -1, -1, 3}));
    Problem problem = worked_problem();
    problem.routing = routing;
    problem.layout = Layout::kRankMajor;
    problem.ranks = 2;
    problem.capacity = 4;
    EXPECT_EQ(listed_ids(problem), (std::vector<std::int32_t>{0, 1, -1, -1, 1, -1, -1, 0}));
}

TEST(LayoutDeathTest, RefusesWhatDoesNotFit) {
    const Problem problem = worked_problem();
    EXPECT_DEATH(place_expert_major(problem.routing, 69), "count <= capacity");
    EXPECT_DEATH(place_endpoints(problem.routing, 128, 139), "row < rows");
    EXPECT_DEATH(deal_routing(std::vector<std::int32_t>{3}, 2, 1), "count <= tokens");
}

} // namespace
} // namespace lr::experts
