// SPDX-License-Identifier: Apache-2.0
//
// One block a row. What remains in top-k and top-p is all that ranks at or above one key, found
// digit by digit in histograms of counts or of weights; every sum is an integer.
#include "cuda/detail/launch.h"
#include "cuda/sampling/block.h"
#include "cuda/sampling/sampling.h"
#include "numerics/counter_rng.h"
#include "numerics/softmax_weight.h"

#include <cfloat>
#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;

struct Params {
    Rows<const float> logits;
    const float* temperature;
    const std::int32_t* top_k;
    const float* top_p;
    const float* min_p;
    const float* repetition;
    const float* frequency;
    const float* presence;
    const std::int32_t* count_slot;
    Rows<const std::uint16_t> counts;
    Rows<const std::int32_t> bias_range;
    const std::int32_t* bias_id;
    const float* bias_value;
    const std::int64_t* seed;
    const std::int32_t* stream;
    const std::int32_t* position;
    const std::int32_t* m_live;
    std::int32_t* token;
    std::int32_t* status;
    float* scratch; // [m, vocab]
    int vocab;
};

struct Shared {
    std::uint64_t histogram[kDigits];
    std::uint64_t words[kRowWarps];
    float floats[kRowWarps];
    std::uint64_t prefix, left;
    int drawn;
};

__device__ float penalise(const Params& p, std::int64_t row, float z, std::uint16_t entry) {
    const int times = entry & ops::kMaxTokenCount;
    const float repetition = p.repetition[row];
    if (repetition != 1.0f)
        z = z > 0 ? z / repetition : z * repetition;
    z -= p.frequency[row] * static_cast<float>(times);
    if (times > 0)
        z -= p.presence[row];
    return fminf(fmaxf(z, -FLT_MAX), FLT_MAX);
}

// The logits as they are drawn from: the row's own, or a copy with biases and penalties.
__device__ const float* drawn_logits(const Params& p, std::int64_t row) {
    const float* const logits = p.logits[row];
    const std::int32_t first = p.bias_range[row][0], last = p.bias_range[row][1];
    const std::int32_t slot = p.count_slot[row];
    const bool penalised = slot >= 0 && (p.repetition[row] != 1.0f || p.frequency[row] != 0.0f ||
                                         p.presence[row] != 0.0f);
    if (first >= last && !penalised)
        return logits;
    float* const z = p.scratch + row * p.vocab;
    for (int i = threadIdx.x; i < p.vocab; i += kRowThreads)
        z[i] = logits[i];
    __syncthreads();
    for (std::int32_t j = first + static_cast<std::int32_t>(threadIdx.x); j < last;
         j += kRowThreads) {
        const std::int32_t id = p.bias_id[j];
        bool leads = id >= 0 && id < p.vocab; // the first entry of its id adds all of them
        for (std::int32_t other = first; leads && other < j; ++other)
            leads = p.bias_id[other] != id;
        for (std::int32_t other = j; leads && other < last; ++other)
            if (p.bias_id[other] == id)
                z[id] += p.bias_value[other];
    }
    __syncthreads();
    if (penalised)
        for (int i = threadIdx.x; i < p.vocab; i += kRowThreads)
            if (p.counts[slot][i] != 0)
                z[i] = penalise(p, row, z[i], p.counts[slot][i]);
    __syncthreads();
    return z;
}

// Everything that the filters measure of one row.
struct Row {
    const float* z;
    int vocab;
    float largest, temperature;

    __device__ std::uint64_t key(int i) const { return rank_key(z[i], i); }
    __device__ std::uint64_t weight(int i) const {
        return numerics::softmax_weight((z[i] - largest) / temperature);
    }
};

// The key of the last id in rank before which less than `limit` (>= 1) has added up, of the ids at
// or above `least`; measure(i) of all of them adds up to `limit` at least.
template <typename Measure> __device__ std::uint64_t last_key(const Row& row, std::uint64_t least,
                                                              std::uint64_t limit, Shared& shared,
                                                              Measure measure) {
    std::uint64_t prefix = 0;
    int shift = 64;
    while (shift > 0) {
        const int above = shift;
        shift = max(0, shift - kDigitBits);
        for (int d = threadIdx.x; d < kDigits; d += kRowThreads)
            shared.histogram[d] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < row.vocab; i += kRowThreads) {
            const std::uint64_t key = row.key(i);
            if (key < least || (above < 64 && key >> above != prefix))
                continue;
            const std::uint64_t amount = measure(i);
            if (amount != 0)
                atomicAdd(reinterpret_cast<unsigned long long*>(
                              &shared.histogram[key >> shift & ((1u << (above - shift)) - 1)]),
                          amount);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = kDigits - 1;
            for (; digit > 0 && shared.histogram[digit] < limit; --digit)
                limit -= shared.histogram[digit];
            shared.prefix = prefix << (above - shift) | static_cast<std::uint64_t>(digit);
            shared.left = limit;
        }
        __syncthreads();
        prefix = shared.prefix;
        limit = shared.left;
    }
    return prefix;
}

template <typename Measure> __device__ std::uint64_t sum_from(const Row& row, std::uint64_t least,
                                                              Shared& shared, Measure measure) {
    std::uint64_t sum = 0;
    for (int i = threadIdx.x; i < row.vocab; i += kRowThreads)
        sum += row.key(i) >= least ? measure(i) : 0;
    return combine_block(sum, shared.words, Sum());
}

