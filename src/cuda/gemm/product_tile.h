// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_tile.h: products of many rows of x: tiles of 128 weight rows and 64 rows of x,
// expanded to 16 bits on their way into shared memory. For .cu files only.
//
// While one tile of 64 k is multiplied, the next is on its way in registers. A warp has 32 x 32
// results; with a gate its 32 weight rows are 16 of gate and the 16 of up that belong to them.
#pragma once

#include "cuda/gemm/product_grid.h"

namespace lr::cuda::detail {

template <typename F, bool kGate> struct TileProduct {
    static constexpr int kThreads = 32 * (kTileW / 32) * (kTileX / 32);
    // Bytes between rows: a quarter of a warp, which reads two rows, then meets all banks.
    static constexpr int kPitch = 2 * kTileK + (F::kUnit == 8 ? 64 : 16);
    static constexpr int kBufferBytes = (kTileW + kTileX) * kPitch;
    static constexpr int kUnits = kTileK / F::kUnit; // of a row
    static constexpr int kLoadsW = kTileW * kUnits / kThreads, kLoadsX = kTileX * kUnits / kThreads;
    static constexpr int kOutPitch = kTileW + 4; // floats
    static constexpr std::size_t kSharedBytes = 2 * kBufferBytes + 32 * kThreads * sizeof(float);
    static_assert(kTileX * kOutPitch * 4 <= kSharedBytes);
    static_assert(kTileW * kUnits % kThreads == 0 && kTileX * kUnits % kThreads == 0);

    const ProductParams& p;
    std::byte* shared;
    std::int64_t output0; // first column of y
    int group, row0, end; // rows of x [row0, end), at most kTileX of them

    struct Stage {
        Raw w[kLoadsW];
        Raw x[kLoadsX];
    };

    // Row of w (of all groups) at row `i` of the tile.
    __device__ std::int64_t w_row(int i) const {
        const std::int64_t base = group * p.w_rows;
        if constexpr (!kGate)
            return base + min(output0 + i, p.outputs - 1);
        const std::int64_t output = output0 + i / 32 * 16 + i % 16;
        return base + (i % 32 < 16 ? 0 : p.outputs) + min(output, p.outputs - 1);
    }

    __device__ void load(Stage& stage, int k0, int k1) const {
#pragma unroll
        for (int i = 0; i < kLoadsW; ++i) {
            const int unit = i * kThreads + static_cast<int>(threadIdx.x);
            const int k = k0 + unit % kUnits * F::kUnit;
            stage.w[i] = k < k1 ? load_w<F>(p, w_row(unit / kUnits), k) : Raw{};
        }
#pragma unroll
        for (int i = 0; i < kLoadsX; ++i) {
            const int unit = i * kThreads + static_cast<int>(threadIdx.x);
            const int k = k0 + unit % kUnits * F::kUnit, row = row0 + unit / kUnits;
            stage.x[i] = k < k1 && row < end ? load_x<F>(p, token_of(p, row), k) : Raw{};
        }
    }

    static __device__ void store_unit(std::byte* row, int unit,
                                      const std::uint32_t (&pairs)[F::kPairs]) {
        auto* const to = reinterpret_cast<uint4*>(row + unit * F::kUnit * 2);
#pragma unroll
        for (int i = 0; i < F::kPairs / 4; ++i)
            to[i] = {pairs[4 * i], pairs[4 * i + 1], pairs[4 * i + 2], pairs[4 * i + 3]};
    }

    __device__ void store(const Stage& stage, int buffer) const {
        std::byte* const w = shared + buffer * kBufferBytes;
        std::byte* const x = w + kTileW * kPitch;
        std::uint32_t pairs[F::kPairs];
#pragma unroll
        for (int i = 0; i < kLoadsW; ++i) {
            const int unit = i * kThreads + static_cast<int>(threadIdx.x);
            expand_w<F>(stage.w[i], pairs);
            store_unit(w + unit / kUnits * kPitch, unit % kUnits, pairs);
        }
#pragma unroll
        for (int i = 0; i < kLoadsX; ++i) {
            const int unit = i * kThreads + static_cast<int>(threadIdx.x);
            expand_x<F>(stage.x[i], pairs);
            store_unit(x + unit / kUnits * kPitch, unit % kUnits, pairs);
        }
    }

    // c[m][n]: rows 16m of the warp's weights, columns 8n of its rows of x.
    __device__ void multiply(int buffer, float (&c)[2][4][4]) const {
        const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
        const std::byte* const w = shared + buffer * kBufferBytes +
                                   (warp % 4 * 32 + lane / 4) * kPitch + lane % 4 * F::kUnit * 2;
        const std::byte* const x = shared + buffer * kBufferBytes +
                                   (kTileW + warp / 4 * 32 + lane / 4) * kPitch +
                                   lane % 4 * F::kUnit * 2;
#pragma unroll
        for (int k = 0; k < kTileK * 2; k += F::kGroup * 2)
#pragma unroll
            for (int s = 0; s < F::kUnit * 2; s += 16) {
                uint4 right[4];
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    right[n] = *reinterpret_cast<const uint4*>(x + n * 8 * kPitch + k + s);
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    const uint4 low = *reinterpret_cast<const uint4*>(w + m * 16 * kPitch + k + s);
                    const uint4 high =
                        *reinterpret_cast<const uint4*>(w + (m * 16 + 8) * kPitch + k + s);
                    const std::uint32_t first[4] = {low.x, high.x, low.y, high.y};
                    const std::uint32_t second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
                    for (int n = 0; n < 4; ++n) {
                        if constexpr (F::kHalf) {
                            mma_f16(c[m][n], first, right[n].x, right[n].y);
                            mma_f16(c[m][n], second, right[n].z, right[n].w);
                        } else {
                            mma_bf16(c[m][n], first, right[n].x, right[n].y);
                            mma_bf16(c[m][n], second, right[n].z, right[n].w);
                        }
                    }
                }
            }
    }

