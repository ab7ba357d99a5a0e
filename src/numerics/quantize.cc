// SPDX-License-Identifier: Apache-2.0
#include "numerics/quantize.h"

#include "core/check.h"
#include "numerics/bf16.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace lr::numerics {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::int64_t length(auto span) {
    return static_cast<std::int64_t>(span.size());
}

// Magnitudes compare as integers: zero < subnormal < normal < infinity < NaN. One maximum therefore
// finds the largest value and carries a NaN, in any order.
std::uint32_t magnitude_bits(float x) {
    return std::bit_cast<std::uint32_t>(x) & 0x7FFF'FFFFu;
}

std::uint32_t max_magnitude_bits(std::span<const float> x) {
    std::uint32_t largest = 0;
    for (float value : x)
        largest = std::max(largest, magnitude_bits(value));
    return largest;
}

bool is_finite(float x) {
    return magnitude_bits(x) < 0x7F80'0000u;
}

float at_least_tiny(float amax) {
    return amax < kTiny ? kTiny : amax; // a NaN compares false and passes through
}

void encode_nvfp4_block(std::span<const float> x, float d, std::uint8_t* codes) {
    for (std::size_t j = 0; j < x.size(); j += 2)
        codes[j / 2] = pack_e2m1(encode_e2m1(x[j] / d), encode_e2m1(x[j + 1] / d));
}

// Sum of (value_j - x_j)^2 over a block whose elements are divided by `divisor`. Signs cancel:
// magnitudes are rounded and compared.
float block_error(std::span<const float> x, float divisor, float sf, float d) {
    std::array<float, kNvfp4Block> squares;
    for (std::size_t j = 0; j < squares.size(); ++j) {
        const float a = std::fabs(x[j]);
        const float off = (round_e2m1_magnitude(a / divisor) * sf) * d - a;
        squares[j] = off * off;
    }
    for (std::size_t half = squares.size() / 2; half > 0; half /= 2)
        for (std::size_t j = 0; j < half; ++j)
            squares[j] += squares[j + half];
    return squares[0];
}

// A form: sf_of(amax) is the E4M3 code of a block's scale, divisor_of(sf) the f32 divisor of its
// elements. A divisor of 0 means that all codes are 0.
template <typename DivisorOf> std::uint8_t search_sf(std::span<const float> x, std::uint8_t start,
                                                     DecodeScale d, DivisorOf divisor_of) {
    constexpr int kLeast = 1, kMost = 0x7E; // 2^-9 and 448
    const auto error_of = [&](int code) {
        const auto sf = static_cast<std::uint8_t>(code);
        return block_error(x, divisor_of(sf), decode_e4m3(sf), d.value);
    };
    int best = start;
    float least = error_of(best);
    for (int code = std::max(kLeast, start - kSearchBelow);
         code <= std::min(kMost, start + kSearchAbove); ++code) {
        const float error = error_of(code);
        if (error < least) {
            least = error;
            best = code;
        }
    }
    return static_cast<std::uint8_t>(best);
}

template <typename SfOf, typename DivisorOf>
void quantize_nvfp4(std::span<const float> x, std::span<std::uint8_t> codes,
                    std::span<std::uint8_t> sf, SfOf sf_of, DivisorOf divisor_of) {
    LR_CHECK_EQ(length(x) % kNvfp4Block, 0);
    LR_CHECK_EQ(codes.size() * 2, x.size());
    LR_CHECK_EQ(length(sf) * kNvfp4Block, length(x));
    for (std::size_t b = 0; b < sf.size(); ++b) {
        const auto block = x.subspan(b * kNvfp4Block, kNvfp4Block);
        std::uint8_t* out = codes.data() + b * kNvfp4Block / 2;
        const float amax = absolute_max(block);
        if (!is_finite(amax)) {
            sf[b] = kE4M3NaN;
            std::fill_n(out, kNvfp4Block / 2, std::uint8_t{0x77});
            continue;
        }
        sf[b] = sf_of(block, amax);
        const float divisor = divisor_of(sf[b]);
        if (amax == 0.0f || divisor == 0.0f)
            std::fill_n(out, kNvfp4Block / 2, std::uint8_t{0});
        else
            encode_nvfp4_block(block, divisor, out);
    }
}

