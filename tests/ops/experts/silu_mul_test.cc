// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "ops/experts/silu_mul.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lr::ops {
namespace {

struct Case {
    GuardedTensor gate_up, n_live{DType::kI32, {1}}, y;
    SiluMulArgs args;

    Case(DType in, DType out, std::int64_t n, std::int64_t width)
        : gate_up(in, {n, 2 * width}, 2 * width + 6), y(out, {n, width}) {
        n_live.set(0, static_cast<double>(n));
        args = {.gate_up = gate_up, .n_live = n_live, .y = y};
    }
    void run() {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(2);
        cpu::silu_mul(args, pool);
        EXPECT_TRUE(y.guards_intact());
    }
};

// exp within 1 ulp, then an addition, a division and a product: 5 roundings of 2^-24 are counted
// (exp counts twice); the bf16 store adds 2^-8.
TEST(SiluMul, MatchesDouble) {
    for (DType out : {DType::kF32, DType::kBF16}) {
        Case c(DType::kBF16, out, 7, 50);
        c.gate_up.fill("gate_up", 3.0);
        c.run();
        for (std::int64_t t = 0; t < 7; ++t)
            for (std::int64_t i = 0; i < 50; ++i) {
                const double g = c.gate_up.at(t * 100 + i);
                const double expected = g / (1 + std::exp(-g)) * c.gate_up.at(t * 100 + 50 + i);
                const double bound = 5 * 0x1p-24 + (out == DType::kBF16 ? 0x1p-8 : 0);
                ASSERT_NEAR(c.y.at(t * 50 + i), expected, std::abs(expected) * bound);
            }
    }
}

TEST(SiluMul, ExtremeGates) {
    Case c(DType::kF32, DType::kF32, 1, 4);
    c.gate_up.set_all({-200, 200, 0, -std::numeric_limits<double>::infinity(), 3, 3, 3, 3});
    c.run();
    EXPECT_EQ(c.y.at(0), 0.0);
    EXPECT_EQ(c.y.at(1), 600.0);
    EXPECT_EQ(c.y.at(2), 0.0);
    EXPECT_TRUE(std::isnan(c.y.at(3)));
}

TEST(SiluMul, DeadRowsAreZeroAndNotRead) {
    Case c(DType::kBF16, DType::kBF16, 3, 4);
    for (std::int64_t i = 0; i < 8; ++i)
        c.gate_up.set(i, 1.0);
    c.n_live.set(0, 1);
    c.run();
    EXPECT_EQ(c.y.at(0), numerics::round_bf16(0.7310586f));
    EXPECT_TRUE(c.y.row_is_zero(1) && c.y.row_is_zero(2));
}

TEST(SiluMul, RefusesWrongShapes) {
    Case c(DType::kBF16, DType::kBF16, 3, 4);
    SiluMulArgs args = c.args;
    args.gate_up.shape[1] = 7;
    EXPECT_EQ(check(args).message(), "silu_mul: gate_up dim 1: expected 8, got 7");
    EXPECT_EQ(cost(c.args).flops, 5 * 12);
    EXPECT_EQ(cost(c.args).bytes(), 3 * 12 * 2 + 4);
}

} // namespace
} // namespace lr::ops