// The lowest id whose running sum in id order exceeds `target`, which is below the whole sum.
template <typename Measure> __device__ int first_beyond(const Row& row, std::uint64_t least,
                                                        std::uint64_t target, Shared& shared,
                                                        Measure measure) {
    const int run = (row.vocab + kRowThreads - 1) / kRowThreads;
    const int begin = min(row.vocab, static_cast<int>(threadIdx.x) * run);
    const int end = min(row.vocab, begin + run);
    std::uint64_t mine = 0;
    for (int i = begin; i < end; ++i)
        mine += row.key(i) >= least ? measure(i) : 0;
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    std::uint64_t before = mine; // inclusive
    for (int step = 1; step < kWarp; step *= 2) {
        const std::uint64_t other = __shfl_up_sync(kFullMask, before, step);
        before += lane >= step ? other : 0;
    }
    __syncthreads();
    if (lane == kWarp - 1)
        shared.words[warp] = before;
    __syncthreads();
    std::uint64_t sum = before - mine;
    for (int other = 0; other < warp; ++other)
        sum += shared.words[other];
    if (sum <= target && target < sum + mine)
        for (int i = begin; i < end; ++i) {
            sum += row.key(i) >= least ? measure(i) : 0;
            if (sum > target) {
                shared.drawn = i;
                break;
            }
        }
    __syncthreads();
    return shared.drawn;
}

__device__ int draw(const Params& p, std::int64_t at, const Row& row, Shared& shared) {
    const auto weight = [&](int i) { return row.weight(i); };
    const int top_k = p.top_k[at];
    const float top_p = p.top_p[at], min_p = p.min_p[at];
    std::uint64_t least = 0;
    if (top_k > 0 && top_k < row.vocab)
        least = last_key(row, 0, static_cast<std::uint64_t>(top_k), shared,
                         [](int) { return std::uint64_t{1}; });
    if (top_p < 1.0f) {
        const std::uint64_t total = sum_from(row, least, shared, weight);
        const auto limit = static_cast<std::uint64_t>(
            ceil(fmax(0.0, static_cast<double>(top_p)) * static_cast<double>(total)));
        least = max(least, last_key(row, least, max(limit, std::uint64_t{1}), shared, weight));
    }
    const std::uint64_t lightest =
        min_p > 0 ? static_cast<std::uint64_t>(ceil(static_cast<double>(fminf(min_p, 1.0f)) *
                                                    static_cast<double>(numerics::kWeightOne)))
                  : 0;
    const auto kept = [&](int i) {
        const std::uint64_t w = row.weight(i);
        return w >= lightest ? w : 0;
    };
    const std::uint64_t total = sum_from(row, least, shared, kept);
    const std::uint64_t bits = numerics::counter_bits(static_cast<std::uint64_t>(p.seed[at]),
                                                      static_cast<std::uint64_t>(p.stream[at]),
                                                      static_cast<std::uint64_t>(p.position[at]));
    return first_beyond(row, least, __umul64hi(bits, total), shared, kept);
}

__global__ void __launch_bounds__(kRowThreads) sample_kernel(Params p) {
    wait_for_inputs();
    __shared__ Shared shared;
    const std::int64_t at = blockIdx.x;
    if (!is_live(at, p.m_live)) {
        if (threadIdx.x == 0) {
            p.token[at] = -1;
            p.status[at] = 0;
        }
        return;
    }
    const float* const logits = p.logits[at];
    int odd = 0;
    for (int i = threadIdx.x; i < p.vocab; i += kRowThreads)
        odd |= !isfinite(logits[i]);
    if (__syncthreads_or(odd)) {
        if (threadIdx.x == 0) {
            p.token[at] = -1;
            p.status[at] = 1;
        }
        return;
    }
    Row row{drawn_logits(p, at), p.vocab, -INFINITY, p.temperature[at]};
    std::uint64_t best = 0;
    for (int i = threadIdx.x; i < p.vocab; i += kRowThreads)
        best = max(best, row.key(i));
    best = combine_block(best, shared.words, Largest());
    int token = id_of(best);
    row.largest = row.z[token];
    if (row.temperature > 0)
        token = draw(p, at, row, shared);
    if (threadIdx.x == 0) {
        p.token[at] = token;
        p.status[at] = 0;
    }
}

} // namespace

std::int64_t sample_scratch_bytes(const ops::SampleArgs& args) {
    return args.logits.rows() * args.vocab_limit * static_cast<std::int64_t>(sizeof(float));
}

Status sample(const ops::SampleArgs& args, const Lane& lane) {
    if (sample_scratch_bytes(args) > lane.scratch_bytes)
        return fail(Code::kInternal, "cuda: sample: expected {} bytes of scratch, got {}",
                    sample_scratch_bytes(args), lane.scratch_bytes);
    const Params params = {rows<const float>(args.logits),
                           values<const float>(args.temperature),
                           values<const std::int32_t>(args.top_k),
                           values<const float>(args.top_p),
                           values<const float>(args.min_p),
                           values<const float>(args.repetition),
                           values<const float>(args.frequency),
                           values<const float>(args.presence),
                           values<const std::int32_t>(args.count_slot),
                           rows<const std::uint16_t>(args.counts),
                           rows<const std::int32_t>(args.bias_range),
                           values<const std::int32_t>(args.bias_id),
                           values<const float>(args.bias_value),
                           values<const std::int64_t>(args.seed),
                           values<const std::int32_t>(args.stream),
                           values<const std::int32_t>(args.position),
                           values<const std::int32_t>(args.m_live),
                           values<std::int32_t>(args.token),
                           values<std::int32_t>(args.status),
                           reinterpret_cast<float*>(lane.scratch),
                           args.vocab_limit};
    if (args.token.rows() == 0)
        return {};
    return launch("sample", sample_kernel, {static_cast<unsigned>(args.token.rows()), kRowThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
