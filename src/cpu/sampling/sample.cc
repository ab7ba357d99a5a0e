// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/rows.h"
#include "cpu/sampling/penalties.h"
#include "cpu/sampling/sampling.h"
#include "cpu/sampling/select.h"
#include "cpu/sampling/softmax.h"
#include "numerics/counter_rng.h"
#include "numerics/softmax_weight.h"

#include <algorithm>
#include <cmath>

namespace lr::cpu {
namespace {

// Thread scratch: slot 0 is penalised_logits'.
enum Scratch { kBlockMax = 1, kBlockOrder, kWeights, kCandidates, kRanking };

template <typename T> T* scratch(Scratch slot, std::int64_t count) {
    return reinterpret_cast<T*>(
        thread_scratch(slot, count * static_cast<std::int64_t>(sizeof(T) / sizeof(float))));
}

// How one row is drawn.
struct Draw {
    float temperature;
    std::int32_t top_k; // <= 0 or >= the ids: off
    float top_p, min_p;
    std::uint64_t bits; // random
};

// z of one row, finite.
struct Row {
    const float* z;
    std::int64_t count;
    const float* block_max;
    float largest;

    std::int64_t blocks() const { return (count + kSoftmaxBlock - 1) / kSoftmaxBlock; }
    std::int64_t block_end(std::int64_t block) const {
        return std::min(count, (block + 1) * kSoftmaxBlock);
    }
};

std::int64_t first_in_rank(const Row& row) {
    std::int64_t block = 0;
    while (row.block_max[block] != row.largest)
        ++block;
    return std::find(row.z + block * kSoftmaxBlock, row.z + row.count, row.largest) - row.z;
}

// The first index whose running sum of weight(i) exceeds below(bits, total).
template <typename Weight> std::int64_t first_beyond(std::int64_t count, std::uint64_t total,
                                                     std::uint64_t bits, const Weight& weight) {
    const std::uint64_t target = numerics::below(bits, total);
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        sum += weight(i);
        if (sum > target)
            return i;
    }
    LR_CHECK(false); // target < total, the last sum
    return -1;
}

std::uint64_t min_p_weight(float min_p) {
    if (!(min_p > 0))
        return 0;
    return static_cast<std::uint64_t>(std::ceil(static_cast<double>(std::min(min_p, 1.0f)) *
                                                static_cast<double>(numerics::kWeightOne)));
}

std::uint64_t top_p_limit(float top_p, std::uint64_t total) {
    return static_cast<std::uint64_t>(
        std::ceil(std::max(0.0, static_cast<double>(top_p)) * static_cast<double>(total)));
}

// The candidates with z >= least, a block at a time, weightless.
std::span<Candidate> collect(const Row& row, float least) {
    std::int64_t room = 0;
    for (std::int64_t b = 0; b < row.blocks(); ++b)
        room += row.block_max[b] >= least ? kSoftmaxBlock : 0;
    auto* candidates = scratch<Candidate>(kCandidates, room);
    std::size_t found = 0;
    for (std::int64_t b = 0; b < row.blocks(); ++b)
        if (row.block_max[b] >= least)
            for (std::int64_t i = b * kSoftmaxBlock; i < row.block_end(b); ++i)
                if (row.z[i] >= least)
                    candidates[found++] = make_candidate(row.z[i], i, 0);
    return {candidates, found};
}

std::uint64_t sum_of(std::span<const Candidate> candidates) {
    std::uint64_t sum = 0;
    for (const Candidate& c : candidates)
        sum += c.weight;
    return sum;
}

// The k-th largest block has k values at least as large as its own largest.
std::span<Candidate> top_k(const Row& row, const Draw& draw) {
    float least = -INFINITY;
    if (draw.top_k <= row.blocks()) {
        auto* order = scratch<float>(kBlockOrder, row.blocks());
        std::copy_n(row.block_max, row.blocks(), order);
        std::nth_element(order, order + (draw.top_k - 1), order + row.blocks(), std::greater<>());
        least = order[draw.top_k - 1];
    }
    std::span<Candidate> found = collect(row, least);
    found = keep_top_k(found, draw.top_k, scratch<Candidate>(kRanking, std::ssize(found)));
    for (Candidate& c : found)
        c.weight =
            numerics::softmax_weight((row.z[candidate_id(c)] - row.largest) / draw.temperature);
    return found;
}

// Every id, or those that can be in the first `limit` of the weights. Were the ids below the cut in
// it, the weights above would add up to less than the limit; that is checked, since the cut itself
// is a rounded guess: all ids share what top-p leaves out, so one of more than an equal share is
// in.
std::span<Candidate> weighty(const Row& row, const Draw& draw, const std::uint64_t* weights,
                             std::uint64_t total, std::uint64_t limit) {
    const double share = static_cast<double>(total - limit) / static_cast<double>(row.count) /
                         static_cast<double>(numerics::kWeightOne);
    const double cut = row.largest + static_cast<double>(draw.temperature) * std::log(share);
    for (const float least : {static_cast<float>(std::max(cut, -1e38)), -INFINITY}) {
        const std::span<Candidate> found = collect(row, least);
        for (Candidate& c : found)
            c.weight = weights[candidate_id(c)];
        if (sum_of(found) >= limit)
            return found;
    }
    LR_CHECK(false); // the limit is at most the whole
    return {};
}

std::int64_t draw_from(std::span<Candidate> kept, const Draw& draw) {
    const std::uint64_t least = min_p_weight(draw.min_p);
    for (Candidate& c : kept)
        c.weight = c.weight >= least ? c.weight : 0;
    const std::int64_t at =
        first_beyond(std::ssize(kept), sum_of(kept), draw.bits,
                     [&](std::int64_t i) { return kept[static_cast<std::size_t>(i)].weight; });
    return candidate_id(kept[static_cast<std::size_t>(at)]);
}

std::int64_t draw_id(const Row& row, const Draw& draw) {
    const bool some = draw.top_k > 0 && draw.top_k < row.count, nucleus = draw.top_p < 1.0f;
    if (some) {
        std::span<Candidate> kept = top_k(row, draw);
        if (nucleus)
            kept = keep_top_p(kept, top_p_limit(draw.top_p, sum_of(kept)),
                              scratch<Candidate>(kRanking, std::ssize(kept)));
        return draw_from(kept, draw);
    }
    auto* weights = scratch<std::uint64_t>(kWeights, row.count);
    std::uint64_t total =
        softmax_kernels().weigh(row.z, row.count, row.largest, draw.temperature, weights);
    if (nucleus) {
        const std::uint64_t limit = top_p_limit(draw.top_p, total);
        const std::span<Candidate> found = weighty(row, draw, weights, total, limit);
        return draw_from(keep_top_p(found, limit, scratch<Candidate>(kRanking, std::ssize(found))),
                         draw);
    }
    if (const std::uint64_t least = min_p_weight(draw.min_p); least > 0) {
        total = 0;
        for (std::int64_t i = 0; i < row.count; ++i)
            total += weights[i] = weights[i] >= least ? weights[i] : 0;
    }
    return first_beyond(row.count, total, draw.bits, [&](std::int64_t i) { return weights[i]; });
}

Draw draw_of(const ops::SampleArgs& args, std::int64_t i) {
    const auto seed = static_cast<std::uint64_t>(args.seed.as<std::int64_t>()[i]);
    const auto stream = static_cast<std::uint64_t>(int_at(args.stream, i));
    const auto position = static_cast<std::uint64_t>(int_at(args.position, i));
    return {.temperature = float_at(args.temperature, i),
            .top_k = int_at(args.top_k, i),
            .top_p = float_at(args.top_p, i),
            .min_p = float_at(args.min_p, i),
            .bits = numerics::counter_bits(seed, stream, position)};
}

// -1 when a logit is not finite.
std::int64_t sample_row(const ops::SampleArgs& args, std::int64_t i) {
    const auto survey = softmax_kernels().survey;
    Row row{.z = args.logits.row_as<float>(i),
            .count = args.vocab_limit,
            .block_max = nullptr,
            .largest = 0};
    auto* block_max = scratch<float>(kBlockMax, row.blocks());
    if (!survey(row.z, row.count, block_max))
        return -1;
    if (const float* z = penalised_logits(args, i); z != row.z) {
        row.z = z;
        survey(z, row.count, block_max);
    }
    row.block_max = block_max;
    row.largest = *std::max_element(block_max, block_max + row.blocks());
    const Draw draw = draw_of(args, i);
    return draw.temperature > 0 ? draw_id(row, draw) : first_in_rank(row);
}

} // namespace

void sample(const ops::SampleArgs& args, ThreadPool& pool) {
    const std::int64_t live = live_rows(args.m_live, args.logits.rows());
    auto* token = args.token.as<std::int32_t>();
    auto* status = args.status.as<std::int32_t>();
    pool.parallel_for(args.token.rows(), 1, [&](std::int64_t i, std::int64_t) {
        token[i] = i < live ? static_cast<std::int32_t>(sample_row(args, i)) : -1;
        status[i] = i < live && token[i] < 0 ? 1 : 0;
    });
}

} // namespace lr::cpu
