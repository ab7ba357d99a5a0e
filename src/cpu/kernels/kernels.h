// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/kernels.h: the inner loops of the ops on a CPU, once for each instruction set.
//
// Most are dot products of f32 rows with rows of codes as they lie in memory. Their tree: 16 lanes;
// element k is fused into lane k mod 16, in ascending k; then lanes fold in halves (l and l + 8, 4,
// 2, 1):
//
//   lane[k mod 16] = fma(x[k], value(w[k]), lane[k mod 16])        one rounding a step
//
// Sixteen lanes are one AVX-512 register, two of AVX2 or four of SSE, so every instruction set adds
// in the same order and gives the same bits, whatever the tile: a tile only decides how often a
// loaded value is used.
#pragma once

#include "core/dtype.h"
#include "cpu/isa.h"

#include <cstddef>
#include <cstdint>

namespace lr::cpu {

inline constexpr std::int64_t kLanes = 16;

// Rows of x [rows, count] f32 against rows of w [columns, count] of one dtype.
struct DotArgs {
    const float* x = nullptr;
    std::int64_t x_stride = 0; // floats
    std::int64_t rows = 0;
    const std::byte* w = nullptr; // at any address
    std::int64_t w_stride = 0;    // bytes
    std::int64_t columns = 0;
    // kNvfp4 alone: an E4M3 scale for 16 values; row j's are at scales + j * scale_stride.
    const std::uint8_t* scales = nullptr;
    std::int64_t scale_stride = 0;
    std::int64_t count = 0; // a multiple of 16 for kNvfp4
    float* out = nullptr;   // out[i * out_stride + j]
    std::int64_t out_stride = 0;
};

// How w's bytes are read.
enum class Codes : std::uint8_t {
    kF32,
    kBF16,
    kF16,
    kE4M3,  // x is given times kE4M3Lift; a NaN makes the dots of its row NaN
    kNvfp4, // e2m1, low nibble first, times its block's E4M3 scale: exact in f32
};

// Bytes of `count` codes; scales are apart.
constexpr std::int64_t code_bytes(Codes codes, std::int64_t count) {
    constexpr std::int64_t kBits[] = {32, 16, 16, 8, 4};
    return count * kBits[static_cast<int>(codes)] / 8;
}

// Kernels widen an E4M3 code by moving its bits, which leaves its value * 2^-120; x, lifted by
// this, keeps the products in the middle of the f32 range. |x| < 2^63; sums below 2^-89 lose bits.
inline constexpr float kE4M3Lift = 0x1p64f;

// One row of the delta rule's state (ops/gdn/recurrent_update.h), `count` a multiple of 16.
struct DeltaRow {
    float alpha = 0, beta = 0, v = 0;
    const float* k = nullptr;
    const float* q = nullptr;
    std::int64_t count = 0;
    float* state = nullptr;
};

// 16 columns of a matrix product: c[i, j] = c[i, j] + a(i, 0) b[0, j] + a(i, 1) b[1, j] + ..., a
// chain of fused steps in ascending depth.
struct ProductTile {
    float* c = nullptr; // [rows, 16], rows c_step apart
    std::int64_t c_step = 0;
    const float* a = nullptr; // a(i, k) = a[i * a_row_step + k * a_depth_step]
    std::int64_t a_row_step = 0, a_depth_step = 0;
    const float* b = nullptr; // [depth, 16], dense
    std::int64_t rows = 0, depth = 0;
};

struct Bf16Kernels; // cpu/kernels/bf16_dot.h

struct Kernels {
    Isa isa;
    // out = dots; `codes` as above.
    void (*dot)(Codes codes, const DotArgs& args);
    // out[0..count) = values of one row of codes; `scales` as above.
    void (*decode)(Codes codes, const std::byte* w, const std::uint8_t* scales, std::int64_t count,
                   float* out);
    // out[k] = x[k] * scales[k/128] for k < count.
    void (*scale_blocks)(const float* x, const float* scales, std::int64_t count, float* out);
    // state = fma(d, k, alpha state) with d = beta (v - (alpha state) . k); returns state . q.
    float (*delta_row)(const DeltaRow& row);
    void (*add_product)(const ProductTile& tile);
    // codes = values rounded to nearest even; numerics/bf16.h.
    void (*encode_bf16)(const float* values, std::int64_t count, std::uint16_t* codes);
    // Products of rows that are exact in bf16, where the set has instructions for them.
    const Bf16Kernels* bf16 = nullptr;
};

const Kernels& kernels(Isa isa);
// Those of cpu::isa().
const Kernels& kernels();

} // namespace lr::cpu
