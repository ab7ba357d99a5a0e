// SPDX-License-Identifier: Apache-2.0
//
// Expected codes come from the slow oracle applied to the f32 quotient that the header promises,
// and from literal worked examples.
#include "numerics/bf16.h"
#include "numerics/convert.h"
#include "numerics/counter_rng.h"
#include "numerics/quantize.h"
#include "tests/numerics/codec_oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lr::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
using Codes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

Floats random_row(std::size_t count, double std_deviation, std::uint64_t seed) {
    const CounterRng rng("quantize_test", seed);
    Floats row(count);
    for (std::size_t i = 0; i < count; ++i)
        row[i] = round_bf16(rng.normal(i, normal_scale(std_deviation), 0.0f));
    return row;
}

int oracle_e4m3(float x) {
    static const std::vector<double> magnitudes = e4m3_magnitudes();
    return (std::signbit(x) ? 0x80 : 0) | oracle_nearest(magnitudes, double(x));
}
int oracle_e2m1(float x) {
    static const std::vector<double> magnitudes = e2m1_magnitudes();
    return (std::signbit(x) ? 8 : 0) | oracle_nearest(magnitudes, double(x));
}

TEST(QuantizeFp8, ScalesARowByItsLargestMagnitude) {
    const Floats x = {0.0f, 1.0f, -2.0f, 7.0f, 0.125f, -7.0f};
    Codes q(x.size());
    const float s = quantize_fp8(x, q);
    EXPECT_EQ(s, 7.0f / 448.0f);
    EXPECT_EQ(q, (Codes{0x00, 0x68, 0xF0, 0x7E, 0x50, 0xFE}))
        << "0, 64, -128, 448, 8, -448 in E4M3";
    Floats back(x.size());
    dequantize_fp8(q, s, back);
    EXPECT_EQ(back, x) << "these are exact";
}

TEST(QuantizeFp8, IsTheTrueQuotientRoundedOnce) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Floats x = random_row(256, std::ldexp(1.0, static_cast<int>(seed) - 10), seed);
        Codes q(x.size());
        const float s = quantize_fp8(x, q);
        float amax = 0;
        for (float v : x)
            amax = std::max(amax, std::fabs(v));
        ASSERT_EQ(s, amax / 448.0f);
        for (std::size_t j = 0; j < x.size(); ++j)
            ASSERT_EQ(q[j], oracle_e4m3(x[j] / s)) << x[j];
    }
}

TEST(QuantizeFp8, DequantisedValuesAreWithinHalfAStep) {
    const Floats x = random_row(4096, 1.0, 99);
    Codes q(x.size());
    Floats back(x.size());
    const float s = quantize_fp8(x, q);
    dequantize_fp8(q, s, back);
    for (std::size_t j = 0; j < x.size(); ++j) // half an ulp of 3 mantissa bits, or of a subnormal
        ASSERT_LE(std::fabs(back[j] - x[j]),
                  std::max(std::fabs(x[j]) * 0x1p-4f, s * 0x1p-10f) * 1.00001f);
}

TEST(QuantizeFp8, GivesZeroAndTinyRowsZeroCodesAndAFiniteScale) {
    for (float value : {0.0f, 1e-38f, 1e-45f, 0x1p-120f}) {
        const Floats x = {value, 0.0f, value};
        Codes q(3);
        EXPECT_EQ(quantize_fp8(x, q), kTiny / 448.0f) << value;
        EXPECT_EQ(q, (Codes{0, 0, 0})) << value;
    }
    const Floats negative = {-0.0f, -1e-38f};
    Codes q(2);
    quantize_fp8(negative, q);
    EXPECT_EQ(q, (Codes{0x80, 0x80})) << "signs are kept";
    const Floats at_tiny = {kTiny, kTiny / 2};
    quantize_fp8(at_tiny, q);
    EXPECT_EQ(q, (Codes{0x7E, 0x76})) << "from kTiny on a row has its own scale";
    EXPECT_TRUE(std::isnormal(kTiny / 448.0f * kE4M3MinSubnormal));
}

