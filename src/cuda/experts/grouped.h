// SPDX-License-Identifier: Apache-2.0
//
// cuda/experts/grouped.h: the grids of the two expert products. For .cu files only.
//
// Counts are device data, so a grid is chosen from capacities: how many rows there can be, and how
// many experts can have any. Blocks beyond what is live find nothing and leave.
#pragma once

#include "cuda/gemm/product_args.h"
#include "cuda/gemm/product_grid.h"

#include <algorithm>

namespace lr::cuda::detail {

// rows: capacity of the expert-ordered rows (of which alignment may leave some unused).
inline ProductChoice grouped_choice(std::int64_t rows, std::int64_t experts, bool gate) {
    constexpr std::int64_t kFewRows = 16, kOneTileRows = 4; // of an expert
    ProductChoice choice;
    choice.gate = gate;
    choice.few = rows <= experts * kFewRows;
    choice.tiles = rows <= experts * kOneTileRows ? 1 : 2;
    choice.row_tiles =
        choice.few ? std::min(rows, experts) : rows / kTileX + std::min(rows, experts);
    return choice;
}

inline void set_groups(ProductParams& params, ConstView start, ConstView end, std::int64_t rows) {
    params.start = values<const std::int32_t>(start);
    params.end = values<const std::int32_t>(end);
    params.groups = static_cast<int>(start.rows());
    params.rows = rows;
    params.slices = slices_of(params.k, 512);
}

} // namespace lr::cuda::detail
