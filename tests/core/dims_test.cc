// SPDX-License-Identifier: Apache-2.0
#include "core/dims.h"

#include <gtest/gtest.h>

#include <array>

namespace lr {
namespace {

// A view with an address that is never read.
ConstView symbolic(DType dtype, Shape shape) {
    static const std::byte somewhere{};
    return {&somewhere, dtype, shape};
}

TEST(ShapeCheck, BindsALetterOnceAndHoldsItAfterwards) {
    ShapeCheck check("gdn_recurrent_update");
    Dim n("n"), hk("Hk"), hv("Hv"), dk("dk");
    check.match("q", symbolic(DType::kBF16, {5, 16, 128}), {n, hk, dk}, {DType::kBF16});
    check.match("b", symbolic(DType::kBF16, {5, 32}), {n, hv}, {DType::kBF16});
    check.match("v", symbolic(DType::kBF16, {5, 32, 128}), {n, hv, dk}, {DType::kBF16});
    EXPECT_TRUE(check.status().ok());
    EXPECT_EQ(n.value(), 5);
    EXPECT_EQ(hv.value(), 32);
}

TEST(ShapeCheck, NamesOpTensorDimLetterAndBothSizes) {
    ShapeCheck check("gdn_recurrent_update");
    Dim n("n"), hv("Hv");
    check.match("b", symbolic(DType::kBF16, {5, 32}), {n, hv}, {DType::kBF16});
    check.match("v", symbolic(DType::kBF16, {5, 16}), {n, hv}, {DType::kBF16});
    EXPECT_EQ(check.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(check.status().message(), "gdn_recurrent_update: v dim 1: expected Hv=32, got 16");
}

TEST(ShapeCheck, ComparesLiteralSizes) {
    ShapeCheck check("attention");
    Dim p("P");
    check.match("k_cache", symbolic(DType::kBF16, {9, 32}), {p, 64}, {DType::kBF16});
    EXPECT_EQ(check.status().message(), "attention: k_cache dim 1: expected 64, got 32");
}

TEST(ShapeCheck, HoldsADimThatCameWithAValue) {
    ShapeCheck check("op");
    Dim n("n", 4);
    check.match("x", symbolic(DType::kF32, {3}), {n}, {DType::kF32});
    EXPECT_EQ(check.status().message(), "op: x dim 0: expected n=4, got 3");
}

TEST(ShapeCheck, ListsThePermittedTypes) {
    ShapeCheck check("op");
    Dim n("n");
    check.match("x", symbolic(DType::kI32, {3}), {n}, {DType::kBF16, DType::kF32});
    EXPECT_EQ(check.status().message(), "op: x: expected dtype bf16 or f32, got i32");
}

TEST(ShapeCheck, PrintsTheShapeWhenTheRankIsWrong) {
    ShapeCheck check("op");
    Dim n("n"), d("D");
    check.match("x", symbolic(DType::kF32, {3, 4, 5}), {n, d}, {DType::kF32});
    EXPECT_EQ(check.status().message(), "op: x: expected 2 dims, got shape [3, 4, 5]");
}

TEST(ShapeCheck, RefusesAnAbsentTensorUnlessItIsOptional) {
    ShapeCheck check("op");
    Dim n("n");
    check.match_optional("residual", ConstView(), {n}, {DType::kF32});
    EXPECT_TRUE(check.status().ok());
    EXPECT_FALSE(n.bound());
    check.match("x", ConstView(), {n}, {DType::kF32});
    EXPECT_EQ(check.status().message(), "op: x: expected a tensor, got none");
}

TEST(ShapeCheck, ChecksAnOptionalTensorThatIsThere) {
    ShapeCheck check("op");
    Dim n("n", 4);
    check.match_optional("residual", symbolic(DType::kF32, {3}), {n}, {DType::kF32});
    EXPECT_EQ(check.status().message(), "op: residual dim 0: expected n=4, got 3");
}

TEST(ShapeCheck, AllowsANullTensorWithoutElements) {
    ShapeCheck check("op");
    Dim n("n"), d("D");
    check.match("x", ConstView(nullptr, DType::kF32, {0, 8}), {n, d}, {DType::kF32});
    EXPECT_TRUE(check.status().ok());
    EXPECT_EQ(n.value(), 0);
}

TEST(ShapeCheck, ReportsOnlyTheFirstDisagreement) {
    ShapeCheck check("op");
    Dim n("n", 4);
    check.match("x", symbolic(DType::kF32, {3}), {n}, {DType::kF32});
    check.match("y", symbolic(DType::kI32, {3}), {n}, {DType::kF32});
    check.require(false, "z must be 16-byte aligned");
    EXPECT_EQ(check.status().message(), "op: x dim 0: expected n=4, got 3");
}

TEST(ShapeCheck, RequiresFreeConditions) {
    ShapeCheck check("op");
    check.require(true, "never seen");
    EXPECT_TRUE(check.status().ok());
    check.require(false, "x rows must be 16-byte aligned");
    EXPECT_EQ(check.status().message(), "op: x rows must be 16-byte aligned");
}

TEST(DimDeathTest, HasNoValueBeforeItIsBound) {
    const Dim n("n");
    EXPECT_FALSE(n.bound());
    EXPECT_STREQ(n.letter(), "n");
    EXPECT_DEATH(static_cast<void>(n.value()), "check failed: bound()");
}

} // namespace
} // namespace lr
