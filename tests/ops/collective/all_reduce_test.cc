// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/collective/collective.h"
#include "ops/collective/all_reduce.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

struct Case {
    GuardedTensor x{DType::kBF16, {5, 9}, 12};
    GuardedTensor y{DType::kBF16, {5, 9}};
    GuardedTensor n_live{DType::kI32, {1}};
    AllReduceArgs args;

    Case() {
        x.fill("x", 1.0);
        n_live.set(0, 3);
        x.poison(3, 2);
        args = {.x = x, .n_live = n_live, .y = y};
    }
};

TEST(AllReduce, CopiesLiveRowsAndZeroesTheRestForOneRank) {
    Case c;
    ASSERT_TRUE(check(c.args).ok());
    ThreadPool pool(2);
    cpu::all_reduce(c.args, pool);
    for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(c.y.row_bits(i), c.x.row_bits(i));
    EXPECT_TRUE(c.y.row_is_zero(3));
    EXPECT_TRUE(c.y.row_is_zero(4));
    EXPECT_TRUE(c.y.guards_intact());
}

TEST(AllReduce, LeavesLiveRowsAloneInPlace) {
    Case c;
    const auto before = c.x.row_bits(2);
    c.args.y = c.x;
    ThreadPool pool(1);
    cpu::all_reduce(c.args, pool);
    EXPECT_EQ(c.x.row_bits(2), before);
    EXPECT_TRUE(c.x.row_is_zero(3));
    EXPECT_EQ(cost(c.args), Cost{});
}

TEST(AllReduce, RefusesMixedTypesAndNoRanks) {
    Case c;
    AllReduceArgs args = c.args;
    args.y.dtype = DType::kF32;
    EXPECT_EQ(check(args).message(), "all_reduce: y: expected dtype bf16, got f32");
    args = c.args;
    args.ranks = 0;
    EXPECT_EQ(check(args).message(), "all_reduce: ranks: expected 1..16, got 0");
}

TEST(AllReduce, CountsOneAddForEachFurtherRank) {
    Case c;
    c.args.ranks = 4;
    EXPECT_EQ(cost(c.args).flops, 3 * 5 * 9);
    EXPECT_EQ(cost(c.args).bytes(), 2 * 5 * 9 * 2 + 4);
}

} // namespace
} // namespace lr::ops
