// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/pairs_avx2.h: NVFP4 for AVX2: two rows at a time, one in each half of a register.
//
// A nibble grows by 8 on its way to f32, and AVX2 moves bytes cheaply within a half and dearly
// across. Widened side by side, two rows take half the instructions of one after the other, with
// the same lanes and the same bits. The block scale costs nothing: a value times its scale has 6
// significant bits, so that two tables of 16 bytes, chosen by the scale, give the upper two bytes
// of its f32, and the lower two are zero.
#pragma once

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/lanes_avx2.h"
#include "cpu/kernels/tile.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

#include <array>
#include <bit>

#define LR_HAS_PAIRS

namespace lr::cpu {
namespace {

// part[q]: lanes 4q .. 4q + 3 of the first row, then of the second.
struct Pair {
    __m256 part[4];
};

LR_TARGET inline Pair zero_pair() {
    const __m256 zero = _mm256_setzero_ps();
    return {{zero, zero, zero, zero}};
}

// 16 floats for both rows.
LR_TARGET inline Pair load_twice(const float* from) {
    return {{_mm256_broadcast_ps(reinterpret_cast<const __m128*>(from)),
             _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from + 4)),
             _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from + 8)),
             _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from + 12))}};
}

LR_TARGET inline Pair fuse(const Pair& x, const Pair& w, const Pair& sum) {
    return {{_mm256_fmadd_ps(x.part[0], w.part[0], sum.part[0]),
             _mm256_fmadd_ps(x.part[1], w.part[1], sum.part[1]),
             _mm256_fmadd_ps(x.part[2], w.part[2], sum.part[2]),
             _mm256_fmadd_ps(x.part[3], w.part[3], sum.part[3])}};
}

// The lanes of one row of the pair.
template <int kHalf> LR_TARGET inline Lanes row_of(const Pair& pair) {
    constexpr int kBoth = kHalf == 0 ? 0x20 : 0x31; // that half of either operand
    return {_mm256_permute2f128_ps(pair.part[0], pair.part[1], kBoth),
            _mm256_permute2f128_ps(pair.part[2], pair.part[3], kBoth)};
}

// Bytes 2 and 3 of the f32 of every E2M1 value times an E4M3 scale. All scales: 8 KiB.
struct ScaledValues {
    std::array<std::uint8_t, 16> byte2, byte3;
};
constexpr std::array<ScaledValues, 256> make_scaled_values() {
    std::array<ScaledValues, 256> tables{};
    for (std::size_t scale = 0; scale < 256; ++scale)
        for (std::size_t code = 0; code < 16; ++code) {
            const float value = numerics::kE2M1Values[code] * numerics::kE4M3Values[scale];
            const auto bits = std::bit_cast<std::uint32_t>(value);
            tables[scale].byte2[code] = static_cast<std::uint8_t>(bits >> 16);
            tables[scale].byte3[code] = static_cast<std::uint8_t>(bits >> 24);
        }
    return tables;
}
alignas(64) constexpr std::array<ScaledValues, 256> kScaledValues = make_scaled_values();

LR_TARGET inline __m256i join_rows(const void* first, const void* second) {
    const __m128i low = _mm_loadu_si128(static_cast<const __m128i*>(first));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   _mm_loadu_si128(static_cast<const __m128i*>(second)), 1);
}

// 16 nibbles of each row, a byte each, to values.
LR_TARGET inline Pair widen_pair(__m256i nibbles, std::uint8_t first, std::uint8_t second) {
    const ScaledValues& a = kScaledValues[first];
    const ScaledValues& b = kScaledValues[second];
    const __m256i byte2 = _mm256_shuffle_epi8(join_rows(&a.byte2, &b.byte2), nibbles);
    const __m256i byte3 = _mm256_shuffle_epi8(join_rows(&a.byte3, &b.byte3), nibbles);
    const __m256i low = _mm256_unpacklo_epi8(byte2, byte3);
    const __m256i high = _mm256_unpackhi_epi8(byte2, byte3);
    const __m256i zero = _mm256_setzero_si256();
    return {{_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, low)),
             _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, low)),
             _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, high)),
             _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, high))}};
}

// 16 bytes of two rows hold two blocks of each: kStep says which.
template <int kStep> LR_TARGET inline Pair nvfp4_pair(__m256i codes, const std::uint8_t* first,
                                                      const std::uint8_t* second) {
    const __m256i high = _mm256_srli_epi16(codes, 4);
    const __m256i both =
        kStep == 0 ? _mm256_unpacklo_epi8(codes, high) : _mm256_unpackhi_epi8(codes, high);
    return widen_pair(_mm256_and_si256(both, _mm256_set1_epi8(0x0F)), first[kStep], second[kStep]);
}

// As many of the first `count` columns as come in whole steps of 32; how many that are.
template <Codes kCodes, int kRows, int kColumns> LR_TARGET inline std::int64_t
sum_pairs(const Tile<kRows, kColumns>& tile, std::int64_t count, Lanes (&out)[kRows][kColumns]) {
    if constexpr (kCodes != Codes::kNvfp4 || kColumns != 2) {
        return 0;
    } else {
        Pair sums[kRows];
        LR_UNROLL for (int i = 0; i < kRows; ++i) sums[i] = zero_pair();
        const std::int64_t done = count / (2 * kLanes) * (2 * kLanes);
        for (std::int64_t k = 0; k < done; k += 2 * kLanes) {
            const std::byte* first = tile.w[0] + k / 2;
            const std::byte* second = tile.w[1] + k / 2;
            __builtin_prefetch(first + tile.ahead);
            __builtin_prefetch(second + tile.ahead);
            const __m256i codes = join_rows(first, second);
            const std::uint8_t* a = tile.scales[0] + k / kLanes;
            const std::uint8_t* b = tile.scales[1] + k / kLanes;
            const Pair low = nvfp4_pair<0>(codes, a, b);
            LR_UNROLL for (int i = 0; i < kRows; ++i) sums[i] =
                fuse(load_twice(tile.x[i] + k), low, sums[i]);
            const Pair high = nvfp4_pair<1>(codes, a, b);
            LR_UNROLL for (int i = 0; i < kRows; ++i) sums[i] =
                fuse(load_twice(tile.x[i] + k + kLanes), high, sums[i]);
        }
        LR_UNROLL for (int i = 0; i < kRows; ++i) {
            out[i][0] = row_of<0>(sums[i]);
            out[i][1] = row_of<1>(sums[i]);
        }
        return done;
    }
}

} // namespace
} // namespace lr::cpu
