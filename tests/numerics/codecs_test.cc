// SPDX-License-Identifier: Apache-2.0
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/f16.h"
#include "numerics/ue8m0.h"
#include "tests/numerics/codec_oracle.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace lr::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::uint32_t bits_of(float x) {
    return std::bit_cast<std::uint32_t>(x);
}
float float_of(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

// Random bit patterns: every exponent, subnormals and NaNs included.
std::vector<float> random_floats(int count) {
    std::mt19937_64 random(7);
    std::vector<float> out;
    for (int i = 0; i < count; ++i)
        out.push_back(float_of(static_cast<std::uint32_t>(random())));
    return out;
}

// BF16 by definition, in double: the nearest multiple of the ulp, ties to even.
std::uint16_t bf16_oracle(float x) {
    if (std::isinf(x))
        return x > 0 ? 0x7F80 : 0xFF80;
    const int exponent = std::max(std::fpclassify(x) == FP_ZERO ? -126 : std::ilogb(x), -126);
    const double ulp = std::ldexp(1.0, exponent - 7);
    const double rounded = std::nearbyint(double(x) / ulp) * ulp; // default mode: ties to even
    if (std::fabs(rounded) >= std::ldexp(1.0, 128))
        return x > 0 ? 0x7F80 : 0xFF80;
    const float value = std::copysign(static_cast<float>(rounded), x);
    return static_cast<std::uint16_t>(bits_of(value) >> 16);
}

TEST(Bf16, EveryCodeSurvivesARoundTrip) {
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        const float value = decode_bf16(static_cast<std::uint16_t>(code));
        ASSERT_EQ(bits_of(value), code << 16);
        if (!std::isnan(value)) {
            ASSERT_EQ(encode_bf16(value), code);
        } else {
            ASSERT_EQ(encode_bf16(value), code | 0x40) << "a NaN stays one, and becomes quiet";
        }
    }
}

TEST(Bf16, RoundsEveryMidpointToEvenAndItsNeighboursToTheNearest) {
    for (std::uint32_t code = 0; code < 0x7F80; ++code) {
        const std::uint32_t tie = code << 16 | 0x8000;
        const std::uint32_t even = code + (code & 1);
        for (std::uint32_t sign : {0u, 0x8000u}) {
            const std::uint32_t s = sign << 16;
            ASSERT_EQ(encode_bf16(float_of(s | tie)), sign | even) << code;
            ASSERT_EQ(encode_bf16(float_of(s | (tie - 1))), sign | code) << code;
            ASSERT_EQ(encode_bf16(float_of(s | (tie + 1))), sign | (code + 1)) << code;
        }
    }
}

TEST(Bf16, AgreesWithTheDefinitionOnRandomBits) {
    for (float x : random_floats(200000)) {
        if (std::isnan(x)) {
            ASSERT_TRUE(std::isnan(decode_bf16(encode_bf16(x))));
        } else {
            ASSERT_EQ(encode_bf16(x), bf16_oracle(x)) << bits_of(x);
        }
    }
}

