// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_share.h: what each block and warp of a product of few rows has. For .cu files
// only.
#pragma once

#include "cuda/gemm/product.h"

#include <algorithm>

namespace lr::cuda::detail {

inline constexpr int kFewThreads = 256;
inline constexpr int kFewWarps = kFewThreads / kWarp;

// The rows of a group and its index. slot: the how-manieth group with rows; -1 when there is none.
struct Group {
    int index;
    int begin, end;
};

// By one warp, for all of its lanes. Endpoints are read 256 experts at a time.
__device__ inline Group find_live_group(const ProductParams& p, int slot) {
    constexpr int kReads = 8;
    const int lane = threadIdx.x % kWarp;
    for (int first = 0; first < p.groups; first += kReads * kWarp) {
        int begin[kReads], end[kReads];
#pragma unroll
        for (int i = 0; i < kReads; ++i) {
            const int e = first + i * kWarp + lane;
            begin[i] = e < p.groups ? p.start[e] : 0;
            end[i] = e < p.groups ? p.end[e] : 0;
        }
#pragma unroll
        for (int i = 0; i < kReads; ++i) {
            unsigned live = __ballot_sync(kFullMask, end[i] > begin[i]);
            const int count = __popc(live);
            if (slot < count) {
                for (; slot > 0; --slot)
                    live &= live - 1;
                const int source = __ffs(static_cast<int>(live)) - 1;
                return {first + i * kWarp + source, __shfl_sync(kFullMask, begin[i], source),
                        __shfl_sync(kFullMask, end[i], source)};
            }
            slot -= count;
        }
    }
    return {-1, 0, 0};
}

// The rows that this block multiplies; by all of its threads. `shared` is for one group.
__device__ inline Group find_group(const ProductParams& p, Group& shared) {
    if (!p.start)
        return {0, 0, static_cast<int>(p.n_live ? min(p.rows, std::int64_t{*p.n_live}) : p.rows)};
    const int y = static_cast<int>(blockIdx.y);
    if (static_cast<int>(gridDim.y) == p.groups)
        return {y, p.start[y], p.end[y]};
    if (threadIdx.x < kWarp) {
        const Group found = find_live_group(p, y);
        if (threadIdx.x == 0)
            shared = found;
    }
    __syncthreads();
    return shared;
}

// What a block and a warp of it have: tiles of `width` outputs, of which the warp's set has 16, and
// a slice of K.
struct FewShare {
    int sets, set, slice, width, first_tile, last_tile;

    __device__ explicit FewShare(const ProductParams& p)
        : sets(kFewWarps / p.slices.count),
          set(static_cast<int>(threadIdx.x) / kWarp / p.slices.count),
          slice(static_cast<int>(threadIdx.x) / kWarp % p.slices.count), width(sets * 16),
          first_tile(static_cast<int>(blockIdx.x) * p.block_tiles),
          last_tile(
              min(static_cast<int>((p.outputs + width - 1) / width), first_tile + p.block_tiles)) {}

    __device__ int k(const ProductParams& p) const { return slice * p.slices.length; }
    // Columns of the slice; none for a warp without a set.
    __device__ int columns(const ProductParams& p) const {
        return set < sets ? max(0, min(p.k - k(p), p.slices.length)) : 0;
    }
};

// Of a linear layer: the block's columns of the rows behind n_live.
__device__ inline void zero_dead_rows(const ProductParams& p, const FewShare& share, int live) {
    const std::int64_t begin = std::int64_t{share.first_tile} * share.width;
    const std::int64_t count = min(p.outputs, std::int64_t{share.last_tile} * share.width) - begin;
    for (std::int64_t i = threadIdx.x; i < (p.rows - live) * count; i += kFewThreads)
        store_result(p, live + i / count, begin + i % count, 0.0f);
}

// How many tiles a block takes: enough that all blocks fit on the device at once, where there are
// so many; `groups` may be live.
inline int tiles_of_a_block(std::int64_t tiles, std::int64_t groups) {
    constexpr std::int64_t kResident = 264, kMost = 8; // blocks; tiles, but for a single group
    const std::int64_t share = (tiles * groups + kResident - 1) / kResident;
    return static_cast<int>(
        std::max<std::int64_t>(1, groups == 1 ? share : std::min(share, kMost)));
}

} // namespace lr::cuda::detail
