// SPDX-License-Identifier: Apache-2.0
#include "numerics/softmax_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lr::numerics {
namespace {

// 2^-23: half an ulp of p (2^-24 at most, relatively), of r + tail (2^-26), of r (2^-26), the
// polynomial (1.1e-8), and their products.
TEST(SoftmaxWeight, IsTheExponentialWithin2ToTheMinus23) {
    for (float x = 0; x > -28.0f; x = std::nextafter(x, -100.0f) - 1e-5f) {
        const double exact = std::exp(static_cast<double>(x)) * 0x1p40;
        const double weight = static_cast<double>(softmax_weight(x));
        ASSERT_LE(weight, exact * (1 + 0x1p-23)) << x;
        ASSERT_GE(weight, exact * (1 - 0x1p-23) - 1) << x; // the floor
    }
}

TEST(SoftmaxWeight, HasTheDocumentedEdges) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(softmax_weight(0.0f), kWeightOne);
    EXPECT_EQ(softmax_weight(-0.0f), kWeightOne);
    EXPECT_EQ(softmax_weight(-1e-30f), kWeightOne);
    EXPECT_LT(softmax_weight(-0x1p-23f), kWeightOne);
    EXPECT_EQ(softmax_weight(-27.7f), 1u); // 2^40 exp(-27.7) = 1.03
    for (float x : {-28.5f, -43.9f, -44.1f, -1e30f, -kInfinity, std::nanf("")})
        EXPECT_EQ(softmax_weight(x), 0u) << x;
    static_assert(softmax_weight(0.0f) == kWeightOne);
    EXPECT_EQ(static_cast<std::uint64_t>(kMaxWeights) * kWeightOne, std::uint64_t{1} << 63);
}

// What a GPU kernel has to reproduce, bit for bit.
TEST(SoftmaxWeight, GivesTheseIntegers) {
    EXPECT_EQ(softmax_weight(-0.5f), 666887520256u);
    EXPECT_EQ(softmax_weight(-1.0f), 404487733248u);
    EXPECT_EQ(softmax_weight(-3.25f), 42632691712u);
    EXPECT_EQ(softmax_weight(-20.0f), 2266u);
}

} // namespace
} // namespace lr::numerics