TEST(QuantizeFp8, KeepsNonFiniteRowsVisible) {
    const Floats with_nan = {1.0f, kNaN, -kInf};
    Codes q(3);
    EXPECT_TRUE(std::isnan(quantize_fp8(with_nan, q)));
    EXPECT_EQ(q, (Codes{0x7F, 0x7F, 0x7F}));

    const Floats with_inf = {1.0f, -kInf, -2.0f};
    const float s = quantize_fp8(with_inf, q);
    EXPECT_EQ(s, kInf);
    EXPECT_EQ(q, (Codes{0x00, 0x7F, 0x80}));
    Floats back(3);
    dequantize_fp8(q, s, back);
    for (float v : back)
        EXPECT_TRUE(std::isnan(v));
}

TEST(QuantizeFp8, AcceptsAnEmptyRowAndTheLargestFloat) {
    EXPECT_EQ(quantize_fp8({}, {}), kTiny / 448.0f);
    const Floats x = {std::numeric_limits<float>::max()};
    Codes q(1);
    const float s = quantize_fp8(x, q);
    EXPECT_EQ(q[0], 0x7E);
    EXPECT_TRUE(std::isfinite(s));
}

TEST(QuantizeFp8, SaturatesUnderAGivenScale) {
    const Floats x = {100.0f, -1e9f, 0.5f};
    Codes q(3);
    quantize_fp8_with_scale(x, 0.125f, q);
    EXPECT_EQ(q, (Codes{0x7E, 0xFE, 0x48})) << "800 and -8e9 saturate, 4 is exact";
}

TEST(QuantizeFp8, TreatsEachRowAndEachGroupOnItsOwn) {
    Floats x = random_row(300, 1.0, 3);
    for (std::size_t j = 128; j < 256; ++j)
        x[j] *= 1000.0f;
    Codes q(300), part(300);
    Floats scales(3);
    quantize_fp8_groups(x, q, scales);
    const std::size_t first[] = {0, 128, 256, 300};
    for (std::size_t g = 0; g < 3; ++g) {
        const std::size_t count = first[g + 1] - first[g];
        const float s = quantize_fp8(std::span(x).subspan(first[g], count),
                                     std::span(part).subspan(first[g], count));
        EXPECT_EQ(scales[g], s) << "group " << g << ", the last one short";
    }
    EXPECT_EQ(q, part);
    Floats back(300);
    dequantize_fp8_groups(q, scales, back);
    EXPECT_EQ(back[200], decode_e4m3(q[200]) * scales[1]);
    EXPECT_EQ(back[299], decode_e4m3(q[299]) * scales[2]);

    quantize_fp8_rows(x, 100, q, scales);
    for (std::size_t row = 0; row < 3; ++row)
        EXPECT_EQ(scales[row], fp8_scale(absolute_max(std::span(x).subspan(row * 100, 100))));
    EXPECT_EQ(q[250], oracle_e4m3(x[250] / scales[2]));
}

TEST(QuantizeFp8, BlocksAre128By128WithShortEdges) {
    constexpr std::size_t kRows = 130, kCols = 200;
    Floats w = random_row(kRows * kCols, 0.02, 11);
    w[129 * kCols + 150] = 5.0f;  // block (1, 1)
    w[127 * kCols + 127] = -3.0f; // the last corner of block (0, 0)
    Codes q(w.size());
    Floats scales(4);
    quantize_fp8_block(w, kCols, ScaleStorage::kF32, q, scales);
    EXPECT_EQ(scales[0], 3.0f / 448.0f);
    EXPECT_EQ(scales[3], 5.0f / 448.0f);
    for (std::size_t row = 0; row < kRows; ++row)
        for (std::size_t col = 0; col < kCols; ++col) {
            const float s = scales[row / 128 * 2 + col / 128];
            ASSERT_EQ(q[row * kCols + col], oracle_e4m3(w[row * kCols + col] / s));
        }
}

