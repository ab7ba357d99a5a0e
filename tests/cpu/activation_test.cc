// SPDX-License-Identifier: Apache-2.0
#include "cpu/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lr::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// From -104 to 89 in steps that meet every fraction of a power of two, and a count that fills no
// register.
std::vector<float> arguments() {
    std::vector<float> x;
    for (int i = -104 * 257; i <= 89 * 257; ++i)
        x.push_back(static_cast<float>(i) / 257.0f);
    x.push_back(0.5f);
    while (x.size() % 4 != 3)
        x.push_back(-0.25f);
    return x;
}

// Relative to the true value, or to the smallest normal number where that is smaller.
double error(float got, double expected) {
    return std::abs(got - expected) / std::max(std::abs(expected), 0x1p-126);
}

TEST(Activation, ExpIsWithinItsBound) {
    const std::vector<float> x = arguments();
    std::vector<float> out(x.size() + 1, -7.0f);
    exp_each(x.data(), static_cast<std::int64_t>(x.size()), 0.0f, out.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = std::exp(static_cast<double>(x[i]));
        if (expected > std::numeric_limits<float>::max())
            ASSERT_EQ(out[i], kInfinity) << x[i];
        else
            ASSERT_LE(error(out[i], expected), 0x1p-22) << x[i];
    }
    EXPECT_EQ(out[x.size()], -7.0f);
}

TEST(Activation, SigmoidAndSiluFollow) {
    const std::vector<float> x = arguments();
    std::vector<float> gates(x.size()), values = x;
    sigmoid_each(x.data(), static_cast<std::int64_t>(x.size()), gates.data());
    silu_each(values.data(), static_cast<std::int64_t>(x.size()), values.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double gate = 1 / (1 + std::exp(-static_cast<double>(x[i])));
        // exp(-x) beyond the f32 range is infinite, and the gate 0.
        const double lost = x[i] < -88.7f ? 1 : 0x1p-21;
        ASSERT_LE(std::abs(gates[i] - gate), lost * gate) << x[i];
        ASSERT_LE(std::abs(values[i] - x[i] * gate), lost * std::abs(x[i] * gate)) << x[i];
    }
}

TEST(Activation, TheEndsOfTheRange) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x = {kInfinity, -kInfinity, nan, 1e30f, -1e30f, 0.0f, -0.0f};
    std::vector<float> out(x.size());
    exp_each(x.data(), 7, 0.0f, out.data());
    EXPECT_EQ(out[0], kInfinity);
    EXPECT_EQ(out[1], 0.0f);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], kInfinity);
    EXPECT_EQ(out[4], 0.0f);
    EXPECT_EQ(out[5], 1.0f);
    EXPECT_EQ(out[6], 1.0f);
    exp_each(x.data(), 7, kInfinity, out.data()); // the first page of attention: 0 of what was
    EXPECT_EQ(out[4], 0.0f);
    silu_each(x.data(), 7, out.data());
    EXPECT_EQ(out[0], kInfinity);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[4], 0.0f);
    EXPECT_TRUE(std::signbit(out[4]));
    EXPECT_EQ(out[5], 0.0f);
}

} // namespace
} // namespace lr::cpu
