// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_few.h: products of few rows of x: the weights stream from memory through
// registers to the tensor cores, without shared memory on the way. For .cu files only.
//
// A block has eight warps, one for each slice of K (several sets of 16 weight rows where K has
// fewer slices). A warp keeps several groups of its slice in flight. x comes from the L2.
#pragma once

#include "cuda/gemm/product_share.h"

namespace lr::cuda::detail {

template <typename F, int kTiles, bool kGate> struct FewProduct {
    static constexpr int kSides = kGate ? 2 : 1; // gate and up rows
    static constexpr int kDepth = kGate ? 2 : 4; // groups in flight

    static constexpr int kBytesW = code_bytes<F::kW>(F::kGroup); // of a row and group
    static constexpr int kBytesX = code_bytes<F::kX>(F::kGroup);
    static constexpr int kScales = F::kGroup / 16;

    // This lane's unit of the slice's first group: rows g and g + 8 of each side, row g of each
    // tile of x (null: none); of NVFP4 the unit's scale too.
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

    // Where the scales of the runs of 128 k of this lane's results are: rows g and g + 8 of each
    // side, columns 2t and 2t + 1 of each tile (-1: no row of x), as offsets.
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

// Points the warp at the weights of a tile of group `index`.
template <typename F, int kTiles, bool kGate> __device__ inline void
place_tile_weights(const ProductParams& p, const FewShare& share, int index, int tile,
                   FewProduct<F, kTiles, kGate>& product,
                   typename FewProduct<F, kTiles, kGate>::RunScales& scales) {
    const int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = threadIdx.x % 4;
    const std::int64_t first = std::int64_t{tile} * share.width + share.set * 16;
#pragma unroll
    for (int side = 0; side < FewProduct<F, kTiles, kGate>::kSides; ++side) {
        const std::int64_t base = index * p.w_rows + side * p.outputs;
        const std::int64_t rows[2] = {base + min(first + g, p.outputs - 1),
                                      base + min(first + g + 8, p.outputs - 1)};
        product.place_side(p, side, rows[0], rows[1], share.k(p) + t * F::kUnit);
        for (int half = 0; F::kBlocks && half < 2; ++half)
            scales.w[side][half] =
                static_cast<int>((rows[half] >> p.scale_shift) * p.w_scale_stride) +
                share.k(p) / kScaleRun;
    }
}

// Points the warp at rows [row0, row0 + 8 kTiles) of x, as far as they go.
template <typename F, int kTiles, bool kGate>
__device__ inline void place_rows(const ProductParams& p, const FewShare& share, int row0, int end,
                                  FewProduct<F, kTiles, kGate>& product,
                                  typename FewProduct<F, kTiles, kGate>::RunScales& scales) {
    const int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
        const int row = row0 + i * 8;
        product.place_tile(p, i, row + g < end ? token_of(p, row + g) : -1,
                           share.k(p) + t * F::kUnit);
        for (int e = 0; F::kBlocks && F::kX == Codes::kFp8 && e < 2; ++e)
            scales.x[i][e] =
                row + 2 * t + e < end
                    ? static_cast<int>(token_of(p, row + 2 * t + e) * p.x_scale_stride) +
                          share.k(p) / kScaleRun
                    : -1;
    }
}

// Sums of slices by warp: [side][column of x][row of w].
template <int kSides, int kColumns> using FewSums = float[kFewWarps][kSides][kColumns][17];

// Adds the slices of a tile in ascending order and stores its results; by all threads.
template <typename F, int kSides, int kColumns>
__device__ inline void store_tile(const ProductParams& p, const FewShare& share, Group group,
                                  int tile, int row0, const FewSums<kSides, kColumns>& sums) {
    for (int i = threadIdx.x; i < kColumns * share.width; i += kFewThreads) {
        const int m = i % 16, set = i / 16 % share.sets, column = i / share.width;
        const std::int64_t output = std::int64_t{tile} * share.width + set * 16 + m;
        const int row = row0 + column;
        if (output >= p.outputs || row >= group.end)
            continue;
        float value[kSides] = {};
        const std::int64_t token = token_of(p, row);
        for (int side = 0; side < kSides; ++side) {
            for (int s = 0; s < p.slices.count; ++s)
                value[side] += sums[set * p.slices.count + s][side][column][m];
            value[side] *=
                final_factor<F>(p, group.index * p.w_rows + side * p.outputs + output, token);
        }
        store_result(p, row, output, kSides == 2 ? swiglu(value[0], value[kSides - 1]) : value[0]);
    }
}

// Blocks of a multiprocessor that the registers are divided among.
template <typename F, int kTiles, bool kGate> constexpr int kFewBlocks =
    kTiles == 1 && !(kGate && F::kW == Codes::kNvfp4) ? 2 : 1;

template <typename F, int kTiles, bool kGate>
__global__ void __launch_bounds__(kFewThreads, kFewBlocks<F, kTiles, kGate>)
    product_few_kernel(ProductParams p) {
    using Product = FewProduct<F, kTiles, kGate>;
    constexpr int kSides = Product::kSides, kColumns = 8 * kTiles;
    __shared__ FewSums<kSides, kColumns> sums;
    __shared__ Group shared_group;
    const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
    const FewShare share(p);
    Product product{};
    product.w_scales = static_cast<const std::uint8_t*>(p.w_scale);
    product.x_scales = static_cast<const std::uint8_t*>(p.x_scale);
    product.groups = (share.columns(p) + F::kGroup - 1) / F::kGroup;
    product.inside = (share.columns(p) - t * F::kUnit + F::kGroup - 1) / F::kGroup;
    typename Product::RunScales scales{};
    scales.w_base = static_cast<const float*>(p.w_scale);
    scales.x_base = static_cast<const float*>(p.x_scale);
    typename Product::Stage stages[Product::kDepth];
    if (!p.start) {
        place_tile_weights(p, share, 0, share.first_tile, product, scales);
        product.prefetch(stages);
    }
    wait_for_inputs();
    const Group group = find_group(p, shared_group);
    if (p.start) {
        if (group.begin >= group.end)
            return;
        place_tile_weights(p, share, group.index, share.first_tile, product, scales);
        product.prefetch(stages);
    }
    for (int tile = share.first_tile; tile < share.last_tile; ++tile)
        for (int row0 = group.begin; row0 < group.end; row0 += kColumns) {
            float sum[kSides][kTiles][4] = {};
            place_rows(p, share, row0, group.end, product, scales);
            product.slice(sum, stages, scales);
            // What is next is asked for before this tile's sums meet.
            const bool more_rows = row0 + kColumns < group.end;
            if (more_rows || tile + 1 < share.last_tile) {
                place_tile_weights(p, share, group.index, more_rows ? tile : tile + 1, product,
                                   scales);
                product.prefetch(stages);
            }
            for (int side = 0; share.set < share.sets && side < kSides; ++side)
                for (int i = 0; i < kTiles; ++i)
                    for (int e = 0; e < 4; ++e)
                        sums[threadIdx.x / kWarp][side][i * 8 + 2 * t + e % 2][g + e / 2 * 8] =
                            sum[side][i][e];
            __syncthreads();
            store_tile<F, kSides, kColumns>(p, share, group, tile, row0, sums);
            __syncthreads();
        }
    if (!p.start)
        zero_dead_rows(p, share, group.end);
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