TEST(QuantizeFp8, BlockScalesStoredAsBf16AreTheOnesTheCodesUse) {
    const Floats w = random_row(128 * 128, 0.02, 12);
    Codes q(w.size());
    Floats f32(1), bf16(1);
    quantize_fp8_block(w, 128, ScaleStorage::kF32, q, f32);
    quantize_fp8_block(w, 128, ScaleStorage::kBF16, q, bf16);
    EXPECT_EQ(bf16[0], round_bf16(f32[0]));
    EXPECT_NE(bf16[0], f32[0]);
    for (std::size_t i = 0; i < w.size(); ++i)
        ASSERT_EQ(q[i], oracle_e4m3(w[i] / bf16[0]));
}

TEST(QuantizeNvfp4, GlobalFactorsConvertOnlyExplicitly) {
    EXPECT_EQ(nvfp4_decode_scale(2688.0f).value, 1.0f);
    EXPECT_EQ(EncodeScale(DecodeScale(0.25f)).value, 4.0f);
    EXPECT_EQ(DecodeScale(EncodeScale(8.0f)).value, 0.125f);
    static_assert(!std::is_convertible_v<DecodeScale, EncodeScale>);
    static_assert(!std::is_convertible_v<EncodeScale, DecodeScale>);
    static_assert(!std::is_convertible_v<float, EncodeScale>);
    EXPECT_TRUE(std::isnormal(nvfp4_decode_scale(0.0f).value));
}

TEST(QuantizeNvfp4, WorksTheActivationExampleByHand) {
    // amax 12, G 4: sf = e4m3(4 * 2) = 8; an element is coded as x / (8 / 4) = x / 2.
    const Floats x = {12, -12, 0, 1,    0.5f, -0.5f, 3, 5, //
                      7,  10,  8, 0.4f, -6,   2,     4, -0.0f};
    Codes codes(8), sf(1);
    quantize_nvfp4_activation(x, EncodeScale(4.0f), codes, sf);
    EXPECT_EQ(sf[0], 0x50) << "8.0";
    EXPECT_EQ(codes, (Codes{0xF7, 0x10, 0x80, 0x43, 0x66, 0x06, 0x2D, 0x84}));
    Floats back(16);
    dequantize_nvfp4(codes, sf, DecodeScale(EncodeScale(4.0f)), back);
    EXPECT_EQ(back, (Floats{12, -12, 0, 1, 0, -0.0f, 3, 4, 8, 8, 8, 0, -6, 2, 4, -0.0f}));
}

TEST(QuantizeNvfp4, ActivationCodesAreTheQuotientRoundedOnce) {
    const Floats x = random_row(16 * 64, 1.0, 21);
    const EncodeScale g(DecodeScale(nvfp4_decode_scale(absolute_max(x))));
    Codes codes(x.size() / 2), sf(x.size() / 16);
    quantize_nvfp4_activation(x, g, codes, sf);
    for (std::size_t j = 0; j < x.size(); ++j) {
        const float amax = absolute_max(std::span(x).subspan(j / 16 * 16, 16));
        ASSERT_EQ(sf[j / 16], oracle_e4m3(g.value * (amax / 6.0f)));
        const float d = decode_e4m3(sf[j / 16]) / g.value;
        ASSERT_EQ(unpack_e2m1(codes.data(), static_cast<std::int64_t>(j)), oracle_e2m1(x[j] / d));
    }
}

