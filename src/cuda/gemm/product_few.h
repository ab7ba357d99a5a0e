// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_few.h: products of few rows of x: the weights stream from memory through
// registers to the tensor cores, without shared memory on the way. For .cu files only.
//
// A block has eight warps, one for each slice of K (several sets of 16 weight rows where K has fewer
// slices). A warp keeps several groups of its slice in flight. x comes from the L2.
#pragma once

#include "cuda/gemm/product.h"

namespace lr::cuda::detail {

inline constexpr int kFewThreads = 256;
inline constexpr int kFewWarps = kFewThreads / kWarp;

// The rows of a group and its index. slot: the how-manieth group with rows; -1 when there is none.
struct Group {
    int index;
    int begin, end;
};

// By one warp, for all of its lanes.
__device__ inline Group find_live_group(const ProductParams& p, int slot) {
    const int lane = threadIdx.x % kWarp;
    for (int first = 0; first < p.groups; first += kWarp) {
        const int e = first + lane;
        const int begin = e < p.groups ? p.start[e] : 0, end = e < p.groups ? p.end[e] : 0;
        unsigned live = __ballot_sync(kFullMask, end > begin);
        const int count = __popc(live);
        if (slot < count) {
            for (; slot > 0; --slot)
                live &= live - 1;
            const int source = __ffs(static_cast<int>(live)) - 1;
            return {first + source, __shfl_sync(kFullMask, begin, source),
                    __shfl_sync(kFullMask, end, source)};
        }
        slot -= count;
    }
    return {-1, 0, 0};
}

template <typename F, int kTiles, bool kGate> struct FewProduct {
    static constexpr int kSides = kGate ? 2 : 1; // gate and up rows
    static constexpr int kDepth = kGate ? 3 : 4; // groups in flight

    static constexpr int kBytesW = code_bytes<F::kW>(F::kGroup); // of a row and group
    static constexpr int kBytesX = code_bytes<F::kX>(F::kGroup);
    static constexpr int kScales = F::kGroup / 16;

    // This lane's unit of the slice's first group: rows g and g + 8 of each side, row g of each tile
    // of x (null: none); of NVFP4 the unit's scale too.
    const std::byte* w[kSides][2];
    const std::uint8_t* w_scale[kSides][2];
    const std::byte* x[kTiles];
    const std::uint8_t* x_scale[kTiles];
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
                w_scale[side][half] = static_cast<const std::uint8_t*>(p.w_scale) +
                                      rows[half] * p.w_scale_stride + k / 16;
        }
    }
    __device__ void place_tile(const ProductParams& p, int tile, std::int64_t token, int k) {
        x[tile] = token >= 0 ? p.x + token * p.x_stride + code_bytes<F::kX>(k) : nullptr;
        if constexpr (F::kX == Codes::kNvfp4)
            x_scale[tile] = static_cast<const std::uint8_t*>(p.x_scale) +
                            token * p.x_scale_stride + k / 16;
    }

    __device__ void load_weights(Stage& stage, int group) const {
#pragma unroll
        for (int side = 0; side < kSides; ++side)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                stage.w[side][half] =
                    group < inside ? load_w<F>(w[side][half] + group * kBytesW,
                                               w_scale[side][half] + group * kScales)
                                   : Raw{};
    }
    __device__ void load_rows(Stage& stage, int group) const {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
            stage.x[tile] = group < inside && x[tile]
                                ? load_x<F>(x[tile] + group * kBytesX,
                                            x_scale[tile] + group * kScales)
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
    // columns 2t and 2t + 1 of each tile (null: no row of x).
    struct RunScales {
        const float* w[kSides][2];
        const float* x[kTiles][2];
    };

    // sum += run times its scales; run becomes zero.
    static __device__ void add_run(float (&sum)[kSides][kTiles][4], float (&run)[kSides][kTiles][4],
                                   int index, const RunScales& scales) {
        float sw[kSides][2];
#pragma unroll
        for (int side = 0; side < kSides; ++side)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                sw[side][half] = scales.w[side][half][index];
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float sx = 1.0f;
                if constexpr (F::kX == Codes::kFp8)
                    sx = scales.x[tile][e] ? scales.x[tile][e][index] : 0.0f;
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

template <typename F, int kTiles, bool kGate>
__global__ void __launch_bounds__(kFewThreads, kTiles == 1 ? 2 : 1)
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
    const std::int64_t first_row = (std::int64_t{blockIdx.x} * sets + set) * 16;
    const int k0 = slice * p.slices.length + t * F::kUnit;
    const int slice_k = set < sets ? max(0, min(p.k - slice * p.slices.length, p.slices.length)) : 0;
    Product product{};
    product.groups = (slice_k + F::kGroup - 1) / F::kGroup;
    product.inside = (slice_k - t * F::kUnit + F::kGroup - 1) / F::kGroup;
    typename Product::RunScales scales{};
    const auto place = [&](int index) { // at the weights of a group
#pragma unroll
        for (int side = 0; side < kSides; ++side) {
            const std::int64_t base = index * p.w_rows + side * p.outputs;
            const std::int64_t rows[2] = {base + min(first_row + g, p.outputs - 1),
                                          base + min(first_row + g + 8, p.outputs - 1)};
            product.place_side(p, side, rows[0], rows[1], k0);
            for (int half = 0; F::kBlocks && half < 2; ++half)
                scales.w[side][half] = static_cast<const float*>(p.w_scale) +
                                       (rows[half] >> p.scale_shift) * p.w_scale_stride +
                                       slice * p.slices.length / kScaleRun;
        }
    };
    typename Product::Stage stages[Product::kDepth];
    if (!p.start) {
        place(0);
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
        place(group.index);
        product.prefetch(stages);
    }

    for (int row0 = group.begin; row0 < group.end; row0 += kColumns) {
        float sum[kSides][kTiles][4] = {};
        if (set < sets) {
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                const int row = row0 + tile * 8;
                product.place_tile(p, tile, row + g < group.end ? token_of(p, row + g) : -1, k0);
                for (int e = 0; F::kBlocks && F::kX == Codes::kFp8 && e < 2; ++e)
                    scales.x[tile][e] = row + 2 * t + e < group.end
                                            ? static_cast<const float*>(p.x_scale) +
                                                  token_of(p, row + 2 * t + e) * p.x_scale_stride +
                                                  slice * p.slices.length / kScaleRun
                                            : nullptr;
            }
            if (row0 > group.begin)
                product.prefetch(stages);
            product.slice(sum, stages, scales);
            for (int side = 0; side < kSides; ++side)
                for (int tile = 0; tile < kTiles; ++tile)
                    for (int e = 0; e < 4; ++e)
                        partial[warp][side][tile * 8 + 2 * t + e % 2][g + e / 2 * 8] =
                            sum[side][tile][e];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < sets * kColumns * 16; i += kFewThreads) {
            const int m = i % 16, of_set = i / 16 % sets, column = i / 16 / sets;
            const std::int64_t output = (std::int64_t{blockIdx.x} * sets + of_set) * 16 + m;
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
            store_result(p, row, output, kGate ? swiglu(value[0], value[kSides - 1]) : value[0]);
        }
        __syncthreads();
    }
    if (!p.start) // rows behind n_live
        for (int i = threadIdx.x; i < (p.rows - group.end) * sets * 16; i += kFewThreads) {
            const std::int64_t output = std::int64_t{blockIdx.x} * sets * 16 + i % (sets * 16);
            if (output < p.outputs)
                store_result(p, group.end + i / (sets * 16), output, 0.0f);
        }
}

template <typename F, int kTiles, bool kGate>
Status launch_few(const ProductParams& params, const ProductChoice& choice, const Lane& lane) {
    const std::int64_t outputs = 16 * (kFewWarps / params.slices.count);
    return launch("product", product_few_kernel<F, kTiles, kGate>,
                  {{blocks_for(params.outputs, outputs), static_cast<unsigned>(choice.row_tiles)},
                   kFewThreads},
                  lane.stream, params);
}

} // namespace lr::cuda::detail
