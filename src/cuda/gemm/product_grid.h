// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_grid.h: tiles of products of many rows: which rows a block has, and the sums of
// slices that blocks beside one another left. For .cu files only.
#pragma once

#include "cuda/gemm/product.h"

namespace lr::cuda::detail {

inline constexpr int kTileW = 128, kTileX = 64, kTileK = 64; // weight rows, rows of x, k

// The tile of rows that this block has: of group 0, or the blockIdx.y-th of all groups' tiles. By
// one warp. end < begin: none.
__device__ inline int4 find_tile(const ProductParams& p) {
    if (!p.start) {
        const int live = static_cast<int>(p.n_live ? min(p.rows, std::int64_t{*p.n_live}) : p.rows);
        const int row0 = static_cast<int>(blockIdx.y) * kTileX;
        return {0, row0, min(live, row0 + kTileX), 0};
    }
    const int lane = threadIdx.x % kWarp;
    int left = static_cast<int>(blockIdx.y);
    for (int first = 0; first < p.groups; first += kWarp) {
        const int e = first + lane;
        const int begin = e < p.groups ? p.start[e] : 0, end = e < p.groups ? p.end[e] : 0;
        const int tiles = (end - begin + kTileX - 1) / kTileX;
        int before = tiles; // inclusive sum over lanes
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2) {
            const int other = __shfl_up_sync(kFullMask, before, step);
            before += lane >= step ? other : 0;
        }
        const unsigned beyond = __ballot_sync(kFullMask, before > left);
        if (beyond != 0) {
            const int source = __ffs(static_cast<int>(beyond)) - 1;
            const int skipped = __shfl_sync(kFullMask, before - tiles, source);
            const int row0 = __shfl_sync(kFullMask, begin, source) + (left - skipped) * kTileX;
            return {first + source, row0, min(__shfl_sync(kFullMask, end, source), row0 + kTileX),
                    0};
        }
        left -= __shfl_sync(kFullMask, before, kWarp - 1);
    }
    return {0, 0, -1, 0};
}

// Adds the slices' sums in ascending order.
template <typename F> __global__ void sum_slices_kernel(ProductParams p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.y;
    const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (column >= p.outputs)
        return;
    if (!is_live(row, p.n_live))
        return store_result(p, row, column, 0.0f);
    float value = 0;
    for (int slice = 0; slice < p.slices.count; ++slice)
        value += p.partial[(slice * p.rows + row) * p.outputs + column];
    store_result(p, row, column, value * final_factor<F>(p, column, row));
}

} // namespace lr::cuda::detail