TEST(Bf16, HandlesTheEdges) {
    EXPECT_EQ(encode_bf16(1.0f), 0x3F80);
    EXPECT_EQ(encode_bf16(-0.0f), 0x8000);
    EXPECT_EQ(encode_bf16(kInf), 0x7F80);
    EXPECT_EQ(encode_bf16(std::numeric_limits<float>::max()), 0x7F80) << "overflows to infinity";
    EXPECT_EQ(encode_bf16(float_of(0x7F7F'7FFF)), 0x7F7F);
    EXPECT_EQ(encode_bf16(float_of(1)), 0);
    EXPECT_EQ(encode_bf16(float_of(0x7F80'0001)), 0x7FC0) << "a NaN with low payload only";
    EXPECT_EQ(encode_bf16(float_of(0xFFFF'FFFF)), 0xFFFF);
    EXPECT_EQ(round_bf16(1.00390625f), 1.0f) << "1 + 2^-8 ties to 1";
    EXPECT_EQ(round_bf16(1.01171875f), 1.015625f) << "1 + 3 * 2^-8 ties to 1 + 2^-6";
}

TEST(F16, EveryCodeSurvivesARoundTripAndHasTheValueOfItsFields) {
    const std::vector<double> magnitudes = f16_magnitudes();
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        const float value = decode_f16(static_cast<std::uint16_t>(code));
        const std::uint32_t magnitude = code & 0x7FFF;
        if (magnitude > 0x7C00) {
            ASSERT_TRUE(std::isnan(value));
            ASSERT_EQ(encode_f16(value), (code & 0x8000) | 0x7E00);
            continue;
        }
        const double expected = magnitude == 0x7C00 ? double(kInf) : magnitudes[magnitude];
        ASSERT_EQ(std::fabs(value), expected);
        ASSERT_EQ(std::signbit(value), (code & 0x8000) != 0);
        ASSERT_EQ(encode_f16(value), code);
    }
}

TEST(F16, RoundsToTheNearestWithTiesToEven) {
    const std::vector<double> magnitudes = f16_magnitudes();
    for (float x : oracle_probes(magnitudes)) {
        const int sign = std::signbit(x) ? 0x8000 : 0;
        const int expected =
            std::fabs(x) >= 65520.0f ? 0x7C00 : oracle_nearest(magnitudes, double(x));
        ASSERT_EQ(encode_f16(x), sign | expected) << x;
    }
    EXPECT_EQ(encode_f16(65519.996f), 0x7BFF);
    EXPECT_EQ(encode_f16(65520.0f), 0x7C00);
}

TEST(E4M3, EveryCodeHasTheValueOfItsFields) {
    const std::vector<double> magnitudes = e4m3_magnitudes();
    EXPECT_EQ(magnitudes.back(), 448.0);
    EXPECT_EQ(magnitudes[1], std::ldexp(1.0, -9));
    for (int code = 0; code < 256; ++code) {
        const float value = decode_e4m3(static_cast<std::uint8_t>(code));
        ASSERT_EQ(std::signbit(value), code >= 128) << code;
        if ((code & 0x7F) == 0x7F) {
            ASSERT_TRUE(std::isnan(value));
            ASSERT_EQ(encode_e4m3(value), 0x7F);
            continue;
        }
        ASSERT_EQ(std::fabs(value), magnitudes[static_cast<std::size_t>(code & 0x7F)]) << code;
        ASSERT_EQ(encode_e4m3(value), code);
    }
}

TEST(E4M3, RoundsToTheNearestWithTiesToEvenAndSaturates) {
    const std::vector<double> magnitudes = e4m3_magnitudes();
    std::vector<float> probes = oracle_probes(magnitudes);
    for (float extra : {449.0f, 464.0f, 480.0f, 1000.0f})
        probes.insert(probes.end(), {extra, -extra});
    for (float x : random_floats(100000))
        if (!std::isnan(x))
            probes.push_back(x);
    for (float x : probes) {
        const int sign = std::signbit(x) ? 0x80 : 0;
        ASSERT_EQ(encode_e4m3(x), sign | oracle_nearest(magnitudes, double(x))) << x;
    }
}

TEST(E4M3, HandlesTheEdges) {
    EXPECT_EQ(encode_e4m3(1.0f), 0x38);
    EXPECT_EQ(encode_e4m3(kInf), 0x7E);
    EXPECT_EQ(encode_e4m3(-kInf), 0xFE);
    EXPECT_EQ(encode_e4m3(464.0f), 0x7E) << "half-way to the 480 that does not exist";
    EXPECT_EQ(encode_e4m3(0x1p-10f), 0x00) << "tie between 0 and the smallest subnormal";
    EXPECT_EQ(encode_e4m3(std::nextafter(0x1p-10f, 1.0f)), 0x01);
    EXPECT_EQ(encode_e4m3(0x3p-10f), 0x02) << "tie between subnormals 1 and 2";
    EXPECT_EQ(encode_e4m3(-0.0f), 0x80);
    EXPECT_EQ(encode_e4m3(-1e-30f), 0x80);
    EXPECT_EQ(encode_e4m3(float_of(0xFFC0'0000)), 0x7F) << "every NaN is the same code";
    EXPECT_EQ(encode_e4m3(float_of(0x7F80'0001)), 0x7F);
}

TEST(E2M1, EveryCodeHasTheValueOfItsFieldsAndSurvivesARoundTrip) {
    const std::vector<double> magnitudes = e2m1_magnitudes();
    EXPECT_EQ(magnitudes, (std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6}));
    for (int code = 0; code < 16; ++code) {
        const float value = decode_e2m1(static_cast<std::uint8_t>(code));
        ASSERT_EQ(std::fabs(value), magnitudes[static_cast<std::size_t>(code & 7)]);
        ASSERT_EQ(std::signbit(value), code >= 8);
        ASSERT_EQ(encode_e2m1(value), code);
        ASSERT_EQ(bits_of(decode_e2m1(static_cast<std::uint8_t>(0xA0 | code))), bits_of(value));
    }
}

TEST(E2M1, RoundsToTheNearestWithTiesToTheEvenCodeAndSaturates) {
    const std::vector<double> magnitudes = e2m1_magnitudes();
    std::vector<float> probes = oracle_probes(magnitudes);
    for (float x : random_floats(50000))
        if (!std::isnan(x))
            probes.push_back(x);
    for (float x : probes) {
        const int sign = std::signbit(x) ? 8 : 0;
        ASSERT_EQ(encode_e2m1(x), sign | oracle_nearest(magnitudes, double(x))) << x;
        ASSERT_EQ(round_e2m1_magnitude(std::fabs(x)), std::fabs(decode_e2m1(encode_e2m1(x)))) << x;
    }
    const float ties[][2] = {{0.25f, 0.0f}, {0.75f, 1.0f}, {1.25f, 1.0f}, {1.75f, 2.0f},
                             {2.5f, 2.0f},  {3.5f, 4.0f},  {5.0f, 4.0f}};
    for (const auto& [tie, value] : ties) {
        EXPECT_EQ(decode_e2m1(encode_e2m1(tie)), value);
        EXPECT_EQ(round_e2m1_magnitude(tie), value);
        EXPECT_EQ(decode_e2m1(encode_e2m1(-tie)), -value);
    }
    EXPECT_EQ(encode_e2m1(float_of(0x7FC0'0000)), 7);
    EXPECT_EQ(encode_e2m1(float_of(0xFFC0'0000)), 7);
}

TEST(E2M1, PacksTheEvenIndexIntoTheLowNibble) {
    EXPECT_EQ(pack_e2m1(0x3, 0xA), 0xA3);
    const std::uint8_t packed[] = {0xA3, 0x5C};
    const int expected[] = {0x3, 0xA, 0xC, 0x5};
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(unpack_e2m1(packed, i), expected[i]);
}

TEST(Ue8m0, EveryCodeIsAPowerOfTwoThatAllEncodersGiveBack) {
    for (int code = 0; code < 255; ++code) {
        const auto c = static_cast<std::uint8_t>(code);
        const float value = decode_ue8m0(c);
        ASSERT_EQ(double(value), std::ldexp(1.0, code - 127));
        ASSERT_EQ(encode_ue8m0_up(value), c);
        ASSERT_EQ(encode_ue8m0_down(value), c);
        ASSERT_EQ(encode_ue8m0_nearest(value), c);
        ASSERT_EQ(encode_ue8m0_exact(value), c);
    }
    EXPECT_TRUE(std::isnan(decode_ue8m0(0xFF)));
}

TEST(Ue8m0, RoundsUpDownAndToTheNearestBetweenEveryPair) {
    for (int code = 0; code < 254; ++code) {
        const float low = decode_ue8m0(static_cast<std::uint8_t>(code));
        const float middle = low * 1.5f;
        const float below = std::nextafter(middle, 0.0f);
        const float above = std::nextafter(middle, kInf);
        const int even = code + code % 2;
        ASSERT_EQ(encode_ue8m0_nearest(middle), even) << code;
        ASSERT_EQ(encode_ue8m0_nearest(below), code) << code;
        ASSERT_EQ(encode_ue8m0_nearest(above), code + 1) << code;
        for (float x :
             {std::nextafter(low, kInf), below, middle, above, std::nextafter(low * 2.0f, 0.0f)}) {
            ASSERT_EQ(encode_ue8m0_up(x), code + 1) << x;
            ASSERT_EQ(encode_ue8m0_down(x), code) << x;
            ASSERT_FALSE(encode_ue8m0_exact(x).has_value()) << x;
        }
    }
}

TEST(Ue8m0, SaturatesAtBothEndsAndRefusesNegatives) {
    for (auto encode : {encode_ue8m0_up, encode_ue8m0_down, encode_ue8m0_nearest}) {
        EXPECT_EQ(encode(0.0f), 0);
        EXPECT_EQ(encode(-0.0f), 0);
        EXPECT_EQ(encode(float_of(1)), 0) << "2^-149";
        EXPECT_EQ(encode(kInf), 254);
        EXPECT_EQ(encode(std::numeric_limits<float>::max()), 254);
        EXPECT_EQ(encode(-1.0f), 0xFF);
        EXPECT_EQ(encode(-kInf), 0xFF);
        EXPECT_EQ(encode(float_of(0x7FC0'0000)), 0xFF);
    }
    EXPECT_FALSE(encode_ue8m0_exact(0.0f).has_value());
    EXPECT_FALSE(encode_ue8m0_exact(kInf).has_value());
    EXPECT_FALSE(encode_ue8m0_exact(0x1p-128f).has_value());
    EXPECT_FALSE(encode_ue8m0_exact(-2.0f).has_value());
}

TEST(E2M1, EveryProductWithAnE4M3ScaleIsExactInBf16) {
    for (int code = 0; code < 16; ++code)
        for (int scale = 0; scale < 256; ++scale) {
            const float product = decode_e2m1(static_cast<std::uint8_t>(code)) *
                                  decode_e4m3(static_cast<std::uint8_t>(scale));
            if (!std::isnan(product)) {
                ASSERT_EQ(round_bf16(product), product);
            }
        }
}

} // namespace
} // namespace lr::numerics
