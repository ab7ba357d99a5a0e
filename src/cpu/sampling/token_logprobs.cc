// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/rows.h"
#include "cpu/sampling/sampling.h"
#include "cpu/sampling/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lr::cpu {
namespace {

double log_sum_exp(const float* logits, std::int64_t count, double largest) {
    std::array<double, kSoftmaxLanes> lanes{};
    softmax_kernels().sum_exp(logits, count, largest, lanes.data());
    for (std::size_t half = lanes.size() / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i)
            lanes[i] += lanes[i + half];
    return std::log(lanes[0]);
}

std::int32_t rank_of(const float* logits, std::int64_t count, std::int64_t id) {
    std::int32_t rank = 1;
    for (std::int64_t i = 0; i < id; ++i)
        rank += logits[i] >= logits[id] ? 1 : 0;
    for (std::int64_t i = id + 1; i < count; ++i)
        rank += logits[i] > logits[id] ? 1 : 0;
    return rank;
}

// The ids of the `wanted` largest, in rank: ids come in ascending order, so one that equals an
// earlier one stays behind it.
void likeliest(const float* logits, std::int64_t count, std::int64_t wanted, std::int32_t* ids) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        if (found == wanted && !(found > 0 && logits[i] > logits[ids[found - 1]]))
            continue;
        std::int64_t place = found < wanted ? found++ : found - 1;
        for (; place > 0 && logits[i] > logits[ids[place - 1]]; --place)
            ids[place] = ids[place - 1];
        ids[place] = static_cast<std::int32_t>(i);
    }
}

void one_row(const ops::TokenLogprobsArgs& args, std::int64_t row) {
    const float* logits = args.logits.row_as<float>(row);
    const std::int64_t count = args.vocab_limit;
    const std::int32_t target = int_at(args.target, row);
    const std::int64_t id = target >= 0 ? target : int_at(args.token, row);
    const double largest = *std::max_element(logits, logits + count);
    const double log_sum = log_sum_exp(logits, count, largest);
    const auto logprob = [&](std::int64_t i) {
        return (static_cast<double>(logits[i]) - largest) - log_sum;
    };
    args.id.as<std::int32_t>()[row] = static_cast<std::int32_t>(id);
    args.rank.as<std::int32_t>()[row] = rank_of(logits, count, id);
    args.logprob.as<double>()[row] = logprob(id);
    const std::int64_t wanted = std::min<std::int64_t>(int_at(args.wanted, row), count);
    auto* ids = args.top_id.row_as<std::int32_t>(row);
    likeliest(logits, count, wanted, ids);
    for (std::int64_t i = 0; i < wanted; ++i)
        args.top_logprob.row_as<double>(row)[i] = logprob(ids[i]);
}

} // namespace

void token_logprobs(const ops::TokenLogprobsArgs& args, ThreadPool& pool) {
    const std::int64_t rows = args.logits.rows(), live = live_rows(args.m_live, rows);
    pool.parallel_for(rows, 1, [&](std::int64_t row, std::int64_t) {
        args.id.as<std::int32_t>()[row] = -1;
        args.rank.as<std::int32_t>()[row] = 0;
        args.logprob.as<double>()[row] = 0;
        std::fill_n(args.top_id.row_as<std::int32_t>(row), ops::kMaxTopLogprobs, -1);
        std::fill_n(args.top_logprob.row_as<double>(row), ops::kMaxTopLogprobs, 0.0);
        if (row < live && int_at(args.wanted, row) >= 0 && int_at(args.status, row) == 0)
            one_row(args, row);
    });
}

} // namespace lr::cpu
