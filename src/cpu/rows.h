// SPDX-License-Identifier: Apache-2.0
//
// cpu/rows.h: reading and writing rows of float tensors, and the fixed-tree dot product.
//
// The dtype of a tensor decides the rounding: storing to bf16 rounds to nearest even, storing to
// f32 does not round. Everything between load and store is f32.
#pragma once

#include "core/view.h"

#include <cstdint>

namespace lr::cpu {

// out[i] = value of element first + i, counted along dense memory from row `row` of the view.
// The view's dtype is f32, bf16 or f16.
void load_floats(ConstView view, std::int64_t row, std::int64_t first, std::int64_t count,
                 float* out);
// Rounds to the view's dtype (f32 or bf16).
void store_floats(View view, std::int64_t row, std::int64_t first, std::int64_t count,
                  const float* values);

// One element of a dense float or i32 tensor.
float float_at(ConstView view, std::int64_t index);
inline std::int32_t int_at(ConstView view, std::int64_t index) {
    return view.as<std::int32_t>()[index];
}

// Zeroes rows [first, rows) of a view.
void zero_rows(View view, std::int64_t first);

// Live rows of a batch of n: n when n_live is absent, else min(n, n_live[0]).
std::int64_t live_rows(ConstView n_live, std::int64_t n);

// x . y in f32 with the fixed tree of cpu/kernels/kernels.h: 16 lanes of fused multiply-adds, then
// halves. The result depends on the values and `count` only. Many at once: cpu/dot_tile.h.
float dot(const float* x, const float* y, std::int64_t count);

// Sum of squares in the same tree.
float sum_squares(const float* x, std::int64_t count);

// A thread's scratch, at least `count` floats at a multiple of 64 bytes, uninitialised. Slots 0..7
// are independent; a slot is valid until the same thread asks for it again.
float* thread_scratch(int slot, std::int64_t count);

// Rounds to bf16 and back (nearest even).
float round_bf16(float value);

} // namespace lr::cpu
