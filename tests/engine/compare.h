// SPDX-License-Identifier: Apache-2.0
//
// tests/engine/compare.h: two engines, or two runs of one, held against each other.
#pragma once

#include "tests/engine/fixture.h"

#include <cstdio>

namespace lr::engine {

// Folder of a random model of the goldens; of "tiny", which is models/tiny; or of "moe-tp4", a
// random model that four ranks can divide.
inline std::string model_folder(const std::string& name) {
    if (name == "tiny")
        return source_path("models/tiny");
    if (name != "moe-tp4")
        return synthetic_model(name);
    model::Config config = random_config("moe-tied-r2");
    config.k_heads = 4;
    config.v_heads = 8;
    config.v_dim = 32;
    config.q_heads = 4;
    return write_model(name, config, random_storage(name));
}

// Every state of two sequences, which two engines may own, agrees to `bound` of its largest element
// (f32 states).
inline void expect_same_states(Engine& engine, SequenceId a, Engine& other, SequenceId b,
                               double bound) {
    for (std::int32_t layer = 0; layer < engine.config().layer_count(); ++layer)
        for (graph::StateKind kind : state_kinds(engine, layer))
            EXPECT_LE(difference_to_largest(state_floats(engine, a, layer, kind),
                                            state_floats(other, b, layer, kind)),
                      bound)
                << "layer " << layer;
}

// A row's bits are the same alone and among others, wherever it stands.
inline void expect_rows_independent(Engine& engine) {
    const std::int64_t vocab = engine.config().vocab_size;
    const auto mine = some_ids(70, vocab, 9);
    const SequenceId alone = open(engine);
    const auto prefilled = prefill(engine, alone, mine);
    const auto decoded = decode(engine, alone, 5);

    for (std::size_t place : {0u, 1u, 2u}) {
        std::vector<SequenceId> all = {open(engine), open(engine), open(engine)};
        StepInput input{.phase = graph::Phase::kPrefill, .copy_logits = true};
        for (std::size_t i = 0; i < all.size(); ++i)
            input.pieces.push_back(
                {.sequence = all[i],
                 .tokens = i == place ? mine : some_ids(20 + 30 * std::ssize(all), vocab, i)});
        const StepOutput packed = step(engine, std::move(input));
        EXPECT_EQ(packed.pieces[place].logits, prefilled) << "place " << place;

        StepInput next{.phase = graph::Phase::kDecode, .copy_logits = true};
        for (std::size_t i = 0; i < all.size(); ++i)
            next.pieces.push_back(
                {.sequence = all[i], .tokens = {i == place ? 5 : static_cast<int>(i)}});
        const StepOutput step_output = step(engine, std::move(next));
        EXPECT_EQ(step_output.pieces[place].logits, decoded) << "place " << place;
        for (SequenceId id : all)
            EXPECT_TRUE(engine.close_sequence(id).ok());
    }
}

// Two runs of the same tokens, row by row: KL of the distributions, and the likeliest token.
class Agreement {
  public:
    void add(const std::vector<float>& expected, const std::vector<float>& other_logits) {
        const double kl = divergence(expected, other_logits);
        sum_ += kl;
        worst_ = worse(worst_, kl);
        ++rows_;
        const auto best = std::max_element(expected.begin(), expected.end());
        const auto other =
            std::max_element(other_logits.begin(), other_logits.end()) - other_logits.begin();
        if (other == best - expected.begin())
            return;
        ++flips_;
        // By how much, in probability, the first run preferred its token to the other's.
        double sum = 0;
        for (float logit : expected)
            sum += std::exp(static_cast<double>(logit) - *best);
        const double second =
            std::exp(static_cast<double>(expected[static_cast<std::size_t>(other)]) - *best);
        widest_flip_ = std::max(widest_flip_, (1.0 - second) / sum);
    }
    double mean() const { return sum_ / rows_; }
    double worst() const { return worst_; }
    int rows() const { return rows_; }
    int flips() const { return flips_; }
    double widest_flip() const { return widest_flip_; }

  private:
    double sum_ = 0, worst_ = 0, widest_flip_ = 0;
    int rows_ = 0, flips_ = 0;
};

// Two bf16 runs of the same tokens, routed alike, and f32's with the same routing. All logits are
// [rows, vocab]. What is left between the two is roundings, and they are judged by what bf16 costs
// each of them against f32:
//   - both make about the same number of roundings, so neither costs more than twice the other
//   - errors that are independent add up in the mean of KL, which is half their variance; shared
//     ones cancel. So the mean between the two is no more than the sum of the two costs
//   - no row is off by more than five times the deviation of that sum: 25 times it in KL. (A row
//     made from wrong data is an unrelated distribution: KL of several.)
//   - a likeliest token changes where its lead is below the error. Logits have a deviation of 3; of
//     450 the gap between the two largest is 0.9 in the mean and as likely to be near 0 as near
//     its mean; KL of 1.5e-3 is an error of 0.08 between two logits: 3 rows in a hundred. Allowed
//     are ten.
class RoutedAlike {
  public:
    void add(const std::vector<float>& exact, const std::vector<float>& first,
             const std::vector<float>& second, std::int64_t vocab) {
        EXPECT_EQ(first.size(), exact.size());
        EXPECT_EQ(second.size(), exact.size());
        for (std::int64_t at = 0; at < std::ssize(exact); at += vocab) {
            const auto row = [&](const std::vector<float>& all) {
                return std::vector<float>(all.begin() + at, all.begin() + at + vocab);
            };
            between_.add(row(first), row(second));
            first_cost_.add(row(exact), row(first));
            second_cost_.add(row(exact), row(second));
        }
    }

    void expect_roundings_only(const std::string& what) const {
        std::printf("%s: KL mean %.1e, worst %.1e; against f32 mean %.1e and %.1e, worst %.1e and "
                    "%.1e; %d of %d rows have another likeliest token (widest lead %.1e)\n",
                    what.c_str(), between_.mean(), between_.worst(), first_cost_.mean(),
                    second_cost_.mean(), first_cost_.worst(), second_cost_.worst(),
                    between_.flips(), between_.rows(), between_.widest_flip());
        EXPECT_GT(between_.worst(), 0.0) << "nothing was rounded apart";
        EXPECT_LE(second_cost_.mean(), 2 * first_cost_.mean());
        EXPECT_LE(first_cost_.mean(), 2 * second_cost_.mean());
        EXPECT_LE(between_.mean(), first_cost_.mean() + second_cost_.mean());
        EXPECT_LE(between_.worst(), 25 * (first_cost_.mean() + second_cost_.mean()));
        EXPECT_LE(10 * between_.flips(), between_.rows());
    }

  private:
    Agreement between_, first_cost_, second_cost_;
};

} // namespace lr::engine
