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

    const ProductParams& p;
    std::int64_t w_row[kSides][2]; // rows g and g + 8 of each side, of all groups
    std::int64_t token[kTiles];    // row of x, -1: none
    int k0, k1;                    // the slice

    struct Stage {
        Raw w[kSides][2];
        Raw x[kTiles];
    };

    __device__ void load(Stage& stage, int group) const {
        const int k = k0 + group * F::kGroup + static_cast<int>(threadIdx.x) % 4 * F::kUnit;
        if (k >= k1) {
            stage = Stage{};
            return;
        }
#pragma unroll
        for (int side = 0; side < kSides; ++side)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                stage.w[side][half] = load_w<F>(p, w_row[side][half], k);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
            stage.x[tile] = token[tile] >= 0 ? load_x<F>(p, token[tile], k) : Raw{};
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

    // sum += run times its scales; run becomes zero.
    __device__ void add_run(float (&sum)[kSides][kTiles][4], float (&run)[kSides][kTiles][4],
                            int index, const std::int64_t (&column_token)[kTiles][2]) const {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            float sx[2];
#pragma unroll
            for (int e = 0; e < 2; ++e)
                sx[e] = column_token[tile][e] >= 0
                            ? block_scale_x<F>(p, column_token[tile][e], index)
                            : 0.0f;
#pragma unroll
            for (int side = 0; side < kSides; ++side)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float sw = block_scale_w(p, w_row[side][half], index);
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        float& value = run[side][tile][2 * half + e];
                        sum[side][tile][2 * half + e] += value * (sx[e] * sw);
                        value = 0.0f;
                    }
                }
        }
    }

    __device__ void slice(float (&sum)[kSides][kTiles][4],
                          const std::int64_t (&column_token)[kTiles][2]) const {
        constexpr int kRunGroups = kScaleRun / F::kGroup;
        float run[kSides][kTiles][4] = {};
        const int groups = (k1 - k0 + F::kGroup - 1) / F::kGroup;
        Stage stages[kDepth];
#pragma unroll
        for (int d = 0; d < kDepth; ++d)
            load(stages[d], d);
        for (int first = 0; first < groups; first += kDepth) {
#pragma unroll
            for (int d = 0; d < kDepth; ++d) {
                const int group = first + d;
                if (group >= groups)
                    break;
                if constexpr (F::kBlocks) {
                    multiply(stages[d], run);
                    if (group % kRunGroups == kRunGroups - 1 || group == groups - 1)
                        add_run(sum, run, k0 / kScaleRun + group / kRunGroups, column_token);
                } else {
                    multiply(stages[d], sum);
                }
                load(stages[d], group + kDepth);
            }
        }
    }
};

template <typename F, int kTiles, bool kGate>
__global__ void __launch_bounds__(kFewThreads, 1) product_few_kernel(ProductParams p) {
    using Product = FewProduct<F, kTiles, kGate>;
    constexpr int kSides = Product::kSides, kColumns = 8 * kTiles;
    // [warp][side][column of x][row of w]
    __shared__ float partial[kFewWarps][kSides][kColumns][17];
    __shared__ Group shared_group;
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
    const int g = lane / 4, t = lane % 4;
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
    if (group.begin >= group.end && p.start)
        return;

    const int sets = kFewWarps / p.slices.count; // of 16 weight rows
    const int set = warp / p.slices.count, slice = warp % p.slices.count;
    const std::int64_t first_row = (std::int64_t{blockIdx.x} * sets + set) * 16;
    Product product{p};
    for (int side = 0; side < kSides; ++side)
        for (int half = 0; half < 2; ++half)
            product.w_row[side][half] =
                group.index * p.w_rows + side * p.outputs +
                min(first_row + g + half * 8, p.outputs - 1);
    product.k0 = slice * p.slices.length;
    product.k1 = min(p.k, product.k0 + p.slices.length);

    for (int row0 = group.begin; row0 < group.end; row0 += kColumns) {
        float sum[kSides][kTiles][4] = {};
        if (set < sets) {
            std::int64_t column_token[kTiles][2];
            for (int tile = 0; tile < kTiles; ++tile) {
                const int row = row0 + tile * 8;
                product.token[tile] = row + g < group.end ? token_of(p, row + g) : -1;
                for (int e = 0; e < 2; ++e)
                    column_token[tile][e] =
                        row + 2 * t + e < group.end ? token_of(p, row + 2 * t + e) : -1;
            }
            product.slice(sum, column_token);
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
