// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

namespace lr {
namespace {

TEST(Shape, CountsElementsAndRowElements) {
    const Shape shape = {54, 32, 128};
    EXPECT_EQ(shape.rank(), 3);
    EXPECT_EQ(shape[1], 32);
    EXPECT_EQ(shape.count(), 54 * 32 * 128);
    EXPECT_EQ(shape.row_count(), 32 * 128);
}

TEST(Shape, HoldsOneElementAtRankZero) {
    const Shape scalar;
    EXPECT_EQ(scalar.rank(), 0);
    EXPECT_EQ(scalar.count(), 1);
    EXPECT_EQ(scalar.row_count(), 1);
    EXPECT_EQ(scalar.to_string(), "[]");
}

TEST(Shape, HasRowsOfOneElementAtRankOne) {
    EXPECT_EQ((Shape{7}).row_count(), 1);
    EXPECT_EQ((Shape{7}).count(), 7);
}

TEST(Shape, IsEmptyWhenADimIsZero) {
    EXPECT_EQ((Shape{0, 128}).count(), 0);
    EXPECT_EQ((Shape{0, 128}).row_count(), 128);
}

TEST(Shape, PrintsItsDims) {
    EXPECT_EQ((Shape{54, 32, 128}).to_string(), "[54, 32, 128]");
    EXPECT_EQ((Shape{1}).to_string(), "[1]");
}

TEST(Shape, ComparesRankAndDims) {
    EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
    EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
    EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
    EXPECT_NE((Shape{0}), Shape{});
}

TEST(Shape, IteratesOverItsDimsOnly) {
    const Shape shape = {4, 5, 6, 7, 8};
    EXPECT_EQ(std::vector<std::int64_t>(shape.begin(), shape.end()),
              (std::vector<std::int64_t>{4, 5, 6, 7, 8}));
}

TEST(Shape, CopiesAsBytes) {
    static_assert(std::is_trivially_copyable_v<Shape>);
    Shape shape = {2};
    shape.push_back(3);
    shape[0] = 9;
    EXPECT_EQ(shape, (Shape{9, 3}));
}

TEST(ShapeDeathTest, RefusesASixthDim) {
    Shape shape = {1, 2, 3, 4, 5};
    EXPECT_DEATH(shape.push_back(6), "rank < kMaxRank");
}

} // namespace
} // namespace lr
