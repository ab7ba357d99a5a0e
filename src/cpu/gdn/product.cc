// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/product.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lr::cpu::gdn {
namespace {

constexpr std::int64_t kTileRows = 6;
// A packed panel is 128 x 16 floats: 8 KiB of the first-level cache.
constexpr std::int64_t kPanelDepth = 128;
using Panel = std::array<float, kPanelDepth * kTileColumns>;

// Rows [begin, end) of c += a times panel rows [first, last).
void add_rows(Rows c, Left a, const float* panel, std::int64_t begin, std::int64_t end,
              std::int64_t first, std::int64_t last) {
    kernels().add_product({.c = c.data + begin * c.step,
                           .c_step = c.step,
                           .a = a.data + begin * a.row_step + first * a.depth_step,
                           .a_row_step = a.row_step,
                           .a_depth_step = a.depth_step,
                           .b = panel + first * kTileColumns,
                           .rows = end - begin,
                           .depth = last - first});
}

// Row i has depth i + 1: the columns left of a tile of rows as a tile, then the small triangle.
void add_lower_rows(Rows c, Left a, const float* panel, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
        const std::int64_t end = std::min(rows, i + kTileRows);
        add_rows(c, a, panel, i, end, 0, i);
        for (std::int64_t row = i; row < end; ++row)
            add_rows(c, a, panel, row, row + 1, i, row + 1);
    }
}

} // namespace

void add_product(Rows c, Left a, ConstRows b, std::int64_t rows, std::int64_t depth,
                 std::int64_t columns, Part part) {
    LR_DCHECK(columns % kTileColumns == 0);
    LR_DCHECK(part != Part::kLowerLeft || (rows <= depth && depth <= kPanelDepth));
    Panel panel;
    for (std::int64_t column = 0; column < columns; column += kTileColumns) {
        const Rows tile = {c.data + column, c.step};
        for (std::int64_t k = 0; k < depth; k += kPanelDepth) {
            const std::int64_t count = std::min(kPanelDepth, depth - k);
            for (std::int64_t i = 0; i < count; ++i)
                std::memcpy(panel.data() + i * kTileColumns, b.data + (k + i) * b.step + column,
                            kTileColumns * sizeof(float));
            const Left left = {a.data + k * a.depth_step, a.row_step, a.depth_step};
            if (part == Part::kLowerLeft)
                add_lower_rows(tile, left, panel.data(), rows);
            else
                add_rows(tile, left, panel.data(), part == Part::kLowerResult ? column : 0, rows, 0,
                         count);
        }
    }
}

void transpose(ConstRows in, std::int64_t rows, std::int64_t columns, Rows out) {
    constexpr std::int64_t kBlock = 8; // a block's lines of both sides stay in the cache
    for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock)
        for (std::int64_t j = 0; j < columns; ++j)
            for (std::int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i)
                out.data[j * out.step + i] = in.data[i * in.step + j];
}

} // namespace lr::cpu::gdn
