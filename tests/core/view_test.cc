// SPDX-License-Identifier: Apache-2.0
#include "core/view.h"

#include <gtest/gtest.h>

#include <array>
#include <type_traits>

namespace lr {
namespace {

struct Matrix {
    std::array<float, 12> values{};
    View view{reinterpret_cast<std::byte*>(values.data()), DType::kF32, Shape{3, 4}};

    Matrix() {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i);
    }
};

TEST(View, IsNullByDefault) {
    const View view;
    EXPECT_TRUE(view.empty());
    EXPECT_EQ(view.shape.rank(), 0);
    static_assert(std::is_trivially_copyable_v<View>);
}

TEST(View, IsDenseUnlessAStrideIsGiven) {
    Matrix m;
    EXPECT_EQ(m.view.row_stride, 4);
    EXPECT_TRUE(m.view.dense());
    EXPECT_EQ(m.view.rows(), 3);
    EXPECT_EQ(m.view.bytes(), 48);
    EXPECT_EQ(*m.view.row_as<float>(2), 8.0f);
}

TEST(View, SlicesRows) {
    Matrix m;
    const View part = m.view.slice_rows(1, 2);
    EXPECT_EQ(part.shape, (Shape{2, 4}));
    EXPECT_EQ(part.as<float>()[0], 4.0f);
    EXPECT_EQ(part.row_as<float>(1)[3], 11.0f);
}

TEST(View, SlicesColumnsWithTheParentsStride) {
    Matrix m;
    const View part = m.view.slice_columns(1, 2);
    EXPECT_EQ(part.shape, (Shape{3, 2}));
    EXPECT_FALSE(part.dense());
    EXPECT_EQ(part.row_as<float>(0)[0], 1.0f);
    EXPECT_EQ(part.row_as<float>(2)[1], 10.0f);
    EXPECT_EQ(part.slice_rows(1, 1).row_as<float>(0)[0], 5.0f);
    EXPECT_EQ(part.bytes(), 24); // its elements, not the memory it spans
}

TEST(View, ConvertsToConstAndWritesThrough) {
    Matrix m;
    const ConstView read = m.view.slice_columns(2, 1);
    m.view.row_as<float>(1)[2] = -1.0f;
    EXPECT_EQ(*read.row_as<float>(1), -1.0f);
    static_assert(std::is_same_v<decltype(read.as<float>()), const float*>);
    static_assert(!std::is_convertible_v<ConstView, View>);
}

TEST(View, StepsOverPackedFourBitRows) {
    std::array<std::byte, 8> bytes{};
    const View view(bytes.data(), DType::kE2M1, Shape{2, 4}, 8);
    EXPECT_EQ(view.row(1) - view.row(0), 4);
    EXPECT_EQ(view.bytes(), 4);
}

} // namespace
} // namespace lr
