// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_few.h: products of few rows of x: the weights stream from memory through
// registers to the tensor cores, without shared memory on the way. For .cu files only.
//
// A block has eight warps, one for each slice of K (several sets of 16 weight rows where K has fewer
// slices). A warp keeps several groups of its slice in flight. x comes from the L2.
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

template <typename F, int kTiles, bool kGate> struct FewProduct {
    static constexpr int kSides = kGate ? 2 : 1; // gate and up rows
    static constexpr int kDepth = kGate ? 2 : 4; // groups in flight

    static constexpr int kBytesW = code_bytes<F::kW>(F::kGroup); // of a row and group
    static constexpr int kBytesX = code_bytes<F::kX>(F::kGroup);
    static constexpr int kScales = F::kGroup / 16;

    // This lane's unit of the slice's first group: rows g and g + 8 of each side, row g of each tile
    // of x (null: none); of NVFP4 the unit's scale too.
    const std::byte* w[kSides][2];
    const std::uint8_t* w_scales; // of NVFP4
    const std::uint8_t* x_scales;
    int w_scale[kSides][2]; // offsets
    int x_scale[kTiles];
    const std::byte* x[kTiles];
    int groups; // of the slice
    int inside; // groups in which the lane's unit lies within the slice

    struct Stage {
        Raw w[kSides][2];
        Raw x[kTiles];
    };

    // first: row of w (of all groups) that is row g of the side; second: row g + 8.
    __device__ void place_side(const ProductParams& p, int side, std::int64_t first,
                               std::int64_t second, int k) {
        const std::int64_t rows[2] = {first, second};
        for (int half = 0; half < 2; ++half) {
            w[side][half] = p.w + rows[half] * p.w_stride + code_bytes<F::kW>(k);
            if constexpr (F::kW == Codes::kNvfp4)
                w_scale[side][half] = static_cast<int>(rows[half] * p.w_scale_stride) + k / 16;
        }
    }
    __device__ void place_tile(const ProductParams& p, int tile, std::int64_t token, int k) {
        x[tile] = token >= 0 ? p.x + token * p.x_stride + code_bytes<F::kX>(k) : nullptr;
        if constexpr (F::kX == Codes::kNvfp4)
            x_scale[tile] = static_cast<int>(token * p.x_scale_stride) + k / 16;
    }

    __device__ void load_weights(Stage& stage, int group) const {
#pragma unroll
        for (int side = 0; side < kSides; ++side)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                stage.w[side][half] =
                    group < inside ? load_w<F>(w[side][half] + group * kBytesW,
                                               w_scales + w_scale[side][half] + group * kScales)
                                   : Raw{};
    }
    __device__ void load_rows(Stage& stage, int group) const {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
            stage.x[tile] = group < inside && x[tile]
                                ? load_x<F>(x[tile] + group * kBytesX,
                                            x_scales + x_scale[tile] + group * kScales)
                                : Raw{};
    }
    // The weights of the slice's first groups, which depend on no other kernel.
    __device__ void prefetch(Stage (&stages)[kDepth]) const {
#pragma unroll
        for (int d = 0; d < kDepth; ++d)
            load_weights(stages[d], d);
    }

    __device__ void multiply(const Stage& stage, float (&c)[kSides][kTiles][4]) const {
        std::uint32_t x[kTiles][F::kPairs];
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
            expand_x<F>(stage.x[tile], x[tile]);
#pragma unroll
        for (int side = 0; side < kSides; ++side) {
            std::uint32_t w0[F::kPairs], w8[F::kPairs];
            expand_w<F>(stage.w[side][0], w0);
            expand_w<F>(stage.w[side][1], w8);
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile)
                multiply_group<F>(c[side][tile], w0, w8, x[tile]);
        }
    }

    // Where the scales of the runs of 128 k of this lane's results are: rows g and g + 8 of each side,
    // columns 2t and 2t + 1 of each tile (-1: no row of x), as offsets.
    struct RunScales {
        const float* w_base;
        const float* x_base;
        int w[kSides][2];
        int x[kTiles][2];
    };

    // sum += run times its scales; run becomes zero.
    static __device__ void add_run(float (&sum)[kSides][kTiles][4], float (&run)[kSides][kTiles][4],
                                   int index, const RunScales& scales) {
        float sw[kSides][2];
#pragma unroll
        for (int side = 0; side < kSides; ++side)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                sw[side][half] = scales.w_base[scales.w[side][half] + index];
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float sx = 1.0f;
                if constexpr (F::kX == Codes::kFp8)
                    sx = scales.x[tile][e] >= 0 ? scales.x_base[scales.x[tile][e] + index] : 0.0f;
#pragma unroll
                for (int side = 0; side < kSides; ++side)
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        float& value = run[side][tile][2 * half + e];
                        sum[side][tile][2 * half + e] += value * (sx * sw[side][half]);
                        value = 0.0f;
                    }
            }
    }

    // `stages` hold the first weights (prefetch).
    __device__ void slice(float (&sum)[kSides][kTiles][4], Stage (&stages)[kDepth],
                          const RunScales& scales) const {
        constexpr int kRunGroups = kScaleRun / F::kGroup;
        float run[kSides][kTiles][4] = {};
#pragma unroll
        for (int d = 0; d < kDepth; ++d)
            load_rows(stages[d], d);
        for (int first = 0; first < groups; first += kDepth) {
#pragma unroll
            for (int d = 0; d < kDepth; ++d) {
                const int group = first + d;
                if (group >= groups)
                    break;
                if constexpr (F::kBlocks) {
                    multiply(stages[d], run);
                    if (group % kRunGroups == kRunGroups - 1 || group == groups - 1)
                        add_run(sum, run, group / kRunGroups, scales);
                } else {
                    multiply(stages[d], sum);
                }
                load_weights(stages[d], group + kDepth);
                load_rows(stages[d], group + kDepth);
            }
        }
    }
};

