// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "ops/gemm/gather_rows.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

TEST(GatherRows, CopiesNamedRowsAndZeroesTheRest) {
    ThreadPool pool(2);
    for (DType dtype : {DType::kBF16, DType::kF32, DType::kE4M3}) {
        GuardedTensor x(dtype, {5, 3}, 7), rows(DType::kI32, {4}), y(dtype, {4, 3});
        for (std::int64_t i = 0; i < 15; ++i)
            x.set(i, static_cast<double>(i + 1));
        rows.set_all({4, -1, 0, 4});
        const GatherRowsArgs args{.x = x, .rows = rows, .y = y};
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        cpu::gather_rows(args, pool);
        EXPECT_EQ(y.row_bits(0), x.row_bits(4));
        EXPECT_TRUE(y.row_is_zero(1));
        EXPECT_EQ(y.row_bits(2), x.row_bits(0));
        EXPECT_EQ(y.row_bits(3), x.row_bits(4));
        EXPECT_TRUE(y.guards_intact());
    }
}

TEST(GatherRows, RefusesOtherDtypesAndShapes) {
    GuardedTensor x(DType::kBF16, {5, 3}), rows(DType::kI32, {4}), wide(DType::kBF16, {4, 4}),
        f32(DType::kF32, {4, 3});
    EXPECT_EQ(check(GatherRowsArgs{.x = x, .rows = rows, .y = wide}).message(),
              "gather_rows: y dim 1: expected D=3, got 4");
    EXPECT_EQ(check(GatherRowsArgs{.x = x, .rows = rows, .y = f32}).message(),
              "gather_rows: y: expected dtype bf16, got f32");
    EXPECT_EQ(cost(GatherRowsArgs{.x = x, .rows = rows, .y = f32}).bytes(), 16 + 2 * 48);
}

TEST(GatherRowsDeathTest, ARowThatDoesNotExistIsACallerBug) {
    ThreadPool pool(1);
    GuardedTensor x(DType::kBF16, {5, 3}), rows(DType::kI32, {1}), y(DType::kBF16, {1, 3});
    rows.set(0, 5);
    EXPECT_DEATH(cpu::gather_rows({.x = x, .rows = rows, .y = y}, pool), "row < args.x.rows");
}

} // namespace
} // namespace lr::ops
