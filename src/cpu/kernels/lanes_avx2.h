// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/lanes_avx2.h: the 16 lanes of cpu/kernels/kernels.h as two registers of AVX2, FMA and
// F16C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#define LR_KERNEL __attribute__((target("avx2,fma,f16c")))
#define LR_TARGET LR_KERNEL __attribute__((always_inline))

namespace lr::cpu {
namespace {

struct Lanes {
    __m256 low, high;
};

LR_TARGET inline Lanes zero_lanes() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}

LR_TARGET inline Lanes splat(float value) {
    return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

LR_TARGET inline Lanes load_lanes(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

LR_TARGET inline void store_lanes(float* to, Lanes lanes) {
    _mm256_storeu_ps(to, lanes.low);
    _mm256_storeu_ps(to + 8, lanes.high);
}

LR_TARGET inline Lanes fuse(Lanes x, Lanes w, Lanes sum) {
    return {_mm256_fmadd_ps(x.low, w.low, sum.low), _mm256_fmadd_ps(x.high, w.high, sum.high)};
}

LR_TARGET inline Lanes scale_lanes(Lanes lanes, float factor) {
    const __m256 all = _mm256_set1_ps(factor);
    return {_mm256_mul_ps(lanes.low, all), _mm256_mul_ps(lanes.high, all)};
}

LR_TARGET inline float fold_lanes(Lanes lanes) {
    const __m256 eight = _mm256_add_ps(lanes.low, lanes.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LR_TARGET inline __m128i load_16(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

LR_TARGET inline __m256 widen_bf16(__m128i codes) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

LR_TARGET inline Lanes load_bf16(const std::byte* from) {
    return {widen_bf16(load_16(from)), widen_bf16(load_16(from + 16))};
}

LR_TARGET inline Lanes load_f16(const std::byte* from) {
    return {_mm256_cvtph_ps(load_16(from)), _mm256_cvtph_ps(load_16(from + 16))};
}

// An E4M3 code with its magnitude moved up to the mantissa's end is the f32 of its value * 2^-120,
// subnormals too (as f32 subnormals: rare, so that their cost on some machines does not show). Only
// NaN is lost: NanWatch looks for it.
constexpr float kE4M3Unit = 0x1p-120f;

LR_TARGET inline __m256 widen_e4m3(const std::byte* from) {
    const __m256i wide =
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(wide, 20),
                                                _mm256_set1_epi32(static_cast<int>(0x87F00000))));
}

LR_TARGET inline Lanes load_e4m3(const std::byte* from) {
    return {widen_e4m3(from), widen_e4m3(from + 8)};
}

// Remembers the largest magnitude code: 0x7F is NaN.
struct NanWatch {
    __m128i largest;

    LR_TARGET inline NanWatch() : largest(_mm_setzero_si128()) {}
    LR_TARGET inline void look(const std::byte* from) {
        const __m128i magnitude = _mm_and_si128(load_16(from), _mm_set1_epi8(0x7F));
        largest = _mm_max_epu8(largest, magnitude);
    }
    LR_TARGET inline bool found() const {
        return _mm_movemask_epi8(_mm_cmpeq_epi8(largest, _mm_set1_epi8(0x7F))) != 0;
    }
};

// 16 nibbles, low ones first, as the upper bytes of F16 codes, which hold a whole E2M1 value.
LR_TARGET inline Lanes load_e2m1(const std::byte* from) {
    const __m128i values = _mm_setr_epi8(0x00, 0x38, 0x3C, 0x3E, 0x40, 0x42, 0x44, 0x46, -0x80,
                                         -0x48, -0x44, -0x42, -0x40, -0x3E, -0x3C, -0x3A);
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    const __m128i pairs = _mm_unpacklo_epi8(codes, _mm_srli_epi16(codes, 4));
    const __m128i upper = _mm_shuffle_epi8(values, _mm_and_si128(pairs, _mm_set1_epi8(0x0F)));
    const __m128i zero = _mm_setzero_si128();
    return {_mm256_cvtph_ps(_mm_unpacklo_epi8(zero, upper)),
            _mm256_cvtph_ps(_mm_unpackhi_epi8(zero, upper))};
}

// Round half to even by adding 0x7FFF and the lowest bit that stays; a NaN is made quiet.
LR_TARGET inline __m256i bf16_of(__m256 values) {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256 unordered = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
    return _mm256_blendv_epi8(rounded, nan, _mm256_castps_si256(unordered));
}

LR_TARGET inline void store_bf16(std::uint16_t* to, Lanes lanes) {
    const __m256i packed = _mm256_packus_epi32(bf16_of(lanes.low), bf16_of(lanes.high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xD8));
}

// A tile of f32 rows, a register at a time: 3 x 2 sums of two registers, 2 of w and 1 of x are 15
// of 16.
constexpr int kTileRows = 3;
constexpr int kTileColumns = 2;
using Part = __m256;
constexpr int kParts = 2;
constexpr int kPartLanes = 8;
LR_TARGET inline Part load_part(const float* from) {
    return _mm256_loadu_ps(from);
}
LR_TARGET inline void store_part(float* to, Part part) {
    _mm256_storeu_ps(to, part);
}
LR_TARGET inline Part fuse(Part x, Part w, Part sum) {
    return _mm256_fmadd_ps(x, w, sum);
}
// The value stays in its register.
LR_TARGET inline void keep(Part& part) {
    __asm__("" : "+x"(part));
}

} // namespace
} // namespace lr::cpu
