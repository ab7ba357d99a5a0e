// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "ops/norm/zero_fill.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

TEST(ZeroFill, ZeroesEveryRowAndNoGap) {
    GuardedTensor y(DType::kBF16, {300, 3, 4}, 20);
    const ZeroFillArgs args{.y = y};
    ASSERT_TRUE(check(args).ok());
    ThreadPool pool(2);
    cpu::zero_fill(args, pool);
    for (std::int64_t i = 0; i < 300; ++i)
        ASSERT_TRUE(y.row_is_zero(i)) << i;
    EXPECT_TRUE(y.guards_intact());
}

TEST(ZeroFill, TakesPackedCodes) {
    GuardedTensor y(DType::kE2M1, {2, 32});
    ThreadPool pool(1);
    cpu::zero_fill({.y = y}, pool);
    EXPECT_TRUE(y.row_is_zero(1));
    EXPECT_TRUE(y.guards_intact());
    EXPECT_EQ(cost(ZeroFillArgs{.y = y}), (Cost{.write_bytes = 32}));
}

TEST(ZeroFill, RefusesAnAbsentTensor) {
    EXPECT_EQ(check(ZeroFillArgs{}).message(), "zero_fill: y: expected a tensor, got none");
}

} // namespace
} // namespace lr::ops