// Blocks of a multiprocessor that the registers are divided among.
template <typename F, int kTiles, bool kGate>
constexpr int kFewBlocks = kTiles == 1 && !(kGate && F::kW == Codes::kNvfp4) ? 2 : 1;

template <typename F, int kTiles, bool kGate>
__global__ void __launch_bounds__(kFewThreads, kFewBlocks<F, kTiles, kGate>)
    product_few_kernel(ProductParams p) {
    using Product = FewProduct<F, kTiles, kGate>;
    constexpr int kSides = Product::kSides, kColumns = 8 * kTiles;
    // [warp][side][column of x][row of w]
    __shared__ float partial[kFewWarps][kSides][kColumns][17];
    __shared__ Group shared_group;
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
    const int g = lane / 4, t = lane % 4;
    const int sets = kFewWarps / p.slices.count; // of 16 weight rows
    const int set = warp / p.slices.count, slice = warp % p.slices.count;
    const int k0 = slice * p.slices.length + t * F::kUnit;
    const int slice_k = set < sets ? max(0, min(p.k - slice * p.slices.length, p.slices.length)) : 0;
    Product product{};
    product.w_scales = static_cast<const std::uint8_t*>(p.w_scale);
    product.x_scales = static_cast<const std::uint8_t*>(p.x_scale);
    product.groups = (slice_k + F::kGroup - 1) / F::kGroup;
    product.inside = (slice_k - t * F::kUnit + F::kGroup - 1) / F::kGroup;
    const int first_run = slice * p.slices.length / kScaleRun;
    typename Product::RunScales scales{};
    scales.w_base = static_cast<const float*>(p.w_scale);
    scales.x_base = static_cast<const float*>(p.x_scale);
    // Tiles of sets * 16 outputs that this block takes, one after the other.
    const int width = sets * 16;
    const int all_tiles = static_cast<int>((p.outputs + width - 1) / width);
    const int first_tile = static_cast<int>(blockIdx.x) * p.block_tiles;
    const int last_tile = min(all_tiles, first_tile + p.block_tiles);
    const auto place = [&](int index, int tile) { // at the weights of a group
        const std::int64_t first_row = std::int64_t{tile} * width + set * 16;
#pragma unroll
        for (int side = 0; side < kSides; ++side) {
            const std::int64_t base = index * p.w_rows + side * p.outputs;
            const std::int64_t rows[2] = {base + min(first_row + g, p.outputs - 1),
                                          base + min(first_row + g + 8, p.outputs - 1)};
            product.place_side(p, side, rows[0], rows[1], k0);
            for (int half = 0; F::kBlocks && half < 2; ++half)
                scales.w[side][half] =
                    static_cast<int>((rows[half] >> p.scale_shift) * p.w_scale_stride) + first_run;
        }
    };
    typename Product::Stage stages[Product::kDepth];
    if (!p.start) {
        place(0, first_tile);
        product.prefetch(stages);
    }
    wait_for_inputs();
    Group group{0, 0, 0};
    if (!p.start) {
        group.end = static_cast<int>(p.n_live ? min(p.rows, std::int64_t{*p.n_live}) : p.rows);
    } else if (static_cast<int>(gridDim.y) == p.groups) {
        group = {static_cast<int>(blockIdx.y), p.start[blockIdx.y], p.end[blockIdx.y]};
    } else {
        if (warp == 0) {
            const Group found = find_live_group(p, static_cast<int>(blockIdx.y));
            if (lane == 0)
                shared_group = found;
        }
        __syncthreads();
        group = shared_group;
    }
    if (p.start) {
        if (group.begin >= group.end)
            return;
        place(group.index, first_tile);
        product.prefetch(stages);
    }

    for (int tile = first_tile; tile < last_tile; ++tile)
        for (int row0 = group.begin; row0 < group.end; row0 += kColumns) {
            float sum[kSides][kTiles][4] = {};
#pragma unroll
            for (int i = 0; i < kTiles; ++i) {
                const int row = row0 + i * 8;
                product.place_tile(p, i, row + g < group.end ? token_of(p, row + g) : -1, k0);
                for (int e = 0; F::kBlocks && F::kX == Codes::kFp8 && e < 2; ++e)
                    scales.x[i][e] = row + 2 * t + e < group.end
                                         ? static_cast<int>(token_of(p, row + 2 * t + e) *
                                                            p.x_scale_stride) +
                                               first_run
                                         : -1;
            }
            product.slice(sum, stages, scales);
            // What is next is asked for before this tile's sums meet.
            if (row0 + kColumns < group.end || tile + 1 < last_tile) {
                if (row0 + kColumns >= group.end)
                    place(group.index, tile + 1);
                else if (product.groups > 0)
                    place(group.index, tile);
                product.prefetch(stages);
            }
            if (set < sets)
                for (int side = 0; side < kSides; ++side)
                    for (int i = 0; i < kTiles; ++i)
                        for (int e = 0; e < 4; ++e)
                            partial[warp][side][i * 8 + 2 * t + e % 2][g + e / 2 * 8] =
                                sum[side][i][e];
            __syncthreads();
            for (int i = threadIdx.x; i < kColumns * width; i += kFewThreads) {
                const int m = i % 16, of_set = i / 16 % sets, column = i / width;
                const std::int64_t output = std::int64_t{tile} * width + of_set * 16 + m;
                const int row = row0 + column;
                if (output >= p.outputs || row >= group.end)
                    continue;
                float value[kSides] = {};
                const std::int64_t token = token_of(p, row);
                for (int side = 0; side < kSides; ++side) {
                    for (int s = 0; s < p.slices.count; ++s)
                        value[side] += partial[of_set * p.slices.count + s][side][column][m];
                    value[side] *= final_factor<F>(
                        p, group.index * p.w_rows + side * p.outputs + output, token);
                }
                store_result(p, row, output,
                             kGate ? swiglu(value[0], value[kSides - 1]) : value[0]);
            }
            __syncthreads();
        }
    if (!p.start) { // rows behind n_live
        const std::int64_t begin = std::int64_t{first_tile} * width;
        const std::int64_t count = min(p.outputs, std::int64_t{last_tile} * width) - begin;
        for (std::int64_t i = threadIdx.x; i < (p.rows - group.end) * count; i += kFewThreads)
            store_result(p, group.end + i / count, begin + i % count, 0.0f);
    }
}

// How many tiles a block takes: enough that all blocks fit on the device at once, where there are
// so many; `groups` may be live.
inline int tiles_of_a_block(std::int64_t tiles, std::int64_t groups) {
    constexpr std::int64_t kResident = 264, kMost = 8; // blocks; tiles, but for a single group
    const std::int64_t share = (tiles * groups + kResident - 1) / kResident;
    return static_cast<int>(std::max<std::int64_t>(1, groups == 1 ? share : std::min(share, kMost)));
}

template <typename F, int kTiles, bool kGate>
Status launch_few(const ProductParams& params, const ProductChoice& choice, const Lane& lane) {
    const std::int64_t tiles = blocks_for(params.outputs, 16 * (kFewWarps / params.slices.count));
    ProductParams split = params;
    split.block_tiles = tiles_of_a_block(tiles, params.start ? choice.row_tiles : 1);
    return launch("product", product_few_kernel<F, kTiles, kGate>,
                  {{blocks_for(tiles, split.block_tiles), static_cast<unsigned>(choice.row_tiles)},
                   kFewThreads},
                  lane.stream, split);
}

} // namespace lr::cuda::detail
