// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "ops/gemm/splitk_reduce.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

TEST(SplitkReduce, AddsInAscendingOrderAndRoundsOnce) {
    ThreadPool pool(2);
    GuardedTensor partial(DType::kF32, {3, 2, 2}), y(DType::kBF16, {2, 2}),
        exact(DType::kF32, {2, 2});
    // Column 0 shows the order: (2^24 + 1) + 1 loses both ones, 2^24 + (1 + 1) would keep them.
    partial.set_all({0x1p24, 1.0, 2.0, 3.0, 1.0, 0x1p-8, 2.0, 3.0, 1.0, 0x1p-9, 2.0, 3.0});
    SplitkReduceArgs args{.partial = partial, .n_live = {}, .y = exact};
    ASSERT_TRUE(check(args).ok()) << check(args).message();
    cpu::splitk_reduce(args, pool);
    EXPECT_EQ(exact.at(0), 0x1p24);
    EXPECT_EQ(exact.at(1), 1.0 + 0x1p-8 + 0x1p-9);
    EXPECT_EQ(exact.at(2), 6.0);
    EXPECT_EQ(exact.at(3), 9.0);
    args.y = y;
    cpu::splitk_reduce(args, pool);
    EXPECT_EQ(y.at(1), 1.0 + 0x1p-7); // 1 + 0.75 ulp
    EXPECT_TRUE(y.guards_intact());
    EXPECT_EQ(cost(args).flops, 12);
    EXPECT_EQ(cost(args).read_bytes, 48);
    EXPECT_EQ(cost(args).write_bytes, 8);
}

TEST(SplitkReduce, DeadRowsAreZeroAndNotRead) {
    ThreadPool pool(1);
    GuardedTensor partial(DType::kF32, {2, 3, 4}), y(DType::kBF16, {3, 4}),
        n_live(DType::kI32, {1});
    n_live.set(0, 1); // partial stays NaN in rows 1 and 2
    for (std::int64_t s = 0; s < 2; ++s)
        for (std::int64_t j = 0; j < 4; ++j)
            partial.set(s * 12 + j, 1.0);
    cpu::splitk_reduce({.partial = partial, .n_live = n_live, .y = y}, pool);
    for (std::int64_t e = 0; e < 12; ++e)
        EXPECT_EQ(y.at(e), e < 4 ? 2.0 : 0.0);
}

TEST(SplitkReduce, RefusesWrongShapes) {
    GuardedTensor partial(DType::kF32, {2, 3, 4}), y(DType::kBF16, {3, 5});
    EXPECT_EQ(check(SplitkReduceArgs{.partial = partial, .n_live = {}, .y = y}).message(),
              "splitk_reduce: y dim 1: expected N=4, got 5");
}

} // namespace
} // namespace lr::ops