template <typename SfOf, typename DivisorOf>
void quantize_nvfp4_weight(std::span<const float> w, std::span<std::uint8_t> codes,
                           std::span<std::uint8_t> sf, DecodeScale d, BlockScales scales,
                           SfOf sf_of, DivisorOf divisor_of) {
    quantize_nvfp4(
        w, codes, sf,
        [&](std::span<const float> block, float amax) {
            const std::uint8_t code = sf_of(amax);
            const bool search = scales == BlockScales::kMse && amax != 0.0f;
            return search ? search_sf(block, code, d, divisor_of) : code;
        },
        divisor_of);
}

} // namespace

DecodeScale nvfp4_decode_scale(float amax) {
    return DecodeScale(at_least_tiny(amax) / (kE2M1Max * kE4M3Max));
}

float absolute_max(std::span<const float> x) {
    return std::bit_cast<float>(max_magnitude_bits(x));
}

float fp8_scale(float amax) {
    return at_least_tiny(amax) / kE4M3Max;
}

float quantize_fp8(std::span<const float> x, std::span<std::uint8_t> q) {
    const float s = fp8_scale(absolute_max(x));
    quantize_fp8_with_scale(x, s, q);
    return s;
}

void quantize_fp8_with_scale(std::span<const float> x, float s, std::span<std::uint8_t> q) {
    LR_CHECK_EQ(x.size(), q.size());
    for (std::size_t j = 0; j < x.size(); ++j)
        q[j] = encode_e4m3(x[j] / s);
}

void dequantize_fp8(std::span<const std::uint8_t> q, float s, std::span<float> x) {
    LR_CHECK_EQ(x.size(), q.size());
    for (std::size_t j = 0; j < q.size(); ++j)
        x[j] = decode_e4m3(q[j]) * s;
}

void quantize_fp8_rows(std::span<const float> x, std::int64_t cols, std::span<std::uint8_t> q,
                       std::span<float> scales) {
    LR_CHECK_EQ(length(scales) * cols, length(x));
    LR_CHECK_EQ(x.size(), q.size());
    const auto width = static_cast<std::size_t>(cols);
    for (std::size_t row = 0; row < scales.size(); ++row)
        scales[row] = quantize_fp8(x.subspan(row * width, width), q.subspan(row * width, width));
}

void quantize_fp8_groups(std::span<const float> x, std::span<std::uint8_t> q,
                         std::span<float> scales) {
    LR_CHECK_EQ(x.size(), q.size());
    LR_CHECK_EQ(length(scales), ceil_div(length(x), kFp8Group));
    for (std::size_t g = 0; g < scales.size(); ++g) {
        const std::size_t first = g * kFp8Group;
        const std::size_t count = std::min<std::size_t>(kFp8Group, x.size() - first);
        scales[g] = quantize_fp8(x.subspan(first, count), q.subspan(first, count));
    }
}

void dequantize_fp8_groups(std::span<const std::uint8_t> q, std::span<const float> scales,
                           std::span<float> x) {
    LR_CHECK_EQ(x.size(), q.size());
    LR_CHECK_EQ(length(scales), ceil_div(length(x), kFp8Group));
    for (std::size_t g = 0; g < scales.size(); ++g) {
        const std::size_t first = g * kFp8Group;
        const std::size_t count = std::min<std::size_t>(kFp8Group, x.size() - first);
        dequantize_fp8(q.subspan(first, count), scales[g], x.subspan(first, count));
    }
}

