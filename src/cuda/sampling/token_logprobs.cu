// SPDX-License-Identifier: Apache-2.0
//
// One block a row, in f64. The likeliest are found one after the other: the best of those behind
// the last.
#include "cuda/detail/launch.h"
#include "cuda/sampling/block.h"
#include "cuda/sampling/sampling.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

struct Params {
    Rows<const float> logits;
    const std::int32_t* wanted;
    const std::int32_t* target;
    const std::int32_t* token;
    const std::int32_t* status;
    const std::int32_t* m_live;
    std::int32_t* id;
    std::int32_t* rank;
    double* logprob;
    Rows<std::int32_t> top_id;
    Rows<double> top_logprob;
    int vocab;
};

__global__ void __launch_bounds__(kRowThreads) token_logprobs_kernel(Params p) {
    wait_for_inputs();
    __shared__ std::uint64_t words[kRowWarps];
    __shared__ double doubles[kRowWarps];
    const std::int64_t row = blockIdx.x;
    if (threadIdx.x < ops::kMaxTopLogprobs) {
        p.top_id[row][threadIdx.x] = -1;
        p.top_logprob[row][threadIdx.x] = 0;
    }
    if (!is_live(row, p.m_live) || p.wanted[row] < 0 || p.status[row] != 0) {
        if (threadIdx.x == 0) {
            p.id[row] = -1;
            p.rank[row] = 0;
            p.logprob[row] = 0;
        }
        return;
    }
    const float* const logits = p.logits[row];
    const int id = p.target[row] >= 0 ? p.target[row] : p.token[row];
    const std::uint64_t own = rank_key(logits[id], id);
    std::uint64_t best = 0, ahead = 0;
    for (int i = threadIdx.x; i < p.vocab; i += kRowThreads) {
        const std::uint64_t key = rank_key(logits[i], i);
        best = max(best, key);
        ahead += key > own;
    }
    best = combine_block(best, words, Largest());
    ahead = combine_block(ahead, words, Sum());
    const double largest = logits[id_of(best)];
    double sum = 0;
    for (int i = threadIdx.x; i < p.vocab; i += kRowThreads)
        sum += exp(static_cast<double>(logits[i]) - largest);
    const double log_sum = log(combine_block(sum, doubles, Sum()));
    const auto logprob = [&](int i) {
        return (static_cast<double>(logits[i]) - largest) - log_sum;
    };
    if (threadIdx.x == 0) {
        p.id[row] = id;
        p.rank[row] = static_cast<std::int32_t>(ahead) + 1;
        p.logprob[row] = logprob(id);
    }
    __syncthreads();
    const int wanted = min(p.wanted[row], p.vocab);
    for (int place = 0; place < wanted; ++place) {
        if (threadIdx.x == 0) {
            p.top_id[row][place] = id_of(best);
            p.top_logprob[row][place] = logprob(id_of(best));
        }
        std::uint64_t next = 0;
        for (int i = threadIdx.x; place + 1 < wanted && i < p.vocab; i += kRowThreads) {
            const std::uint64_t key = rank_key(logits[i], i);
            next = key < best && key > next ? key : next;
        }
        best = combine_block(next, words, Largest());
    }
}

} // namespace

Status token_logprobs(const ops::TokenLogprobsArgs& args, const Lane& lane) {
    const Params params = {rows<const float>(args.logits),
                           values<const std::int32_t>(args.wanted),
                           values<const std::int32_t>(args.target),
                           values<const std::int32_t>(args.token),
                           values<const std::int32_t>(args.status),
                           values<const std::int32_t>(args.m_live),
                           values<std::int32_t>(args.id),
                           values<std::int32_t>(args.rank),
                           values<double>(args.logprob),
                           rows<std::int32_t>(args.top_id),
                           rows<double>(args.top_logprob),
                           args.vocab_limit};
    if (args.id.rows() == 0)
        return {};
    return launch("token_logprobs", token_logprobs_kernel,
                  {static_cast<unsigned>(args.id.rows()), kRowThreads}, lane.stream, params);
}

} // namespace lr::cuda
