// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/lanes_avx512.h: the 16 lanes of cpu/kernels/kernels.h as one register of AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#define LR_KERNEL __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define LR_TARGET LR_KERNEL __attribute__((always_inline))

namespace lr::cpu {
namespace {

struct Lanes {
    __m512 all;
};

LR_TARGET inline Lanes zero_lanes() {
    return {_mm512_setzero_ps()};
}

LR_TARGET inline Lanes splat(float value) {
    return {_mm512_set1_ps(value)};
}

LR_TARGET inline Lanes load_lanes(const float* from) {
    return {_mm512_loadu_ps(from)};
}

LR_TARGET inline void store_lanes(float* to, Lanes lanes) {
    _mm512_storeu_ps(to, lanes.all);
}

LR_TARGET inline Lanes fuse(Lanes x, Lanes w, Lanes sum) {
    return {_mm512_fmadd_ps(x.all, w.all, sum.all)};
}

LR_TARGET inline Lanes scale_lanes(Lanes lanes, float factor) {
    return {_mm512_mul_ps(lanes.all, _mm512_set1_ps(factor))};
}

LR_TARGET inline float fold_lanes(Lanes lanes) {
    const __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256(lanes.all), _mm512_extractf32x8_ps(lanes.all, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LR_TARGET inline __m128i load_16(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

LR_TARGET inline __m256i load_32(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

LR_TARGET inline Lanes load_bf16(const std::byte* from) {
    const __m512i wide = _mm512_cvtepu16_epi32(load_32(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}

LR_TARGET inline Lanes load_f16(const std::byte* from) {
    return {_mm512_cvtph_ps(load_32(from))};
}

// As in lanes_avx2.h: values * 2^-120.
constexpr float kE4M3Unit = 0x1p-120f;

LR_TARGET inline Lanes load_e4m3(const std::byte* from) {
    const __m512i wide = _mm512_slli_epi32(_mm512_cvtepi8_epi32(load_16(from)), 20);
    return {_mm512_castsi512_ps(
        _mm512_and_si512(wide, _mm512_set1_epi32(static_cast<int>(0x87F00000))))};
}

struct NanWatch {
    __m128i largest;

    LR_TARGET inline NanWatch() : largest(_mm_setzero_si128()) {}
    LR_TARGET inline void look(const std::byte* from) {
        const __m128i magnitude = _mm_and_si128(load_16(from), _mm_set1_epi8(0x7F));
        largest = _mm_max_epu8(largest, magnitude);
    }
    LR_TARGET inline bool found() const {
        return _mm_cmpeq_epi8_mask(largest, _mm_set1_epi8(0x7F)) != 0;
    }
};

// Every 32-bit lane gets its byte, shifted so that its nibble is lowest: the index of a table of 16
// floats, which looks at 4 bits only.
LR_TARGET inline Lanes load_e2m1(const std::byte* from) {
    const __m512 values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f,
                                         -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    const __m512i twice = _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(codes, _mm_srli_epi16(codes, 4)));
    return {_mm512_permutexvar_ps(twice, values)};
}

// Round half to even by adding 0x7FFF and the lowest bit that stays; a NaN is made quiet.
LR_TARGET inline void store_bf16(std::uint16_t* to, Lanes lanes) {
    const __m512i bits = _mm512_castps_si512(lanes.all);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_srli_epi32(
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
    const __m512i nan = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    const __mmask16 unordered = _mm512_cmp_ps_mask(lanes.all, lanes.all, _CMP_UNORD_Q);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, unordered, nan)));
}

// 6 x 4 sums, 6 of x and 1 of w are 31 of 32 registers.
constexpr int kTileRows = 6;
constexpr int kTileColumns = 4;
using Part = Lanes;
constexpr int kParts = 1;
constexpr int kPartLanes = 16;
LR_TARGET inline Part load_part(const float* from) {
    return load_lanes(from);
}
LR_TARGET inline void store_part(float* to, Part part) {
    store_lanes(to, part);
}
// The value stays in its register.
LR_TARGET inline void keep(Part& part) {
    __asm__("" : "+v"(part.all));
}

} // namespace
} // namespace lr::cpu
