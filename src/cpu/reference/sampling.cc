// SPDX-License-Identifier: Apache-2.0
//
// The draw and the log-probabilities, by sorting the whole row.
#include "cpu/reference/ops.h"
#include "numerics/counter_rng.h"
#include "numerics/softmax_weight.h"

#include <limits>
#include <numeric>

namespace lr::cpu::reference {
namespace {

float float_at(ConstView view, std::int64_t index) {
    return view.as<float>()[index];
}

// Ids of a row in rank: larger first, of equals the lower id.
std::vector<std::int32_t> ranked(const std::vector<float>& z) {
    std::vector<std::int32_t> order(z.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return z[static_cast<std::size_t>(a)] > z[static_cast<std::size_t>(b)];
    });
    return order;
}

std::vector<float> row_of(ConstView logits, std::int64_t row, std::int64_t count) {
    const float* first = logits.row_as<float>(row);
    return {first, first + count};
}

// Biases and penalties, one f32 operation after the other.
void adjust(const ops::SampleArgs& args, std::int64_t row, std::vector<float>& z) {
    const auto* range = args.bias_range.row_as<std::int32_t>(row);
    for (std::int32_t j = range[0]; j < range[1]; ++j)
        if (const std::int32_t id = int_at(args.bias_id, j); id >= 0 && id < args.vocab_limit)
            z[static_cast<std::size_t>(id)] += float_at(args.bias_value, j);
    const std::int32_t slot = int_at(args.count_slot, row);
    const float repetition = float_at(args.repetition, row);
    const float frequency = float_at(args.frequency, row), presence = float_at(args.presence, row);
    if (slot < 0 || (repetition == 1 && frequency == 0 && presence == 0))
        return;
    constexpr float kLargest = std::numeric_limits<float>::max();
    const auto* counts = args.counts.row_as<std::uint16_t>(slot);
    for (std::size_t i = 0; i < z.size(); ++i) {
        if (counts[i] == 0)
            continue;
        const int times = counts[i] & ops::kMaxTokenCount;
        if (repetition != 1)
            z[i] = z[i] > 0 ? z[i] / repetition : z[i] * repetition;
        z[i] -= frequency * static_cast<float>(times);
        z[i] -= times > 0 ? presence : 0.0f;
        z[i] = std::clamp(z[i], -kLargest, kLargest);
    }
}

using Weights = std::vector<std::uint64_t>;

std::uint64_t total(const Weights& weights) {
    return std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
}

// Takes the weight of every id that a filter leaves out.
void filter(const ops::SampleArgs& args, std::int64_t row, const std::vector<std::int32_t>& order,
            Weights& weights) {
    const std::int32_t top_k = int_at(args.top_k, row);
    for (std::size_t r = 0; r < order.size(); ++r)
        if (top_k > 0 && r >= static_cast<std::size_t>(top_k))
            weights[static_cast<std::size_t>(order[r])] = 0;
    if (const float top_p = float_at(args.top_p, row); top_p < 1) {
        const auto limit = static_cast<std::uint64_t>(
            std::ceil(std::max(0.0, double{top_p}) * static_cast<double>(total(weights))));
        std::uint64_t before = 0;
        for (std::size_t r = 0; r < order.size(); ++r) {
            std::uint64_t& w = weights[static_cast<std::size_t>(order[r])];
            const std::uint64_t own = w;
            if (r > 0 && before >= limit)
                w = 0;
            before += own;
        }
    }
    if (const float min_p = float_at(args.min_p, row); min_p > 0) {
        const auto least = static_cast<std::uint64_t>(
            std::ceil(std::min(1.0, double{min_p}) * static_cast<double>(numerics::kWeightOne)));
        for (std::uint64_t& w : weights)
            w = w >= least ? w : 0;
    }
}

std::int32_t draw(const ops::SampleArgs& args, std::int64_t row) {
    std::vector<float> z = row_of(args.logits, row, args.vocab_limit);
    if (!std::all_of(z.begin(), z.end(), [](float x) { return std::isfinite(x); }))
        return -1;
    adjust(args, row, z);
    const std::vector<std::int32_t> order = ranked(z);
    const float temperature = float_at(args.temperature, row);
    if (!(temperature > 0))
        return order.front();
    Weights weights;
    const float largest = z[static_cast<std::size_t>(order.front())];
    for (float x : z)
        weights.push_back(numerics::softmax_weight((x - largest) / temperature));
    filter(args, row, order, weights);
    const std::uint64_t bits =
        numerics::counter_bits(static_cast<std::uint64_t>(args.seed.as<std::int64_t>()[row]),
                               static_cast<std::uint64_t>(int_at(args.stream, row)),
                               static_cast<std::uint64_t>(int_at(args.position, row)));
    const std::uint64_t point = numerics::below(bits, total(weights));
    std::uint64_t running = 0;
    std::int32_t id = 0;
    for (; (running += weights[static_cast<std::size_t>(id)]) <= point; ++id) {
    }
    return id;
}

// (l - max) - log(sum exp(l_j - max)): the sum's terms and steps, the logarithm and two
// subtractions, all f64.
Counted logprob_of(const std::vector<float>& logits, std::size_t id, double largest, double sum) {
    const double value = (logits[id] - largest) - std::log(sum);
    const double steps = static_cast<double>(logits.size()) / 16 + 20;
    return {value, (steps + 4 * (std::abs(value) + std::log(sum) + 1)) * 0x1p-50};
}

void score(const ops::TokenLogprobsArgs& args, std::int64_t row, Out& logprob, Out& top_logprob) {
    const std::vector<float> logits = row_of(args.logits, row, args.vocab_limit);
    const std::vector<std::int32_t> order = ranked(logits);
    const double largest = logits[static_cast<std::size_t>(order.front())];
    double sum = 0;
    for (float l : logits)
        sum += std::exp(l - largest);
    const std::int32_t target = int_at(args.target, row);
    const std::int32_t id = target >= 0 ? target : int_at(args.token, row);
    args.id.as<std::int32_t>()[row] = id;
    args.rank.as<std::int32_t>()[row] =
        1 + static_cast<std::int32_t>(std::find(order.begin(), order.end(), id) - order.begin());
    logprob.set(row, 0, logprob_of(logits, static_cast<std::size_t>(id), largest, sum));
    const auto wanted =
        std::min<std::size_t>(static_cast<std::size_t>(int_at(args.wanted, row)), order.size());
    for (std::size_t i = 0; i < wanted; ++i) {
        args.top_id.row_as<std::int32_t>(row)[i] = order[i];
        top_logprob.set(row, static_cast<std::int64_t>(i),
                        logprob_of(logits, static_cast<std::size_t>(order[i]), largest, sum));
    }
}

} // namespace