TEST(QuantizeNvfp4, ZeroAndVanishingBlocksFollowEachFormsRule) {
    Floats x(48, 0.0f);
    x[5] = -0.0f;
    x[16] = 1e-38f; // a block whose scale rounds to zero
    x[32] = 6.0f;
    Codes codes(24), sf(3);
    quantize_nvfp4_activation(x, EncodeScale(1.0f), codes, sf);
    EXPECT_EQ(sf, (Codes{0x00, 0x00, 0x38}));
    EXPECT_EQ(codes[2], 0) << "a zero block stores +0 even for -0";
    EXPECT_EQ(codes[8], 0);
    EXPECT_EQ(codes[16], 0x07);

    quantize_nvfp4_weight_modelopt(x, DecodeScale(1.0f), codes, sf);
    EXPECT_EQ(sf, (Codes{0x38, 0x01, 0x38})) << "1.0; clamped to 2^-9; 1.0";
    EXPECT_EQ(codes[8], 0);
    EXPECT_EQ(codes[16], 0x07);

    quantize_nvfp4_weight_compressed(x, EncodeScale(1.0f), codes, sf);
    EXPECT_EQ(sf, (Codes{0x20, 0x20, 0x38})) << "0.125; 0.125; 1.0";
    EXPECT_EQ(codes[8], 0);
    EXPECT_EQ(codes[16], 0x07);
}

