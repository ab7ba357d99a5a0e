// SPDX-License-Identifier: Apache-2.0
//
// tests/ops/sampling/sample_case.h: the arguments of sample with every step turned off, and a plain
// implementation of its contract to hold it against: sorted, in double, a row at a time.
#pragma once

#include "core/thread_pool.h"
#include "cpu/sampling/sampling.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace lr::ops {

struct SampleCase {
    static constexpr std::int64_t kSlots = 3;

    std::int64_t m, v;
    GuardedTensor logits, temperature, top_k, top_p, min_p, repetition, frequency, presence,
        count_slot, counts, bias_range, bias_id, bias_value, seed, stream, position, token, status;
    GuardedTensor m_live{DType::kI32, {1}};
    SampleArgs args;

    explicit SampleCase(std::int64_t rows, std::int64_t vocab, std::int64_t biases = 4)
        : m(rows), v(vocab), logits(DType::kF32, {m, v}, v + 3), temperature(DType::kF32, {m}),
          top_k(DType::kI32, {m}), top_p(DType::kF32, {m}), min_p(DType::kF32, {m}),
          repetition(DType::kF32, {m}), frequency(DType::kF32, {m}), presence(DType::kF32, {m}),
          count_slot(DType::kI32, {m}), counts(DType::kU16, {kSlots, v}),
          bias_range(DType::kI32, {m, 2}), bias_id(DType::kI32, {biases}),
          bias_value(DType::kF32, {biases}), seed(DType::kI64, {m}), stream(DType::kI32, {m}),
          position(DType::kI32, {m}), token(DType::kI32, {m}), status(DType::kI32, {m}) {
        logits.fill("logits", 2.0);
        for (GuardedTensor* off : {&temperature, &top_k, &min_p, &frequency, &presence, &stream})
            set_rows(*off, 0);
        for (GuardedTensor* one : {&top_p, &repetition})
            set_rows(*one, 1);
        set_rows(count_slot, -1);
        set_rows(seed, 11);
        for (std::int64_t i = 0; i < m; ++i) {
            position.set(i, static_cast<double>(i));
            set_bias_range(i, 0, 0);
        }
        counts.set_all(std::vector<double>(static_cast<std::size_t>(kSlots * v), 0));
        m_live.set(0, static_cast<double>(m));
        args = {.logits = logits,
                .temperature = temperature,
                .top_k = top_k,
                .top_p = top_p,
                .min_p = min_p,
                .repetition = repetition,
                .frequency = frequency,
                .presence = presence,
                .count_slot = count_slot,
                .counts = counts,
                .bias_range = bias_range,
                .bias_id = bias_id,
                .bias_value = bias_value,
                .seed = seed,
                .stream = stream,
                .position = position,
                .m_live = m_live,
                .token = token,
                .status = status,
                .vocab_limit = static_cast<std::int32_t>(v)};
    }

    void set_rows(GuardedTensor& tensor, double value) {
        for (std::int64_t i = 0; i < m; ++i)
            tensor.set(i, value);
    }
    void set_bias_range(std::int64_t row, std::int64_t first, std::int64_t end) {
        bias_range.set(2 * row, static_cast<double>(first));
        bias_range.set(2 * row + 1, static_cast<double>(end));
    }
    void set_all_logits(double value) {
        for (std::int64_t i = 0; i < m * v; ++i)
            logits.set(i, value);
    }
    // Every row the same.
    void set_logit_rows(const std::vector<double>& row) {
        for (std::int64_t i = 0; i < m * v; ++i)
            logits.set(i, row[static_cast<std::size_t>(i % v)]);
    }

    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::sample(args, pool);
        EXPECT_TRUE(token.guards_intact());
        EXPECT_TRUE(status.guards_intact());
    }

    std::int64_t id(std::int64_t row) { return static_cast<std::int64_t>(token.at(row)); }
    std::uint64_t bits(std::int64_t row) {
        return numerics::counter_bits(static_cast<std::uint64_t>(seed.at(row)),
                                      static_cast<std::uint64_t>(stream.at(row)),
                                      static_cast<std::uint64_t>(position.at(row)));
    }
};

// The distribution of one row, and how near its choices are to having gone the other way.
struct PlainDistribution {
    std::vector<double> probability; // by id
    double margin = 1;               // of the top-p and min-p cuts
};

inline std::vector<std::size_t> ranking(const std::vector<double>& z) {
    std::vector<std::size_t> order(z.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return z[a] > z[b]; });
    return order;
}

// Softmax over top-k, of it top-p, of it min-p; `z` with bias and penalties, temperature > 0.
inline PlainDistribution plain_distribution(const std::vector<double>& z, double temperature,
                                            double top_k, double top_p, double min_p) {
    const std::vector<std::size_t> order = ranking(z);
    std::size_t kept = z.size();
    if (top_k > 0)
        kept = std::min(kept, static_cast<std::size_t>(top_k));
    std::vector<double> weight(kept);
    for (std::size_t r = 0; r < kept; ++r)
        weight[r] = std::exp((z[order[r]] - z[order[0]]) / temperature);
    PlainDistribution result{.probability = std::vector<double>(z.size(), 0.0)};
    if (top_p < 1) {
        const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
        double before = 0;
        std::size_t stay = 0;
        for (; stay < kept && (stay == 0 || before < top_p * total); ++stay) {
            result.margin = std::min(result.margin, std::abs(before / total - top_p));
            before += weight[stay];
        }
        result.margin = std::min(result.margin, std::abs(before / total - top_p));
        kept = stay;
    }
    double total = 0;
    for (std::size_t r = 0; r < kept; ++r) {
        result.margin =
            std::min(result.margin, min_p > 0 && r > 0 ? std::abs(weight[r] - min_p) : 1);
        weight[r] = weight[r] >= min_p ? weight[r] : 0;
        total += weight[r];
    }
    for (std::size_t r = 0; r < kept; ++r)
        result.probability[order[r]] = weight[r] / total;
    return result;
}

// The id whose interval of the running distribution holds the draw; -1 when it is too near an edge
// to tell in double what integers decide.
inline std::int64_t plain_draw(const PlainDistribution& distribution, std::uint64_t bits) {
    constexpr double kMargin = 1e-6;
    if (distribution.margin < kMargin)
        return -1;
    const double draw = static_cast<double>(bits) * 0x1p-64;
    double sum = 0;
    for (std::size_t i = 0; i < distribution.probability.size(); ++i) {
        sum += distribution.probability[i];
        if (distribution.probability[i] > 0 && std::abs(sum - draw) < kMargin)
            return -1;
        if (sum > draw)
            return static_cast<std::int64_t>(i);
    }
    return -1;
}

} // namespace lr::ops
