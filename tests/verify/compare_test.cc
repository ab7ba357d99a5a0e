// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "verify/compare.h"

namespace lr::verify {
namespace {

ConstView floats(const std::vector<float>& values, Shape shape) {
    return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
}

TEST(Compare, NamesTheFirstElementBeyondItsBound) {
    const std::vector<float> reference = {1, 2, 3, 4, 5, 6}, device = {1, 2.5f, 3, 4, 5.5f, 7};
    const std::vector<double> bound = {0, 1, 0, 0, 0.25, 0.5};
    const Agreement a = compare(floats(reference, {2, 3}), floats(device, {2, 3}), bound.data());
    ASSERT_TRUE(a.first);
    EXPECT_EQ(a.first->at, (std::vector<std::int64_t>{1, 1}));
    EXPECT_EQ(a.first->reference, "5");
    EXPECT_EQ(a.first->device, "5.5");
    EXPECT_EQ(a.first->expected, "within 0.25");
    EXPECT_EQ(a.elements, 6);
    EXPECT_EQ(a.bounded, 3);
    EXPECT_EQ(a.apart, 3);
    EXPECT_DOUBLE_EQ(a.largest_share, 2);
}

TEST(Compare, LooksForNansBeforeBounds) {
    const std::vector<float> reference = {1, 2, 3}, device = {9, 2, NAN};
    const Agreement a = compare(floats(reference, {3}), floats(device, {3}), nullptr);
    ASSERT_TRUE(a.first);
    EXPECT_EQ(a.first->at, (std::vector<std::int64_t>{2}));
    EXPECT_EQ(a.first->expected, "finite");
    const std::vector<float> nans = {NAN, INFINITY};
    EXPECT_FALSE(compare(floats(nans, {2}), floats(nans, {2}), nullptr).first);
    const std::vector<float> others = {NAN, -INFINITY};
    EXPECT_TRUE(compare(floats(nans, {2}), floats(others, {2}), nullptr).first);
}

TEST(Compare, IntegersAndCodesAreEqual) {
    const std::vector<std::int32_t> ids = {1, 2}, others = {1, 3};
    const ConstView a{reinterpret_cast<const std::byte*>(ids.data()), DType::kI32, {2}};
    const ConstView b{reinterpret_cast<const std::byte*>(others.data()), DType::kI32, {2}};
    EXPECT_FALSE(compare(a, a, nullptr).first);
    ASSERT_TRUE(compare(a, b, nullptr).first);
    EXPECT_EQ(compare(a, b, nullptr).first->device, "3");
    const std::vector<std::uint8_t> code = {0x38}, next = {0x39}; // e4m3: 1 and 1.125
    const ConstView c{reinterpret_cast<const std::byte*>(code.data()), DType::kE4M3, {1}};
    const ConstView d{reinterpret_cast<const std::byte*>(next.data()), DType::kE4M3, {1}};
    EXPECT_TRUE(compare(c, d, nullptr).first);
    const double step = 0.125;
    EXPECT_FALSE(compare(c, d, &step).first);
    const std::vector<std::uint8_t> zero = {0x00}, minus_zero = {0x80};
    const ConstView e{reinterpret_cast<const std::byte*>(zero.data()), DType::kE4M3, {1}};
    const ConstView f{reinterpret_cast<const std::byte*>(minus_zero.data()), DType::kE4M3, {1}};
    EXPECT_TRUE(compare(e, f, nullptr).first);
}

} // namespace
} // namespace lr::verify
