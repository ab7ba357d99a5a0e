// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "cpu/rows.h"

#include <algorithm>
#include <cmath>

namespace lr::cpu {
namespace {

// Whether a ranks before b: larger first, a NaN behind every number.
bool ranks_before(float a, float b) {
    return a > b || (std::isnan(b) && !std::isnan(a));
}

// ids[0..k) = the k largest, best first; of equal logits the lower index comes first, since a later
// one must rank strictly before it. values = their logits. Insertion into a sorted list.
void choose(const float* logits, std::int64_t experts, std::int64_t k, std::int32_t* ids,
            float* values) {
    std::int64_t chosen = 0;
    for (std::int64_t e = 0; e < experts; ++e) {
        std::int64_t slot = chosen;
        while (slot > 0 && ranks_before(logits[e], values[slot - 1]))
            --slot;
        if (slot == k)
            continue;
        chosen = std::min(chosen + 1, k);
        for (std::int64_t i = chosen - 1; i > slot; --i) {
            ids[i] = ids[i - 1];
            values[i] = values[i - 1];
        }
        ids[slot] = static_cast<std::int32_t>(e);
        values[slot] = logits[e];
    }
}

// values = softmax over the k chosen, taken from the first, which is the largest unless the choice
// was forced.
void softmax(float* values, std::int64_t k) {
    const float first = values[0];
    float sum = 0;
    for (std::int64_t slot = 0; slot < k; ++slot) {
        values[slot] = std::exp(values[slot] - first);
        sum += values[slot];
    }
    for (std::int64_t slot = 0; slot < k; ++slot)
        values[slot] /= sum;
}

} // namespace

void routing_scores(const ops::RoutingScoresArgs& args, ThreadPool& pool) {
    const std::int64_t experts = args.logits.shape[1];
    const std::int64_t k = args.ids.shape[1];
    pool.parallel_for(args.ids.rows(), 8, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t live = live_rows(args.n_live, args.ids.rows());
        float* logits = thread_scratch(0, experts);
        float* values = thread_scratch(1, k);
        for (std::int64_t t = begin; t < end; ++t) {
            auto* ids = args.ids.row_as<std::int32_t>(t);
            if (t >= live) {
                for (std::int64_t slot = 0; slot < k; ++slot) {
                    ids[slot] = -1;
                    values[slot] = 0;
                }
            } else {
                load_floats(args.logits, t, 0, experts, logits);
                choose(logits, experts, k, ids, values);
                softmax(values, k);
            }
            store_floats(args.weights, t, 0, k, values);
        }
    });
}

void routing_weights(const ops::RoutingScoresArgs& args) {
    const std::int64_t experts = args.logits.shape[1];
    const std::int64_t k = args.ids.shape[1];
    float* logits = thread_scratch(0, experts);
    float* values = thread_scratch(1, k);
    for (std::int64_t t = 0; t < live_rows(args.n_live, args.ids.rows()); ++t) {
        load_floats(args.logits, t, 0, experts, logits);
        for (std::int64_t slot = 0; slot < k; ++slot) {
            const std::int32_t expert = args.ids.row_as<std::int32_t>(t)[slot];
            LR_CHECK(expert >= 0 && expert < experts);
            values[slot] = logits[expert];
        }
        softmax(values, k);
        store_floats(args.weights, t, 0, k, values);
    }
}

} // namespace lr::cpu