    __device__ int warp_row() const {
        return static_cast<int>(threadIdx.x) / kWarp % 4 * 32;
    }
    __device__ int warp_column() const {
        return static_cast<int>(threadIdx.x) / kWarp / 4 * 32;
    }

    __device__ void add_run(float (&sum)[2][4][4], float (&run)[2][4][4], int index) const {
        const int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = threadIdx.x % 4;
        float sw[2][2];
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                sw[m][half] = block_scale_w(p, w_row(warp_row() + m * 16 + g + half * 8), index);
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int row = row0 + warp_column() + n * 8 + 2 * t + e;
                const float sx = row < end ? block_scale_x<F>(p, token_of(p, row), index) : 0.0f;
#pragma unroll
                for (int m = 0; m < 2; ++m)
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        float& value = run[m][n][2 * half + e];
                        sum[m][n][2 * half + e] += value * (sx * sw[m][half]);
                        value = 0.0f;
                    }
            }
    }

    // The sums of finished slices wait in shared memory, each thread's own: registers are for the
    // slice at hand.
    __device__ float& total(int i) const {
        return reinterpret_cast<float*>(shared + 2 * kBufferBytes)[i * kThreads + threadIdx.x];
    }

    // Slices [first, last) of K.
    __device__ void run(float (&sum)[2][4][4], int first, int last) const {
        float run[2][4][4] = {};
        const int k_begin = first * p.slices.length, k_end = min(p.k, last * p.slices.length);
        Stage stage;
        load(stage, k_begin, k_end);
        store(stage, 0);
        __syncthreads();
        int buffer = 0;
        for (int k = k_begin; k < k_end; k += kTileK) {
            const int next = k + kTileK;
            if (next < k_end)
                load(stage, next, k_end);
            if constexpr (F::kBlocks) {
                multiply(buffer, run);
                if (next % kScaleRun == 0 || next >= k_end)
                    add_run(sum, run, k / kScaleRun);
            } else {
                multiply(buffer, sum);
            }
            if (next % p.slices.length == 0 && next < k_end) {
                const bool begun = k >= k_begin + p.slices.length;
#pragma unroll
                for (int i = 0; i < 32; ++i) {
                    float& mine = sum[i / 16][i / 4 % 4][i % 4];
                    total(i) = begun ? total(i) + mine : mine;
                    mine = 0.0f;
                }
            }
            if (next < k_end)
                store(stage, buffer ^ 1);
            __syncthreads();
            buffer ^= 1;
        }
        if (k_end - k_begin > p.slices.length)
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                float& mine = sum[i / 16][i / 4 % 4][i % 4];
                mine = total(i) + mine;
            }
    }

    // Results to shared memory, [row of x][column of y], with their factors.
    __device__ void collect(const float (&total)[2][4][4], float* out, bool factors) const {
        const int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int column = warp_column() + n * 8 + 2 * t + e, row = row0 + column;
                if (row >= end)
                    continue;
                const std::int64_t token = token_of(p, row);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float value[2];
                    for (int m = 0; m < 2; ++m) {
                        value[m] = total[m][n][2 * half + e];
                        if (factors)
                            value[m] *= final_factor<F>(
                                p, w_row(warp_row() + m * 16 + g + half * 8), token);
                    }
                    float* const to = out + column * kOutPitch + g + half * 8;
                    if constexpr (kGate) {
                        to[warp_row() / 2] = swiglu(value[0], value[1]);
                    } else {
                        to[warp_row()] = value[0];
                        to[warp_row() + 16] = value[1];
                    }
                }
            }
    }

    __device__ void write(const float* out) const {
        constexpr int kWidth = kGate ? kTileW / 2 : kTileW;
        // Of a linear layer, rows behind n_live are zero.
        const std::int64_t last = p.start ? end : min(p.rows, std::int64_t{row0} + kTileX);
        const bool whole = p.y_stride % 8 == 0 && output0 + kWidth <= p.outputs && !p.y_is_f32 &&
                           reinterpret_cast<std::uintptr_t>(p.y) % 16 == 0;
        if (whole) {
            for (int i = threadIdx.x; i < kTileX * (kWidth / 8); i += kThreads) {
                const int column = i / (kWidth / 8), first = i % (kWidth / 8) * 8;
                if (row0 + column >= last)
                    continue;
                Vec8 values{};
                for (int e = 0; e < 8 && row0 + column < end; ++e)
                    values.v[e] = out[column * kOutPitch + first + e];
                store8(static_cast<Bf16*>(p.y) + (row0 + column) * p.y_stride + output0 + first,
                       values);
            }
            return;
        }
        for (int i = threadIdx.x; i < kTileX * kWidth; i += kThreads) {
            const int column = i / kWidth, m = i % kWidth;
            if (row0 + column < last && output0 + m < p.outputs)
                store_result(p, row0 + column, output0 + m,
                             row0 + column < end ? out[column * kOutPitch + m] : 0.0f);
        }
    }

    __device__ void write_partial(const float* out, int slice) const {
        for (int i = threadIdx.x; i < kTileX * kTileW; i += kThreads) {
            const int column = i / kTileW, m = i % kTileW;
            if (row0 + column < end && output0 + m < p.outputs)
                p.partial[(slice * p.rows + row0 + column) * p.outputs + output0 + m] =
                    out[column * kOutPitch + m];
        }
    }
};

