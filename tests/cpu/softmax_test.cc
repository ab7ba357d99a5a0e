// SPDX-License-Identifier: Apache-2.0
#include "cpu/sampling/softmax.h"
#include "numerics/counter_rng.h"
#include "numerics/softmax_weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace lr::cpu {
namespace {

std::vector<SoftmaxKernels> every_set() {
    std::vector<SoftmaxKernels> sets;
    for (Isa isa : available_isas())
        sets.push_back(softmax_kernels(isa));
    return sets;
}

constexpr std::int64_t kCounts[] = {1, 3, 63, 64, 65, 128, 1000, 4097};

// Values -60 to 0 and some exact edges.
std::vector<float> some_logits(std::int64_t count) {
    const numerics::CounterRng rng("z", 3);
    std::vector<float> z;
    for (std::int64_t i = 0; i < count; ++i)
        z.push_back(i % 17 == 0 ? 0.0f : rng.uniform(static_cast<std::uint64_t>(i), -60, 0));
    return z;
}

TEST(SoftmaxKernels, GiveTheWeightsOfTheContractOnEveryInstructionSet) {
    for (const SoftmaxKernels& kernels : every_set())
        for (std::int64_t count : kCounts)
            for (float temperature : {0.3f, 1.0f, 7.0f, 1e-38f}) {
                const auto z = some_logits(count);
                std::vector<std::uint64_t> weight(z.size(), 99);
                const std::uint64_t sum =
                    kernels.weigh(z.data(), count, 0.25f, temperature, weight.data());
                std::uint64_t expected = 0;
                for (std::size_t i = 0; i < z.size(); ++i) {
                    expected += numerics::softmax_weight((z[i] - 0.25f) / temperature);
                    ASSERT_EQ(weight[i], numerics::softmax_weight((z[i] - 0.25f) / temperature))
                        << isa_name(kernels.isa) << " " << count << " at " << i;
                }
                EXPECT_EQ(sum, expected) << isa_name(kernels.isa) << " " << count;
            }
}

TEST(SoftmaxKernels, SumExponentialsByLaneWithTheSameBitsOnEveryInstructionSet) {
    for (std::int64_t count : kCounts) {
        auto z = some_logits(count);
        z[0] = -3e38f;
        std::array<long double, kSoftmaxLanes> exact{};
        for (std::size_t i = 0; i < z.size(); ++i)
            exact[i % exact.size()] += std::exp(static_cast<long double>(z[i]) - 0.25L);
        std::array<double, kSoftmaxLanes> first{};
        for (const SoftmaxKernels& kernels : every_set()) {
            std::array<double, kSoftmaxLanes> lanes{};
            kernels.sum_exp(z.data(), count, 0.25, lanes.data());
            // Each term 2^-50, and a rounding for each of count / 16 additions.
            const double bound = 0x1p-50 + static_cast<double>(count / 16 + 1) * 0x1p-53;
            for (std::size_t lane = 0; lane < lanes.size(); ++lane)
                EXPECT_NEAR(lanes[lane], static_cast<double>(exact[lane]),
                            static_cast<double>(exact[lane]) * bound + 1e-300)
                    << isa_name(kernels.isa) << " " << count << " lane " << lane;
            if (kernels.isa == Isa::kBaseline)
                first = lanes;
            EXPECT_EQ(lanes, first) << isa_name(kernels.isa);
        }
    }
}

TEST(SoftmaxKernels, FindTheLargestOfEveryBlock) {
    for (const SoftmaxKernels& kernels : every_set())
        for (std::int64_t count : kCounts) {
            const auto z = some_logits(count);
            std::vector<float> largest(static_cast<std::size_t>((count + 63) / 64) + 1, 99.0f);
            EXPECT_TRUE(kernels.survey(z.data(), count, largest.data()));
            for (std::int64_t b = 0; b * 64 < count; ++b)
                EXPECT_EQ(
                    largest[static_cast<std::size_t>(b)],
                    *std::max_element(z.begin() + b * 64, z.begin() + std::min(count, b * 64 + 64)))
                    << isa_name(kernels.isa);
            EXPECT_EQ(largest.back(), 99.0f);
        }
}

TEST(SoftmaxKernels, SeeANonFiniteValueAtEveryPlace) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const SoftmaxKernels& kernels : every_set())
        for (std::size_t at = 0; at < 150; ++at)
            for (float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
                auto z = some_logits(150);
                z[at] = bad;
                float largest[3];
                EXPECT_FALSE(kernels.survey(z.data(), 150, largest))
                    << isa_name(kernels.isa) << " " << at;
            }
}

} // namespace
} // namespace lr::cpu
