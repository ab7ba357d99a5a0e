// SPDX-License-Identifier: Apache-2.0
//
// A block takes 64 query vectors: the group of one KV head of as many neighbouring rows as fit. It
// walks the pages of their sequence from the first to the furthest that one of its rows sees; a
// token that a row does not see weighs exactly nothing, so a row's bits do not depend on the rows
// it shares a block with.
//
// Spills: 8 bytes at a head width of 256 (bookkeeping of rows, outside the loop over pages).
#include "cuda/attention/attention_params.h"
#include "cuda/attention/page.h"
#include "cuda/detail/launch.h"

#include <algorithm>

namespace lr::cuda::detail {
namespace {

constexpr int kThreads = 128;
constexpr int kVectors = 64; // of a block

template <int kDh> __global__ void __launch_bounds__(kThreads)
    attention_prefill_kernel(AttentionParams p, int rows) {
    wait_for_inputs();
    extern __shared__ __align__(16) std::byte shared[];
    auto* const memory = reinterpret_cast<Bf16*>(shared);
    constexpr int kStride = kDh + kPad;
    const Tile q{memory, kStride}, keys{memory + kVectors * kStride, kStride},
        values{memory + (kVectors + kPage) * kStride, kStride};
    const int kv_head = static_cast<int>(blockIdx.y);
    const std::int64_t first = std::int64_t{blockIdx.x} * rows;
    const int used = rows * p.group;

    for (int i = threadIdx.x; i < kVectors * (kDh / 8); i += kThreads) {
        const int v = i / (kDh / 8), c = i % (kDh / 8) * 8;
        const std::int64_t row = first + v / p.group;
        const bool real = v < used && p.sequence(row) >= 0;
        const Bf16* from = real ? p.q[row] + (kv_head * p.group + v % p.group) * kDh + c : nullptr;
        store8(q.row(v) + c, real ? load8(from) : Vec8{});
    }

    // This lane's two vectors.
    const int warp_row = static_cast<int>(threadIdx.x) / kWarp * 16;
    std::int64_t row[2];
    std::int32_t sequence[2];
    int length[2];
    for (int half = 0; half < 2; ++half) {
        const int v = warp_row + static_cast<int>(threadIdx.x) % kWarp / 4 + half * 8;
        row[half] = first + v / p.group;
        sequence[half] = v < used ? p.sequence(row[half]) : -1;
        length[half] = sequence[half] >= 0 ? p.positions[row[half]] + 1 : 0;
    }

    Softmax16<kDh> state;
    for (std::int64_t begin = first; begin < first + rows;) {
        const std::int32_t b = p.sequence(begin);
        std::int64_t end = begin;
        int furthest = 0;
        for (; end < first + rows && p.sequence(end) == b; ++end)
            furthest = b >= 0 ? max(furthest, p.positions[end] + 1) : 0;
        for (int start = 0; start < furthest; start += kPage) {
            const std::int64_t page = p.page_at(p.page_table[b][start / kPage], kv_head, kDh);
            const int tokens = min(kPage, furthest - start);
            __syncthreads(); // the last page has been read
            copy_page<kDh>(keys, p.k_cache + page, p.token_stride(kDh), tokens, threadIdx.x,
                           kThreads);
            commit_copies();
            copy_page<kDh>(values, p.v_cache + page, p.token_stride(kDh), tokens, threadIdx.x,
                           kThreads);
            commit_copies();
            wait_copies<1>();
            __syncthreads();
            int seen[2];
            for (int half = 0; half < 2; ++half)
                seen[half] = row[half] >= begin && row[half] < end ? length[half] - start : 0;
            float scores[kPage / 8][4];
            score_page<kDh>(q, warp_row, keys, scores);
            weigh_page<kDh>(p.scale, seen, scores, state);
            wait_copies<0>();
            __syncthreads();
            add_values<kDh>(scores, values, state);
        }
        begin = end;
    }

    const int t = static_cast<int>(threadIdx.x) % 4;
    for (int half = 0; half < 2; ++half) {
        const int v = warp_row + static_cast<int>(threadIdx.x) % kWarp / 4 + half * 8;
        if (v >= used || row[half] >= p.n)
            continue;
        Bf16* const o = p.o[row[half]] + (kv_head * p.group + v % p.group) * kDh + 2 * t;
        const bool live = sequence[half] >= 0;
        for (int i = 0; i < kDh / 8; ++i)
            *reinterpret_cast<std::uint32_t*>(o + i * 8) =
                live ? pack_bf16(state.o[i][2 * half] / state.sum[half],
                                 state.o[i][2 * half + 1] / state.sum[half])
                     : 0;
    }
}

} // namespace

template <int kDh> Status attention_prefill(const AttentionParams& params, const Lane& lane) {
    if (params.group > kVectors)
        return fail(Code::kUnsupported, "cuda: attention: expected Hq/Hkv <= {}, got {}", kVectors,
                    params.group);
    const int rows = kVectors / params.group;
    constexpr std::size_t kBytes = (kVectors + 2 * kPage) * (kDh + kPad) * sizeof(Bf16);
    return launch(
        "attention", attention_prefill_kernel<kDh>,
        {{blocks_for(params.n, rows), static_cast<unsigned>(params.kv_heads)}, kThreads, kBytes},
        lane.stream, params, rows);
}

template Status attention_prefill<16>(const AttentionParams&, const Lane&);
template Status attention_prefill<32>(const AttentionParams&, const Lane&);
template Status attention_prefill<64>(const AttentionParams&, const Lane&);
template Status attention_prefill<128>(const AttentionParams&, const Lane&);
template Status attention_prefill<256>(const AttentionParams&, const Lane&);

} // namespace lr::cuda::detail
