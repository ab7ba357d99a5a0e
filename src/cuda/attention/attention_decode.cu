// SPDX-License-Identifier: Apache-2.0
//
// A block takes one row, one KV head and one split of two pages, a page a warp, keys and values in
// flight at once. Its partial results are merged page by page, and a second kernel merges the
// splits of a row in ascending order: the tree is a function of the row's length.
#include "cuda/attention/attention_params.h"
#include "cuda/attention/page.h"
#include "cuda/detail/launch.h"

namespace lr::cuda::detail {
namespace {

constexpr int kThreads = kSplitPages * kWarp;
constexpr int kVectors = 16; // query heads of a KV head at most

// A partial result: max, sum and o [dh] of one query head. [n, Hq, splits, dh + 2].
template <int kDh>
__device__ float* partial_at(const AttentionParams& p, std::int64_t row, int head, int split) {
    const std::int64_t heads = std::int64_t{p.kv_heads} * p.group;
    return p.partial + ((row * heads + head) * p.splits + split) * (kDh + 2);
}

// The sums of two parts of a context, the earlier one first.
struct Merge {
    float max, first, second; // factors of the two

    __device__ Merge(float max0, float max1) : max(fmaxf(max0, max1)) {
        first = max0 == -INFINITY ? 0.0f : expf(max0 - max);
        second = max1 == -INFINITY ? 0.0f : expf(max1 - max);
    }
};

template <int kDh> __global__ void __launch_bounds__(kThreads)
    attention_decode_kernel(AttentionParams p) {
    wait_for_inputs();
    extern __shared__ __align__(16) std::byte shared[];
    constexpr int kStride = kDh + kPad;
    const int split = static_cast<int>(blockIdx.x), kv_head = static_cast<int>(blockIdx.y);
    const std::int64_t row = blockIdx.z;
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
    const std::int32_t b = p.sequence(row);
    const int length = b >= 0 ? p.positions[row] + 1 : 0;
    if (split * kSplitPages * kPage >= length)
        return;

    auto* const memory = reinterpret_cast<Bf16*>(shared);
    const Tile q{memory, kStride}, keys{memory + (kVectors + 2 * warp * kPage) * kStride, kStride},
        values{memory + (kVectors + (2 * warp + 1) * kPage) * kStride, kStride};
    const int start = (split * kSplitPages + warp) * kPage;
    const int tokens = min(kPage, length - start);
    if (tokens > 0) {
        const std::int64_t page = p.page_at(p.page_table[b][start / kPage], kv_head, kDh);
        copy_page<kDh>(keys, p.k_cache + page, p.token_stride(kDh), tokens, lane, kWarp);
        commit_copies();
        copy_page<kDh>(values, p.v_cache + page, p.token_stride(kDh), tokens, lane, kWarp);
        commit_copies();
    }
    for (int i = threadIdx.x; i < kVectors * (kDh / 8); i += kThreads) {
        const int v = i / (kDh / 8), c = i % (kDh / 8) * 8;
        store8(q.row(v) + c,
               v < p.group ? load8(p.q[row] + (kv_head * p.group + v) * kDh + c) : Vec8{});
    }
    __syncthreads();

    Softmax16<kDh> state;
    if (tokens > 0) {
        wait_copies<1>();
        __syncwarp();
        float scores[kPage / 8][4];
        score_page<kDh>(q, 0, keys, scores);
        const int seen[2] = {tokens, tokens};
        weigh_page<kDh>(p.scale, seen, scores, state);
        wait_copies<0>();
        __syncwarp();
        add_values<kDh>(scores, values, state);
    }
    __syncthreads();

    // Every warp's results, [page][vector][dh + 2], over the pages' tiles.
    auto* const results = reinterpret_cast<float*>(shared);
    const int g = lane / 4, t = lane % 4;
    for (int half = 0; half < 2; ++half) {
        float* const result = results + (warp * kVectors + g + half * 8) * (kDh + 2);
        if (t == 0) {
            result[0] = state.max[half];
            result[1] = state.sum[half];
        }
        for (int i = 0; i < kDh / 8; ++i)
            for (int e = 0; e < 2; ++e)
                result[2 + i * 8 + 2 * t + e] = state.o[i][2 * half + e];
    }
    __syncthreads();
    for (int v = warp; v < p.group; v += kSplitPages) {
        float* const out = partial_at<kDh>(p, row, kv_head * p.group + v, split);
        float max = results[v * (kDh + 2)], sum = results[v * (kDh + 2) + 1];
        float o[(kDh + kWarp - 1) / kWarp];
        for (int i = 0; i * kWarp + lane < kDh; ++i)
            o[i] = results[v * (kDh + 2) + 2 + i * kWarp + lane];
        for (int other = 1; other < kSplitPages; ++other) {
            const float* const result = results + (other * kVectors + v) * (kDh + 2);
            const Merge merge(max, result[0]);
            max = merge.max;
            sum = sum * merge.first + result[1] * merge.second;
            for (int i = 0; i * kWarp + lane < kDh; ++i)
                o[i] = o[i] * merge.first + result[2 + i * kWarp + lane] * merge.second;
        }
        if (lane == 0) {
            out[0] = max;
            out[1] = sum;
        }
        for (int i = 0; i * kWarp + lane < kDh; ++i)
            out[2 + i * kWarp + lane] = o[i];
    }
}

template <int kDh> __global__ void merge_splits_kernel(AttentionParams p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.y;
    const int head = static_cast<int>(blockIdx.x), c = threadIdx.x;
    const std::int32_t b = p.sequence(row);
    if (b < 0) {
        p.o[row][std::int64_t{head} * kDh + c] = to_bf16(0.0f);
        return;
    }
    const int pages = p.positions[row] / kPage + 1;
    const int splits = (pages + kSplitPages - 1) / kSplitPages;
    float max = -INFINITY, sum = 0, o = 0;
    for (int split = 0; split < splits; ++split) {
        const float* const part = partial_at<kDh>(p, row, head, split);
        const Merge merge(max, part[0]);
        max = merge.max;
        sum = sum * merge.first + part[1] * merge.second;
        o = o * merge.first + part[2 + c] * merge.second;
    }
    p.o[row][std::int64_t{head} * kDh + c] = to_bf16(o / sum);
}

} // namespace

template <int kDh> Status attention_decode(const AttentionParams& params, const Lane& lane) {
    if (params.group > kVectors)
        return fail(Code::kUnsupported, "cuda: attention: expected Hq/Hkv <= {}, got {}", kVectors,
                    params.group);
    constexpr std::size_t kTiles =
        (kVectors + 2 * kSplitPages * kPage) * (kDh + kPad) * sizeof(Bf16);
    constexpr std::size_t kResults = kSplitPages * kVectors * (kDh + 2) * sizeof(float);
    LR_TRY(launch("attention", attention_decode_kernel<kDh>,
                  {{static_cast<unsigned>(params.splits), static_cast<unsigned>(params.kv_heads),
                    static_cast<unsigned>(params.n)},
                   kThreads,
                   kTiles > kResults ? kTiles : kResults},
                  lane.stream, params));
    return launch(
        "attention merge", merge_splits_kernel<kDh>,
        {{static_cast<unsigned>(params.kv_heads * params.group), static_cast<unsigned>(params.n)},
         kDh},
        lane.stream, params);
}

template Status attention_decode<16>(const AttentionParams&, const Lane&);
template Status attention_decode<32>(const AttentionParams&, const Lane&);
template Status attention_decode<64>(const AttentionParams&, const Lane&);
template Status attention_decode<128>(const AttentionParams&, const Lane&);
template Status attention_decode<256>(const AttentionParams&, const Lane&);

} // namespace lr::cuda::detail
