// SPDX-License-Identifier: Apache-2.0
//
// cuda/attention/page.h: sixteen query vectors of one warp against one page of 64 keys and values.
// For .cu files only.
//
// Scores and the running softmax are f32. The weights of the softmax meet the values on the tensor
// cores as two bf16 numbers each, p = high + low with |p - high - low| <= 2^-17 p, so that the
// products are f32's but for that.
#pragma once

#include "cuda/detail/mma.h"
#include "ops/op.h"

#include <cstdint>

namespace lr::cuda::detail {

inline constexpr int kPage = ops::kKvPage;

// The running softmax of 16 vectors in one warp's registers. This lane has rows g and g + 8 (index
// half), and of o the columns 8i + 2t and the next.
template <int kDh> struct Softmax16 {
    float max[2] = {-INFINITY, -INFINITY};
    float sum[2] = {};
    float o[kDh / 8][4] = {};
};

// Tokens [0, tokens) of a page and KV head into tiles, 16 bytes at a time, by `threads` threads;
// the caller commits and waits.
template <int kDh> __device__ inline void copy_page(Tile tile, const Bf16* page,
                                                    std::int64_t token_stride, int tokens,
                                                    int thread, int threads) {
    constexpr int kVectors = kDh / 8;
    for (int i = thread; i < kPage * kVectors; i += threads) {
        const int t = i / kVectors, c = i % kVectors * 8;
        if (t < tokens)
            copy_async16(tile.row(t) + c, page + t * token_stride + c);
        else
            *reinterpret_cast<uint4*>(tile.row(t) + c) = uint4{}; // 0 * p, never NaN
    }
}

// scores = q . k, 16 x 64.
template <int kDh>
__device__ inline void score_page(Tile q, int row, Tile keys, float (&scores)[kPage / 8][4]) {
#pragma unroll
    for (int i = 0; i < kPage / 16; ++i) {
        float c[2][4] = {};
        multiply16<Right::kByColumn>(c, q, row, keys, i * 16, kDh);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            scores[2 * i + e / 4][e % 4] = c[e / 4][e % 4];
    }
}

// Scores become weights; seen[half] tokens of the page belong to the row, the others weigh nothing.
// o and sum shrink to the new maximum.
template <int kDh> __device__ inline void weigh_page(float scale, const int (&seen)[2],
                                                     float (&scores)[kPage / 8][4],
                                                     Softmax16<kDh>& state) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float largest = state.max[half];
#pragma unroll
        for (int i = 0; i < kPage / 8; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float& score = scores[i][2 * half + e];
                score = i * 8 + 2 * t + e < seen[half] ? scale * score : -INFINITY;
                largest = fmaxf(largest, score);
            }
        largest = warp_max<4>(largest);
        const bool none = largest == -INFINITY;
        const float shrink = none ? 1.0f : expf(state.max[half] - largest);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < kPage / 8; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float& score = scores[i][2 * half + e];
                score = none ? 0.0f : expf(score - largest);
                sum += score;
            }
        state.max[half] = largest;
        state.sum[half] = state.sum[half] * shrink + warp_sum<4>(sum);
#pragma unroll
        for (int i = 0; i < kDh / 8; ++i) {
            state.o[i][2 * half] *= shrink;
            state.o[i][2 * half + 1] *= shrink;
        }
    }
}

// o += p v.
template <int kDh> __device__ inline void add_values(const float (&p)[kPage / 8][4], Tile values,
                                                     Softmax16<kDh>& state) {
    const int lane = threadIdx.x % kWarp;
    const Bf16* const right = values.row(lane / 8 % 2 * 8 + lane % 8) + lane / 16 * 8;
#pragma unroll
    for (int i = 0; i < kPage / 16; ++i) {
        std::uint32_t high[4], low[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) { // rows g, g + 8 of token pair 2t, then of 2t + 8
            const float x = p[2 * i + r / 2][r % 2 * 2], y = p[2 * i + r / 2][r % 2 * 2 + 1];
            high[r] = pack_bf16(x, y);
            low[r] = pack_bf16(x - bf16_low(high[r]), y - bf16_high(high[r]));
        }
#pragma unroll
        for (int j = 0; j < kDh / 16; ++j) {
            std::uint32_t v[4];
            load_matrices_transposed(v, right + i * 16 * values.stride + j * 16);
            mma_bf16(state.o[2 * j], high, v[0], v[1]);
            mma_bf16(state.o[2 * j], low, v[0], v[1]);
            mma_bf16(state.o[2 * j + 1], high, v[2], v[3]);
            mma_bf16(state.o[2 * j + 1], low, v[2], v[3]);
        }
    }
}

} // namespace lr::cuda::detail
