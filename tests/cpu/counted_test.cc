// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/counted.h"

#include <gtest/gtest.h>

namespace lr::cpu::reference {
namespace {

constexpr double u = 0x1p-24;

TEST(Counted, AnExactSumLosesNothing) {
    const Counted sum = exactly(1.5) + exactly(2.25);
    EXPECT_EQ(sum.value, 3.75);
    EXPECT_EQ(sum.error, 0);
}

TEST(Counted, EachOperationAddsOneRoundingOfItsResult) {
    // 1 + 2^-30 needs more bits than f32 has.
    const Counted sum = exactly(1) + exactly(0x1p-30);
    EXPECT_NEAR(sum.error, u, 1e-15);
    const Counted twice = sum * sum;
    EXPECT_NEAR(twice.error, 3 * u, 1e-13); // both operands' and its own
}

TEST(Counted, ASumOfProductsCountsItsLongestWay) {
    Dot dot;
    for (int i = 0; i < 32; ++i)
        dot.add(exactly(i % 2 == 0 ? 1.0 : -1.0), exactly(3));
    EXPECT_EQ(tree_steps(32), 7); // 32 / 16 + 5
    const Counted sum = dot.sum(tree_steps(32));
    EXPECT_EQ(sum.value, 0);
    EXPECT_NEAR(sum.error, 7 * u * 32 * 3, 1e-9); // of the magnitudes, not of what is left of them
}

TEST(Counted, StoringMovesByAStepOnlyAcrossAnEdge) {
    // Steps of bf16 above 1 are 2^-7; the edge between 1 and 1 + 2^-7 lies at 1 + 2^-8.
    const Counted inside = stored({1 + 0x1p-9, 0x1p-12}, DType::kBF16);
    EXPECT_EQ(inside.value, 1);
    EXPECT_EQ(inside.error, 0);
    const Counted edge = stored({1 + 0x1p-8 - 0x1p-14, 0x1p-12}, DType::kBF16);
    EXPECT_EQ(edge.value, 1);
    EXPECT_EQ(edge.error, 0x1p-7);
}

TEST(Counted, CodesAreEqualWhereNoEdgeIsNear) {
    EXPECT_EQ(stored({5.1, 0.01}, DType::kE4M3).error, 0); // steps of 0.5, edge at 5.25
    EXPECT_EQ(stored({5.245, 0.01}, DType::kE4M3).error, 0.5);
    EXPECT_EQ(stored({2.4, 0.2}, DType::kE2M1).error, 1); // 2 or 3, edge at 2.5
    // A zero of either sign is the same number with other bits.
    const Counted zero = stored({1e-9, 2e-9}, DType::kE4M3);
    EXPECT_EQ(zero.value, 0);
    EXPECT_GT(zero.error, 0);
    EXPECT_LT(zero.error, 1e-300);
}

TEST(Counted, NotANumberHasNoBound) {
    const Counted nan = exactly(NAN) + exactly(1);
    EXPECT_TRUE(std::isnan(nan.value));
    EXPECT_EQ(nan.error, 0);
    EXPECT_EQ(stored(exactly(INFINITY), DType::kBF16).value, INFINITY);
}

TEST(Counted, ElementaryFunctionsCarryTheirArgumentsError) {
    const Counted e = exp({1, 1e-3});
    EXPECT_NEAR(e.value, 2.718281828, 1e-9);
    EXPECT_NEAR(e.error, 2.718281828 * 1.0005e-3, 2e-6);
    EXPECT_NEAR(exp(exactly(1)).error, kElementary * u * 2.718281828, 1e-12);
}

} // namespace
} // namespace lr::cpu::reference
