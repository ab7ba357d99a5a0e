// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/rows.h"
#include "cpu/sampling/sampling.h"
#include "numerics/counter_rng.h"

#include <cmath>

namespace lr::cpu {
namespace {

bool all_finite(const float* logits, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        if (!std::isfinite(logits[i]))
            return false;
    return true;
}

std::int64_t lowest_largest(const float* logits, std::int64_t count) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < count; ++i)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

// The first id whose running sum exceeds `draw` of the whole. The difference to the largest logit
// is taken before the division, so that no temperature makes an infinity out of finite logits.
std::int64_t draw_token(const float* logits, std::int64_t count, float largest, float temperature,
                        float draw) {
    float* weight = thread_scratch(0, count);
    double total = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        weight[i] = std::exp((logits[i] - largest) / temperature);
        total += static_cast<double>(weight[i]);
    }
    const double target = static_cast<double>(draw) * total;
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        sum += static_cast<double>(weight[i]);
        if (sum > target)
            return i;
    }
    LR_CHECK(draw < 1.0f); // target < total, and the last sum is total
    return count - 1;
}

} // namespace

void sample(const ops::SampleArgs& args, ThreadPool& pool) {
    const std::int64_t live = live_rows(args.m_live, args.logits.rows());
    auto* token = args.token.as<std::int32_t>();
    auto* status = args.status.as<std::int32_t>();
    pool.parallel_for(live, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const float* logits = args.logits.row_as<float>(i);
            const bool finite = all_finite(logits, args.vocab_limit);
            status[i] = finite ? 0 : 1;
            token[i] = -1;
            if (!finite)
                continue;
            std::int64_t chosen = lowest_largest(logits, args.vocab_limit);
            const float temperature = args.temperature.as<float>()[i];
            if (temperature > 0) {
                const auto seed = static_cast<std::uint64_t>(args.seed.as<std::int64_t>()[i]);
                const auto position = static_cast<std::uint64_t>(int_at(args.position, i));
                const float draw = numerics::counter_uniform(seed, 0, position);
                chosen = draw_token(logits, args.vocab_limit, logits[chosen], temperature, draw);
            }
            token[i] = static_cast<std::int32_t>(chosen);
        }
    });
    for (std::int64_t i = live; i < args.token.rows(); ++i) {
        token[i] = -1;
        status[i] = 0;
    }
}

} // namespace lr::cpu
