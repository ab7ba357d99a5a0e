// SPDX-License-Identifier: Apache-2.0
//
// cpu/dot_tile.h: dot products of f32 rows, each with the tree of cpu/kernels/kernels.h.
#pragma once

#include <cstdint>

namespace lr::cpu {

// out[i * out_stride + j] = dot(x + i * x_stride, w + j * w_stride, count) for i < rows, j <
// columns, with the fastest instruction set of this machine.
void dot_tile(const float* x, std::int64_t x_stride, std::int64_t rows, const float* w,
              std::int64_t w_stride, std::int64_t columns, std::int64_t count, float* out,
              std::int64_t out_stride);

// One dot product.
float dot_one(const float* x, const float* w, std::int64_t count);

} // namespace lr::cpu
