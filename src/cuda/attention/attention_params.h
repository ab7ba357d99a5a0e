// SPDX-License-Identifier: Apache-2.0
//
// cuda/attention/attention_params.h: what the two attention kernels share. For .cu files only.
#pragma once

#include "cuda/attention/attention.h"
#include "cuda/detail/mma.h"
#include "ops/attention/attention.h"

#include <cstdint>

namespace lr::cuda::detail {

struct AttentionParams {
    Rows<const Bf16> q;
    const Bf16* k_cache; // [P, 64, Hkv, dh]
    const Bf16* v_cache;
    Rows<const std::int32_t> page_table;
    const std::int32_t* row_seq;
    const std::int32_t* positions;
    const std::int32_t* n_live;
    Rows<Bf16> o;
    float* partial; // decode: the lane's scratch
    std::int64_t n;
    int kv_heads, group; // Hkv, Hq/Hkv
    int splits;          // decode: of a row at most
    float scale;

    // Elements between two tokens of a cache, and where a page and KV head begin.
    __device__ std::int64_t token_stride(int dh) const { return std::int64_t{kv_heads} * dh; }
    __device__ std::int64_t page_at(std::int64_t page, int kv_head, int dh) const {
        return page * ops::kKvPage * token_stride(dh) + std::int64_t{kv_head} * dh;
    }
    // The sequence of a row, -1 for padding.
    __device__ std::int32_t sequence(std::int64_t row) const {
        return row < n && is_live(row, n_live) ? row_seq[row] : -1;
    }
};

// Each compiled for every head width that the kernels have.
template <int kDh> Status attention_prefill(const AttentionParams& params, const Lane& lane);
template <int kDh> Status attention_decode(const AttentionParams& params, const Lane& lane);

// Pages of one split of a decode row: the tree of a row's sums depends on its length alone.
inline constexpr int kSplitPages = 2;

} // namespace lr::cuda::detail