void count_tokens(const ops::CountTokensArgs& args, Errors&, ThreadPool&) {
    for (std::int64_t i = 0; i < live_rows(args.n_live, args.ids.rows()); ++i) {
        const std::int32_t sequence = int_at(args.sequence, i);
        const std::int32_t slot = sequence < 0 ? -1 : int_at(args.slot, sequence);
        if (slot < 0)
            continue;
        std::uint16_t& entry = args.counts.row_as<std::uint16_t>(slot)[int_at(args.ids, i)];
        if (int_at(args.generated, i) == 0)
            entry |= ops::kPromptToken;
        else if ((entry & ops::kMaxTokenCount) < ops::kMaxTokenCount)
            ++entry;
    }
}

void sample(const ops::SampleArgs& args, Errors&, ThreadPool& pool) {
    const std::int64_t live = live_rows(args.m_live, args.token.rows());
    pool.parallel_for(args.token.rows(), 1, [&](std::int64_t row, std::int64_t) {
        const std::int32_t token = row < live ? draw(args, row) : -1;
        args.token.as<std::int32_t>()[row] = token;
        args.status.as<std::int32_t>()[row] = row < live && token < 0 ? 1 : 0;
    });
}

void token_logprobs(const ops::TokenLogprobsArgs& args, Errors& errors, ThreadPool&) {
    Out logprob(args.logprob, errors), top_logprob(args.top_logprob, errors);
    const std::int64_t live = live_rows(args.m_live, args.logits.rows());
    for (std::int64_t row = 0; row < args.logits.rows(); ++row) {
        args.id.as<std::int32_t>()[row] = -1;
        args.rank.as<std::int32_t>()[row] = 0;
        logprob.zero_row(row);
        std::fill_n(args.top_id.row_as<std::int32_t>(row), ops::kMaxTopLogprobs, -1);
        top_logprob.zero_row(row);
        if (row < live && int_at(args.wanted, row) >= 0 && int_at(args.status, row) == 0)
            score(args, row, logprob, top_logprob);
    }
}

} // namespace lr::cpu::reference
