// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/product.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lr::cpu::gdn {
namespace {

// A 4 x 8 tile of the result is 8 of the 16 SSE registers; the others hold the operands.
constexpr std::int64_t kTileRows = 4;
constexpr std::int64_t kTileColumns = 8;
// A packed panel is 128 x 8 floats: 4 KiB of the first-level cache.
constexpr std::int64_t kPanelDepth = 128;
using Panel = std::array<float, kPanelDepth * kTileColumns>;

using Four [[gnu::vector_size(16)]] = float;

Four load_four(const float* from) {
    Four value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

void store_four(float* to, Four value) {
    std::memcpy(to, &value, sizeof(value));
}

// c[0..kRowCount, 0..8) += a times panel rows [first, last).
template <int kRowCount>
void add_tile(Rows c, Left a, const float* panel, std::int64_t first, std::int64_t last) {
    Four low[kRowCount];
    Four high[kRowCount];
    for (int i = 0; i < kRowCount; ++i) {
        low[i] = load_four(c.data + i * c.step);
        high[i] = load_four(c.data + i * c.step + 4);
    }
    for (std::int64_t k = first; k < last; ++k) {
        const Four b_low = load_four(panel + k * kTileColumns);
        const Four b_high = load_four(panel + k * kTileColumns + 4);
        const float* column = a.data + k * a.depth_step;
        for (int i = 0; i < kRowCount; ++i) {
            const float factor = column[i * a.row_step];
            low[i] += b_low * factor;
            high[i] += b_high * factor;
        }
    }
    for (int i = 0; i < kRowCount; ++i) {
        store_four(c.data + i * c.step, low[i]);
        store_four(c.data + i * c.step + 4, high[i]);
    }
}

Rows rows_from(Rows c, std::int64_t row) {
    return {c.data + row * c.step, c.step};
}

Left rows_from(Left a, std::int64_t row) {
    return {a.data + row * a.row_step, a.row_step, a.depth_step};
}

void add_rows(Rows c, Left a, const float* panel, std::int64_t begin, std::int64_t end,
              std::int64_t depth) {
    std::int64_t i = begin;
    for (; i + kTileRows <= end; i += kTileRows)
        add_tile<kTileRows>(rows_from(c, i), rows_from(a, i), panel, 0, depth);
    for (; i < end; ++i)
        add_tile<1>(rows_from(c, i), rows_from(a, i), panel, 0, depth);
}

// Row i has depth i + 1: the columns left of a tile of rows as a tile, then the small triangle.
void add_lower_rows(Rows c, Left a, const float* panel, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
        const std::int64_t end = std::min(rows, i + kTileRows);
        add_rows(c, a, panel, i, end, i);
        for (std::int64_t row = i; row < end; ++row)
            add_tile<1>(rows_from(c, row), rows_from(a, row), panel, i, row + 1);
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
                add_rows(tile, left, panel.data(), part == Part::kLowerResult ? column : 0, rows,
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