TEST(QuantizeNvfp4, BothWeightFormsAgreeWhereTheFactorIsAPowerOfTwo) {
    const Floats w = random_row(16 * 32, 0.02, 31);
    const DecodeScale d(0x1p-15f);
    Codes a(w.size() / 2), b(w.size() / 2), sf_a(w.size() / 16), sf_b(w.size() / 16);
    quantize_nvfp4_weight_modelopt(w, d, a, sf_a);
    quantize_nvfp4_weight_compressed(w, EncodeScale(d), b, sf_b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(sf_a, sf_b);
    Floats back(w.size());
    dequantize_nvfp4(a, sf_a, d, back);
    for (std::size_t j = 0; j < w.size(); ++j) {
        const float amax = absolute_max(std::span(w).subspan(j / 16 * 16, 16));
        ASSERT_LE(std::fabs(back[j] - w[j]), amax / 6.0f * 1.1f) << "half of the widest step";
    }
}

double squared_error(const Floats& x, const Floats& back, std::size_t block) {
    double sum = 0;
    for (std::size_t j = block * 16; j < block * 16 + 16; ++j) {
        const double off = static_cast<double>(back[j]) - static_cast<double>(x[j]);
        sum += off * off;
    }
    return sum;
}

// With every code of the window forced by a tensor factor and oracle codes: none is nearer.
TEST(QuantizeNvfp4, TheSearchFindsTheNearestOfTheCodesItLooksAt) {
    Floats w = random_row(16 * 40, 0.02, 77);
    w[3] = 0.4f; // a block that one element rules
    const DecodeScale d = nvfp4_decode_scale(absolute_max(w));
    Codes plain(w.size() / 2), plain_sf(w.size() / 16), codes = plain, sf = plain_sf;
    quantize_nvfp4_weight_modelopt(w, d, plain, plain_sf);
    quantize_nvfp4_weight_modelopt(w, d, codes, sf, BlockScales::kMse);
    Floats back(w.size());
    dequantize_nvfp4(codes, sf, d, back);
    int changed = 0;
    for (std::size_t block = 0; block < sf.size(); ++block) {
        const double found = squared_error(w, back, block);
        changed += sf[block] != plain_sf[block];
        const int start = plain_sf[block];
        for (int code = std::max(1, start - 4); code <= std::min(0x7E, start + 6); ++code) {
            const float step = decode_e4m3(static_cast<std::uint8_t>(code)) * d.value;
            Floats other(w.size());
            for (std::size_t j = block * 16; j < block * 16 + 16; ++j)
                other[j] = (decode_e2m1(static_cast<std::uint8_t>(oracle_e2m1(w[j] / step))) *
                            decode_e4m3(static_cast<std::uint8_t>(code))) *
                           d.value;
            // The search sums in f32: 16 squares, five roundings each.
            EXPECT_LE(found, squared_error(w, other, block) * (1 + 0x1p-20))
                << block << ' ' << code;
        }
    }
    EXPECT_GT(changed, 10) << "in a normal row many blocks have a better scale than amax / 6";
}

TEST(QuantizeNvfp4, BothWeightFormsSearchAlikeWhereTheFactorIsAPowerOfTwo) {
    Floats w = random_row(16 * 32, 0.02, 31);
    std::fill_n(w.begin() + 32, 16, 0.0f); // a block without a choice
    const DecodeScale d(0x1p-15f);
    Codes a(w.size() / 2), b(w.size() / 2), sf_a(w.size() / 16), sf_b(w.size() / 16);
    quantize_nvfp4_weight_modelopt(w, d, a, sf_a, BlockScales::kMse);
    quantize_nvfp4_weight_compressed(w, EncodeScale(d), b, sf_b, BlockScales::kMse);
    EXPECT_EQ(a, b);
    EXPECT_EQ(sf_a[2], 0x38) << "1.0 as without a search";
    EXPECT_EQ(sf_b[2], 0x20) << "0.125 as without a search";
    sf_b[2] = sf_a[2];
    EXPECT_EQ(sf_a, sf_b);
}

TEST(QuantizeNvfp4, AllZeroWeightsQuantiseAndStayZero) {
    const Floats w(32, 0.0f);
    Codes codes(16, 0xFF), sf(2);
    const DecodeScale d = nvfp4_decode_scale(absolute_max(w));
    quantize_nvfp4_weight_modelopt(w, d, codes, sf);
    Floats back(32, 1.0f);
    dequantize_nvfp4(codes, sf, d, back);
    EXPECT_EQ(back, w);
}

TEST(QuantizeNvfp4, KeepsNonFiniteBlocksVisible) {
    for (float bad : {kNaN, kInf, -kInf}) {
        Floats x(32, 6.0f);
        x[7] = bad;
        Codes codes(16), sf(2);
        Floats back(32);
        auto expect_marked = [&] {
            EXPECT_EQ(sf[0], kE4M3NaN);
            EXPECT_EQ(codes[0], 0x77);
            EXPECT_EQ(sf[1], 0x38) << "the neighbouring block is untouched";
            dequantize_nvfp4(codes, sf, DecodeScale(1.0f), back);
            EXPECT_TRUE(std::isnan(back[0]));
            EXPECT_EQ(back[16], 6.0f);
        };
        quantize_nvfp4_activation(x, EncodeScale(1.0f), codes, sf);
        expect_marked();
        quantize_nvfp4_weight_modelopt(x, DecodeScale(1.0f), codes, sf);
        expect_marked();
        quantize_nvfp4_weight_compressed(x, EncodeScale(1.0f), codes, sf);
        expect_marked();
    }
}

TEST(Convert, ReadsAndWritesEveryFloatDtypeAtAnyAddress) {
    const Floats x = {0.5f, -1.5f, 4.0f, 0.0f};
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kE2M1}) {
        std::vector<std::byte> bytes(32);
        Floats back(4, 9.0f);
        encode_from_f32(dtype, x.data(), 4, bytes.data() + 1);
        decode_to_f32(dtype, bytes.data() + 1, 4, back.data());
        EXPECT_EQ(back, x) << dtype_name(dtype);
        EXPECT_EQ(bytes[0], std::byte{0});
        EXPECT_EQ(bytes[static_cast<std::size_t>(1 + dtype_bytes(dtype, 4))], std::byte{0})
            << dtype_name(dtype);
    }
    const Floats powers = {1.0f, 0x1p-127f, 0x1p127f, 2.0f};
    std::vector<std::byte> bytes(4);
    Floats back(4);
    encode_from_f32(DType::kUE8M0, powers.data(), 4, bytes.data());
    decode_to_f32(DType::kUE8M0, bytes.data(), 4, back.data());
    EXPECT_EQ(back, powers);
    EXPECT_DEATH(decode_to_f32(DType::kI32, bytes.data(), 1, back.data()), "a float dtype");
}

} // namespace
} // namespace lr::numerics