template <typename F, bool kGate, bool kSplit>
__global__ void __launch_bounds__(TileProduct<F, kGate>::kThreads, 2)
    product_tile_kernel(ProductParams p) {
    wait_for_inputs();
    using Product = TileProduct<F, kGate>;
    extern __shared__ __align__(16) std::byte shared[];
    __shared__ int4 found;
    if (threadIdx.x < kWarp) {
        const int4 tile = find_tile(p);
        if (threadIdx.x == 0)
            found = tile;
    }
    __syncthreads();
    const int4 tile = found;
    if (tile.y >= tile.z && (p.start || kSplit))
        return;
    const std::int64_t width = kGate ? kTileW / 2 : kTileW;
    const Product product{p, shared, std::int64_t{blockIdx.x} * width, tile.x, tile.y, tile.z};
    float total[2][4][4] = {};
    const int slice = static_cast<int>(blockIdx.z);
    if (tile.y < tile.z)
        product.run(total, kSplit ? slice : 0, kSplit ? slice + 1 : p.slices.count);
    auto* const out = reinterpret_cast<float*>(shared);
    product.collect(total, out, !kSplit);
    __syncthreads();
    if constexpr (kSplit)
        product.write_partial(out, slice);
    else
        product.write(out);
}

template <typename F, bool kGate, bool kSplit>
Status launch_tile(const ProductParams& params, const ProductChoice& choice, const Lane& lane) {
    using Product = TileProduct<F, kGate>;
    const std::int64_t width = kGate ? kTileW / 2 : kTileW;
    return launch("product", product_tile_kernel<F, kGate, kSplit>,
                  {{blocks_for(params.outputs, width), static_cast<unsigned>(choice.row_tiles),
                    kSplit ? static_cast<unsigned>(params.slices.count) : 1},
                   Product::kThreads,
                   Product::kSharedBytes},
                  lane.stream, params);
}

} // namespace lr::cuda::detail
