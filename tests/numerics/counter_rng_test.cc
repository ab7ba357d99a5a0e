// SPDX-License-Identifier: Apache-2.0
//
// The literals are what `python3 tools/goldens/counter_rng.py --self-test` prints.
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace lr::numerics {
namespace {

constexpr char kName[] = "model.language_model.layers.3.mlp.gate.weight";

std::uint32_t bits_of(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

TEST(CounterRng, HashesAndMixesAsTheReferencesDo) {
    EXPECT_EQ(fnv1a64(""), 0xCBF29CE484222325u);
    EXPECT_EQ(fnv1a64("a"), 0xAF63DC4C8601EC8Cu) << "published FNV-1a vector";
    EXPECT_EQ(fnv1a64("foobar"), 0x85944171F73967E8u) << "published FNV-1a vector";
    EXPECT_EQ(mix64(kGolden), 0xE220A8397B1DCDAFu) << "first output of splitmix64 for seed 0";
    EXPECT_EQ(mix64(kGolden * 2), 0x6E789E6AA1B965F4u) << "its second output";
    EXPECT_EQ(fnv1a64(kName), 0x63B7F502E00D7AC7u);
}

TEST(CounterRng, GivesTheBitsThatPythonGives) {
    const CounterRng rng(kName, 42);
    const std::uint64_t expected[] = {0xC3DE1F8EBD2928D4, 0x1E0C41F6C57B022E, 0x050AE24545A559B0,
                                      0x3210D7102D99DC9E};
    for (std::uint64_t i = 0; i < 4; ++i)
        EXPECT_EQ(rng.bits(i), expected[i]);
    EXPECT_EQ(rng.bits(std::uint64_t{1} << 40), 0x799E241B8EE08704u);
    const std::int32_t sums[] = {-13973, -55379, -31066, 4953, 42800, 30805, 75242, -45237};
    for (std::uint64_t i = 0; i < 8; ++i)
        EXPECT_EQ(rng.normal_sum(i), sums[i]);
}

TEST(CounterRng, GivesTheFloatsThatPythonGives) {
    const CounterRng rng(kName, 42);
    EXPECT_EQ(bits_of(normal_scale(0.02)), 0x350DE3BDu);
    const std::uint32_t plain[] = {0xBBF204FB, 0xBCEFCC51, 0xBC86850D, 0x3B2B93B3,
                                   0x3CB95456, 0x3C8563BA, 0x3D22E759, 0xBCC3E1C8};
    const std::uint32_t around_one[] = {0x3F768BCE, 0x3F5A8814, 0x3F6AFB36, 0x3F81ACF1,
                                        0x3F8E7A97, 0x3F8A6BCB, 0x3F997426, 0x3F6164B9};
    const std::uint16_t in_bf16[] = {0x3F77, 0x3F5B, 0x3F6B, 0x3F82,
                                     0x3F8E, 0x3F8A, 0x3F99, 0x3F61};
    const std::uint32_t uniform[] = {0x3E5516A0, 0xC056AF26, 0xC0791109, 0xC03B28D8,
                                     0x3F255F38, 0x3F274C48, 0x3FBB3728, 0xBF3BDDA4};
    for (std::uint64_t i = 0; i < 8; ++i) {
        EXPECT_EQ(bits_of(rng.normal(i, normal_scale(0.02), 0.0f)), plain[i]);
        EXPECT_EQ(bits_of(rng.normal(i, normal_scale(0.1), 1.0f)), around_one[i]);
        EXPECT_EQ(encode_bf16(rng.normal(i, normal_scale(0.1), 1.0f)), in_bf16[i]);
        EXPECT_EQ(bits_of(rng.uniform(i, -4.0f, 1.5f)), uniform[i]);
    }
}

TEST(CounterRng, GivesTheSamplerDrawsThatPythonGives) {
    constexpr std::uint64_t kMax = ~std::uint64_t{0};
    EXPECT_EQ(counter_bits(7, 3, 0), 0x014CCAC5E052070Cu);
    EXPECT_EQ(counter_bits(7, 3, 1), 0xE8BF0259B17AAD85u);
    EXPECT_EQ(counter_bits(7, 4, 0), 0x0B7DBE4E375E176Du);
    EXPECT_EQ(counter_bits(kMax, kMax, kMax - 1), 0x7A20FAB53834CB6Au);
}

TEST(CounterRng, BelowSpreadsTheBitsOverTheRange) {
    constexpr std::uint64_t kMax = ~std::uint64_t{0};
    EXPECT_EQ(below(kMax, 1), 0u);
    EXPECT_EQ(below(0, 5), 0u);
    EXPECT_EQ(below(kMax, 5), 4u);
    EXPECT_EQ(below(kMax, kMax), kMax - 1);
    EXPECT_EQ(below(std::uint64_t{1} << 63, 5), 2u); // 2.5
    // 1/5 of 2^64 is 0x3333333333333333.2: the first number that gives 1 is the next.
    EXPECT_EQ(below(0x3333333333333333u, 5), 0u);
    EXPECT_EQ(below(0x3333333333333334u, 5), 1u);
}

TEST(CounterRng, DependsOnNameSeedAndIndex) {
    const CounterRng rng("a", 0);
    EXPECT_NE(rng.bits(0), rng.bits(1));
    EXPECT_NE(rng.bits(0), CounterRng("a", 1).bits(0));
    EXPECT_NE(rng.bits(0), CounterRng("b", 0).bits(0));
}

TEST(CounterRng, NormalHasTheMomentsOfANormal) {
    const CounterRng rng("moments", 1);
    constexpr int kCount = 1 << 18;
    const float scale = normal_scale(0.5);
    double sum = 0, squares = 0, largest = 0;
    int within_one_sigma = 0;
    for (int i = 0; i < kCount; ++i) {
        const double x = rng.normal(static_cast<std::uint64_t>(i), scale, 0.0f);
        sum += x;
        squares += x * x;
        largest = std::max(largest, std::fabs(x));
        within_one_sigma += std::fabs(x) < 0.5;
    }
    EXPECT_NEAR(sum / kCount, 0.0, 4 * 0.5 / std::sqrt(kCount));
    EXPECT_NEAR(std::sqrt(squares / kCount), 0.5, 0.5 * 0.005);
    EXPECT_NEAR(double(within_one_sigma) / kCount, 0.68, 0.02);
    EXPECT_LE(largest, 0.5 * 131070 / 37837.2275 + 1e-6) << "3.46 sigma is the hard bound";
    EXPECT_GE(largest, 0.5 * 3.0);
}

TEST(CounterRng, UniformStaysInRangeWithTheRightMean) {
    const CounterRng rng("A_log", 5);
    constexpr int kCount = 1 << 16;
    double sum = 0;
    for (int i = 0; i < kCount; ++i) {
        const float x = rng.uniform(static_cast<std::uint64_t>(i), 1.0f, 3.0f);
        ASSERT_GE(x, 1.0f);
        ASSERT_LE(x, 3.0f);
        sum += x;
    }
    EXPECT_NEAR(sum / kCount, 2.0, 0.01);
    EXPECT_EQ(unit_from_bits(~std::uint64_t{0}), 1.0f - 0x1p-24f) << "the largest";
    EXPECT_EQ(unit_from_bits(0), 0.0f);
}

} // namespace
} // namespace lr::numerics
