// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/bf16_dot.h: dot products of rows that are exact in bf16, on instruction sets that
// multiply pairs of bf16 numbers (VDPBF16PS). Their tree is their own, not that of
// cpu/kernels/kernels.h:
//
//   a row is put into the order of the weight's codes (dot_position) and padded with zeros to whole
//   blocks of 128. Position p of a block goes to lane p / 2 % 16; the odd position of a pair comes
//   first:
//
//     lane = fma(x[p], w[p], fma(x[p + 1], w[p + 1], lane))      p even; one rounding a step
//
//   every step takes a subnormal operand, sum or result for zero of its sign. Without scales
//   the 16 lanes run through the whole row. With scales the lanes start at 0 in every block, and
//
//     total[lane] = fma(scale[lane], lane, total[lane])          subnormals kept
//
//   where scale is the block's (kE4M3: that of w, times that of x if it has one) or that of the 16
//   codes of which the lane holds half (kNvfp4). At the end lanes fold in halves (l and l + 8, 4,
//   2, 1), as everywhere.
//
// So a result depends on its two rows, their scales and their length alone.
#pragma once

#include "cpu/kernels/kernels.h"

#include <cstddef>
#include <cstdint>

namespace lr::cpu {

inline constexpr std::int64_t kDotBlock = 128;

// Length of a packed or expanded row.
constexpr std::int64_t packed_count(std::int64_t count) {
    return (count + kDotBlock - 1) / kDotBlock * kDotBlock;
}

// Where in its block element k of a row, k < 128, is taken: codes are widened with as few
// instructions as possible, which leaves them in this order.
constexpr std::int64_t dot_position(Codes order, std::int64_t k) {
    if (order == Codes::kE4M3) // bytes 0..7 of each 16, then bytes 8..15
        return k / 64 * 64 + k / 8 % 2 * 32 + k / 16 % 4 * 8 + k % 8;
    if (order == Codes::kNvfp4) // the first nibble of each 4, then the second, ...
        return k % 4 * 32 + k / 4;
    return k;
}

// Factors of the blocks of the dot of row i and column j, none where `values` is null.
struct BlockScales {
    const float* values = nullptr; // of block b at values[i * row_step + b]
    std::int64_t row_step = 0;
};

// Packed rows of x [rows, packed_count(count)] against rows of w [columns, count].
struct Bf16DotArgs {
    const std::uint16_t* x = nullptr;
    std::int64_t x_stride = 0; // numbers
    std::int64_t rows = 0;
    const std::byte* w = nullptr; // codes at any address, or expanded rows at a multiple of 64
    std::int64_t w_stride = 0;    // bytes
    std::int64_t columns = 0;
    BlockScales block_scales; // kE4M3
    // kNvfp4, in place: as in DotArgs.
    const std::uint8_t* scales = nullptr;
    std::int64_t scale_stride = 0;
    // kNvfp4, expanded: 16 factors for each block, those of a column lane_scale_stride floats
    // apart.
    const float* lane_scales = nullptr;
    std::int64_t lane_scale_stride = 0;
    std::int64_t count = 0; // a multiple of 16 for kNvfp4
    float* out = nullptr;   // out[i * out_stride + j]
    std::int64_t out_stride = 0;
};

// kBF16, kE4M3 and kNvfp4 are the codes of w, and name the order of x.
struct Bf16Kernels {
    // A row of bf16 numbers into the order of the codes, and zeros.
    void (*pack)(Codes order, const std::byte* x, std::int64_t count, std::uint16_t* packed);
    // A row of codes into bf16, packed in its own order; kNvfp4: e2m1 values, and a factor for each
    // lane of each block.
    void (*expand)(Codes codes, const std::byte* w, const std::uint8_t* scales, std::int64_t count,
                   std::uint16_t* packed, float* lane_scales);
    // w read as it lies, which is for few rows of x.
    void (*dot)(Codes codes, const Bf16DotArgs& args);
    // w expanded, for many; the same bits.
    void (*dot_expanded)(Codes codes, const Bf16DotArgs& args);
};

} // namespace lr::cpu