void quantize_fp8_block(std::span<const float> w, std::int64_t cols, ScaleStorage storage,
                        std::span<std::uint8_t> q, std::span<float> scales) {
    LR_CHECK_EQ(w.size(), q.size());
    LR_CHECK_GT(cols, 0);
    LR_CHECK_EQ(length(w) % cols, 0);
    const std::int64_t rows = length(w) / cols;
    const std::int64_t blocks_k = ceil_div(cols, kFp8Block);
    LR_CHECK_EQ(length(scales), ceil_div(rows, kFp8Block) * blocks_k);
    for (std::int64_t row0 = 0; row0 < rows; row0 += kFp8Block) {
        const std::int64_t row1 = std::min(rows, row0 + kFp8Block);
        for (std::int64_t bk = 0; bk < blocks_k; ++bk) {
            const std::int64_t col0 = bk * kFp8Block;
            const auto count = static_cast<std::size_t>(std::min(kFp8Block, cols - col0));
            std::uint32_t largest = 0;
            for (std::int64_t row = row0; row < row1; ++row) {
                const auto first = static_cast<std::size_t>(row * cols + col0);
                largest = std::max(largest, max_magnitude_bits(w.subspan(first, count)));
            }
            float s = fp8_scale(std::bit_cast<float>(largest));
            if (storage == ScaleStorage::kBF16)
                s = round_bf16(s);
            scales[static_cast<std::size_t>(row0 / kFp8Block * blocks_k + bk)] = s;
            for (std::int64_t row = row0; row < row1; ++row) {
                const auto first = static_cast<std::size_t>(row * cols + col0);
                quantize_fp8_with_scale(w.subspan(first, count), s, q.subspan(first, count));
            }
        }
    }
}

void quantize_nvfp4_activation(std::span<const float> x, EncodeScale g,
                               std::span<std::uint8_t> codes, std::span<std::uint8_t> sf) {
    quantize_nvfp4(
        x, codes, sf,
        [g](std::span<const float>, float amax) {
            return encode_e4m3(g.value * (amax / kE2M1Max));
        },
        [g](std::uint8_t code) { return decode_e4m3(code) / g.value; });
}

void quantize_nvfp4_weight_modelopt(std::span<const float> w, DecodeScale d,
                                    std::span<std::uint8_t> codes, std::span<std::uint8_t> sf,
                                    BlockScales scales) {
    quantize_nvfp4_weight(
        w, codes, sf, d, scales,
        [d](float amax) {
            const float wanted = amax == 0.0f ? 1.0f : (amax / kE2M1Max) / d.value;
            return encode_e4m3(std::max(wanted, kE4M3MinSubnormal));
        },
        [d](std::uint8_t code) { return decode_e4m3(code) * d.value; });
}

void quantize_nvfp4_weight_compressed(std::span<const float> w, EncodeScale g,
                                      std::span<std::uint8_t> codes, std::span<std::uint8_t> sf,
                                      BlockScales scales) {
    quantize_nvfp4_weight(
        w, codes, sf, DecodeScale(g), scales,
        [g](float amax) {
            const std::uint8_t code = encode_e4m3(g.value * (amax / kE2M1Max));
            return decode_e4m3(code) == 0.0f ? encode_e4m3(0.125f) : code;
        },
        [g](std::uint8_t code) { return decode_e4m3(code) / g.value; });
}

void dequantize_nvfp4(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> sf,
                      DecodeScale d, std::span<float> x) {
    LR_CHECK_EQ(length(x) % kNvfp4Block, 0);
    LR_CHECK_EQ(codes.size() * 2, x.size());
    LR_CHECK_EQ(length(sf) * kNvfp4Block, length(x));
    for (std::size_t j = 0; j < x.size(); ++j) {
        const float code = decode_e2m1(unpack_e2m1(codes.data(), static_cast<std::int64_t>(j)));
        x[j] = (code * decode_e4m3(sf[j / kNvfp4Block])) * d.value;
    }
}

} // namespace lr::numerics
