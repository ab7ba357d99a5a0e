// SPDX-License-Identifier: Apache-2.0
#include "cpu/rows.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"
#include "numerics/f16.h"
#include "tests/cpu/plain_dot.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace lr::cpu {
namespace {

template <typename T> View view_of(std::vector<T>& values, DType dtype, Shape shape) {
    return {reinterpret_cast<std::byte*>(values.data()), dtype, shape};
}

std::vector<float> random_floats(std::int64_t count, const char* name) {
    const numerics::CounterRng rng(name, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = rng.normal(i, numerics::normal_scale(1.0), 0.0f);
    return values;
}

TEST(Rows, LoadsEachFloatTypeFromARowOffset) {
    std::vector<float> f32 = {0, 1, 2, 3, 4, 5.5f};
    std::vector<std::uint16_t> bf16(6), f16(6);
    for (std::size_t i = 0; i < 6; ++i) {
        bf16[i] = numerics::encode_bf16(f32[i]);
        f16[i] = numerics::encode_f16(f32[i]);
    }
    for (const View& view : {view_of(f32, DType::kF32, {2, 3}), view_of(bf16, DType::kBF16, {2, 3}),
                             view_of(f16, DType::kF16, {2, 3})}) {
        std::array<float, 2> out{};
        load_floats(view, 1, 1, 2, out.data());
        EXPECT_EQ(out[0], 4.0f) << dtype_name(view.dtype);
        EXPECT_EQ(out[1], 5.5f) << dtype_name(view.dtype);
        EXPECT_EQ(float_at(view, 3), 3.0f);
    }
}

TEST(Rows, FollowsTheRowStride) {
    std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7};
    const View columns = view_of(values, DType::kF32, {2, 4}).slice_columns(1, 2);
    std::array<float, 2> out{};
    load_floats(columns, 1, 0, 2, out.data());
    EXPECT_EQ(out[0], 5.0f);
    EXPECT_EQ(out[1], 6.0f);
    const std::array<float, 2> stored = {50, 60};
    store_floats(columns, 1, 0, 2, stored.data());
    EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4, 50, 60, 7}));
}

TEST(Rows, RoundsToNearestEvenWhenStoringBf16) {
    std::vector<std::uint16_t> codes(4);
    const float low_tie = 1.0f + 0x1p-8f;         // between 1 and 1 + 2^-7: even is 1
    const float high_tie = 1.0f + 3.0f * 0x1p-8f; // between 1 + 2^-7 and 1 + 2^-6: even is 1 + 2^-6
    const float above = std::nextafter(low_tie, 2.0f);
    const std::array<float, 4> values = {low_tie, high_tie, above, -low_tie};
    store_floats(view_of(codes, DType::kBF16, {1, 4}), 0, 0, 4, values.data());
    EXPECT_EQ(codes, (std::vector<std::uint16_t>{0x3F80, 0x3F82, 0x3F81, 0xBF80}));
    EXPECT_EQ(round_bf16(high_tie), 1.0f + 0x1p-6f);
}

TEST(Rows, StoresF32WithoutRounding) {
    std::vector<float> out(1);
    const float value = 1.0f + 0x1p-23f;
    store_floats(view_of(out, DType::kF32, {1, 1}), 0, 0, 1, &value);
    EXPECT_EQ(out[0], value);
}

TEST(RowsDeathTest, RefusesToLoadCodesAsFloats) {
    std::vector<std::uint8_t> codes(4);
    float out = 0;
    EXPECT_DEATH(load_floats(view_of(codes, DType::kE4M3, {1, 4}), 0, 0, 1, &out), "is_float");
}

TEST(Rows, ZeroesTheRestOfAStridedViewAndNothingElse) {
    std::vector<float> values(12, 7.0f);
    zero_rows(view_of(values, DType::kF32, {3, 4}).slice_columns(1, 2), 1);
    EXPECT_EQ(values, (std::vector<float>{7, 7, 7, 7, 7, 0, 0, 7, 7, 0, 0, 7}));
    zero_rows(view_of(values, DType::kF32, {3, 4}), 3);
    EXPECT_EQ(values[0], 7.0f);
}

TEST(Rows, ClampsTheLiveRowCount) {
    std::vector<std::int32_t> count = {3};
    const View n_live = view_of(count, DType::kI32, {1});
    EXPECT_EQ(live_rows(ConstView(), 5), 5);
    EXPECT_EQ(live_rows(n_live, 5), 3);
    EXPECT_EQ(live_rows(n_live, 2), 2);
    count[0] = -1;
    EXPECT_EQ(live_rows(n_live, 5), 0);
}

TEST(Dot, IsExactOnSmallIntegers) {
    std::vector<float> x(100), y(100);
    for (std::size_t i = 0; i < 100; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = static_cast<float>(i % 7) - 3.0f;
    }
    double expected = 0;
    for (std::int64_t count = 0; count <= 100; ++count) {
        EXPECT_EQ(dot(x.data(), y.data(), count), static_cast<float>(expected)) << count;
        if (count < 100)
            expected += double{x[static_cast<std::size_t>(count)]} *
                        double{y[static_cast<std::size_t>(count)]};
    }
}

TEST(Dot, FollowsTheDocumentedTreeToTheBit) {
    const std::vector<float> x = random_floats(300, "x");
    const std::vector<float> y = random_floats(300, "y");
    for (std::int64_t count = 0; count <= 300; ++count) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(dot(x.data(), y.data(), count)),
                  std::bit_cast<std::uint32_t>(plain_dot(x.data(), y.data(), count)))
            << count;
        EXPECT_EQ(sum_squares(x.data(), count), plain_dot(x.data(), x.data(), count)) << count;
    }
}

TEST(Dot, CarriesNaNAndInfinity) {
    std::vector<float> x(40, 1.0f);
    const std::vector<float> ones(40, 1.0f);
    x[37] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(dot(x.data(), ones.data(), 40), std::numeric_limits<float>::infinity());
    x[5] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(dot(x.data(), ones.data(), 40)));
}

TEST(ThreadScratch, KeepsSlotsApartAndGrows) {
    float* a = thread_scratch(0, 10);
    float* b = thread_scratch(1, 10);
    a[9] = 1.0f;
    b[9] = 2.0f;
    EXPECT_NE(a, b);
    EXPECT_EQ(thread_scratch(0, 5), a); // a smaller wish keeps the buffer
    EXPECT_EQ(a[9], 1.0f);
    float* larger = thread_scratch(0, 100000);
    larger[99999] = 3.0f;
    EXPECT_EQ(b[9], 2.0f);
}

TEST(ThreadScratch, BelongsToOneThread) {
    float* mine = thread_scratch(7, 4);
    float* theirs = nullptr;
    std::thread([&theirs] { theirs = thread_scratch(7, 4); }).join();
    EXPECT_NE(mine, theirs);
}

} // namespace
} // namespace lr::cpu
