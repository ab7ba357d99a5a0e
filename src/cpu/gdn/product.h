// SPDX-License-Identifier: Apache-2.0
//
// cpu/gdn/product.h: the matrix product of the chunked form, on f32 scratch.
//
// Every element is one chain c + a0 b0 + a1 b1 + ... of fused steps in ascending depth, whatever
// the sizes, so the bits of an element depend on its own row, column and depth alone.
#pragma once

#include "cpu/kernels/kernels.h"

#include <cstdint>

namespace lr::cpu::gdn {

// The left operand; element (i, k) is data[i * row_step + k * depth_step].
struct Left {
    const float* data;
    std::int64_t row_step;
    std::int64_t depth_step;
};

// A row-major operand or result; rows are `step` floats apart.
struct ConstRows {
    const float* data;
    std::int64_t step;
};
struct Rows {
    float* data;
    std::int64_t step;
};

enum class Part {
    kAll,
    kLowerLeft,   // the left operand is lower triangular: row i has depth i + 1
    kLowerResult, // columns j <= i of row i are wanted; others may be left alone or written
};

// Products come in tiles of so many columns.
inline constexpr std::int64_t kTileColumns = kLanes;
constexpr std::int64_t whole_tiles(std::int64_t columns) {
    return (columns + kTileColumns - 1) / kTileColumns * kTileColumns;
}

// c[i, j] += sum over k < depth of a(i, k) b[k, j], for i < rows and j < columns.
// columns is a multiple of kTileColumns. kLowerLeft reads a on and below the diagonal only; rows <=
// depth.
void add_product(Rows c, Left a, ConstRows b, std::int64_t rows, std::int64_t depth,
                 std::int64_t columns, Part part = Part::kAll);

// out[j, i] = in[i, j].
void transpose(ConstRows in, std::int64_t rows, std::int64_t columns, Rows out);

} // namespace lr::cpu::gdn
