// SPDX-License-Identifier: Apache-2.0
//
// cpu/dot_tile.h: many dot products at once, each with the tree of cpu/rows.h dot().
//
// That tree keeps 16 partial sums of stride 16, which is one AVX-512 register, two of AVX or four
// of SSE. Every instruction set therefore adds in the same order, and with no contraction all of
// them give the same bits; a tile only decides how often a loaded value is used.
#pragma once

#include <cstdint>
#include <span>

namespace lr::cpu {

// out[i * out_stride + j] = dot(x + i * x_stride, w + j * w_stride, count) for i < rows, j <
// columns, with the fastest instruction set of this machine.
void dot_tile(const float* x, std::int64_t x_stride, std::int64_t rows, const float* w,
              std::int64_t w_stride, std::int64_t columns, std::int64_t count, float* out,
              std::int64_t out_stride);

// One dot product.
float dot_one(const float* x, const float* w, std::int64_t count);

// The 16 partial sums of each pair of a tile over `steps` runs of 16 values:
// lanes[(i * columns + j) * 16 + l].
using LaneKernel = void (*)(const float* x, std::int64_t x_stride, const float* w,
                            std::int64_t w_stride, std::int64_t steps, float* lanes);

struct DotKernels {
    const char* name;  // "x86-64-v2", "avx2", "avx512"
    LaneKernel tile44; // 4 rows, 4 columns
    LaneKernel tile14; // 1 row, 4 columns
    LaneKernel tile11;
};

// Those that this machine runs, slowest first; the last one is in use.
std::span<const DotKernels> dot_kernels();

// dot_tile with given kernels, for tests.
void dot_tile_with(const DotKernels& kernels, const float* x, std::int64_t x_stride,
                   std::int64_t rows, const float* w, std::int64_t w_stride, std::int64_t columns,
                   std::int64_t count, float* out, std::int64_t out_stride);

} // namespace lr::cpu
