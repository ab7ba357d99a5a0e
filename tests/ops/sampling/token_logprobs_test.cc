// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/sampling/sampling.h"
#include "ops/sampling/token_logprobs.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace lr::ops {
namespace {

struct Case {
    std::int64_t m, v;
    GuardedTensor logits, wanted, target, token, status, id, rank, logprob, top_id, top_logprob;
    GuardedTensor m_live{DType::kI32, {1}};
    TokenLogprobsArgs args;

    Case(std::int64_t rows, std::int64_t vocab)
        : m(rows), v(vocab), logits(DType::kF32, {m, v}, v + 5), wanted(DType::kI32, {m}),
          target(DType::kI32, {m}), token(DType::kI32, {m}), status(DType::kI32, {m}),
          id(DType::kI32, {m}), rank(DType::kI32, {m}), logprob(DType::kF64, {m}),
          top_id(DType::kI32, {m, kMaxTopLogprobs}),
          top_logprob(DType::kF64, {m, kMaxTopLogprobs}) {
        logits.fill("logits", 3.0);
        for (std::int64_t i = 0; i < m; ++i) {
            wanted.set(i, 0);
            target.set(i, -1);
            token.set(i, static_cast<double>(i % v));
            status.set(i, 0);
        }
        m_live.set(0, static_cast<double>(m));
        args = {.logits = logits,
                .wanted = wanted,
                .target = target,
                .token = token,
                .status = status,
                .m_live = m_live,
                .id = id,
                .rank = rank,
                .logprob = logprob,
                .top_id = top_id,
                .top_logprob = top_logprob,
                .vocab_limit = static_cast<std::int32_t>(v)};
    }
    void run(int threads = 2) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::token_logprobs(args, pool);
        for (GuardedTensor* out : {&id, &rank, &logprob, &top_id, &top_logprob})
            EXPECT_TRUE(out->guards_intact());
    }
    void expect_nothing(std::int64_t row) {
        EXPECT_EQ(id.at(row), -1);
        EXPECT_EQ(rank.at(row), 0);
        EXPECT_EQ(logprob.at(row), 0);
        for (std::int64_t i = 0; i < kMaxTopLogprobs; ++i) {
            EXPECT_EQ(top_id.at(row * kMaxTopLogprobs + i), -1);
            EXPECT_EQ(top_logprob.at(row * kMaxTopLogprobs + i), 0);
        }
    }
};

// Sorted, in long double, one after the other.
TEST(TokenLogprobs, EqualALongDoubleSoftmax) {
    const std::int64_t rows = 12, vocab = 777;
    Case c(rows, vocab);
    for (std::int64_t i = rows / 2 * vocab; i < rows * vocab; ++i)
        c.logits.set(i, std::round(c.logits.at(i))); // ties
    for (std::int64_t r = 0; r < rows; ++r) {
        c.wanted.set(r, static_cast<double>(r % 2 == 0 ? kMaxTopLogprobs : r));
        if (r % 3 == 0)
            c.target.set(r, static_cast<double>(r * 31));
        c.token.set(r, static_cast<double>(700 - r));
    }
    c.run();
    for (std::int64_t r = 0; r < rows; ++r) {
        const auto logit = [&](std::size_t j) {
            return c.logits.at(r * vocab + static_cast<std::int64_t>(j));
        };
        std::vector<std::size_t> order(static_cast<std::size_t>(vocab));
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return logit(a) > logit(b); });
        long double sum = 0;
        for (std::size_t j : order)
            sum += std::exp(static_cast<long double>(logit(j)));
        const auto logprob = [&](std::size_t j) {
            return static_cast<double>(logit(j) - std::log(sum));
        };
        const auto id = static_cast<std::size_t>(r % 3 == 0 ? r * 31 : 700 - r);
        EXPECT_EQ(c.id.at(r), static_cast<double>(id));
        EXPECT_NEAR(c.logprob.at(r), logprob(id), 1e-12);
        EXPECT_EQ(c.rank.at(r), 1 + static_cast<double>(std::find(order.begin(), order.end(), id) -
                                                        order.begin()));
        const auto wanted = static_cast<std::int64_t>(c.wanted.at(r));
        for (std::int64_t i = 0; i < kMaxTopLogprobs; ++i) {
            const auto expected = order[static_cast<std::size_t>(i)];
            const std::int64_t at = r * kMaxTopLogprobs + i;
            EXPECT_EQ(c.top_id.at(at), i < wanted ? static_cast<double>(expected) : -1);
            EXPECT_NEAR(c.top_logprob.at(at), i < wanted ? logprob(expected) : 0, 1e-12);
        }
    }
}

TEST(TokenLogprobs, OfAllEqualLogitsIsMinusLogOfTheVocabulary) {
    const std::int64_t vocab = 248'320;
    Case c(1, vocab);
    c.logits.set_all(std::vector<double>(static_cast<std::size_t>(vocab), 3e38));
    c.token.set(0, 1234);
    c.wanted.set(0, 3);
    c.run();
    EXPECT_NEAR(c.logprob.at(0), -std::log(248320.0), 1e-11);
    EXPECT_EQ(c.rank.at(0), 1235);
    for (std::int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(c.top_id.at(i), i < 3 ? static_cast<double>(i) : -1);
}

TEST(TokenLogprobs, SumToOneOverTheIdsThatCanBeDrawn) {
    Case c(10, 14);
    c.args.vocab_limit = 10;
    double sum = 0;
    for (std::int64_t r = 0; r < 10; ++r) {
        for (std::int64_t j = 0; j < 14; ++j)
            c.logits.set(r * 14 + j, j < 10 ? static_cast<double>(j * j) / 10 : std::nan(""));
        c.target.set(r, static_cast<double>(r));
        c.wanted.set(r, kMaxTopLogprobs);
    }
    c.run();
    for (std::int64_t r = 0; r < 10; ++r)
        sum += std::exp(c.logprob.at(r));
    EXPECT_NEAR(sum, 1, 1e-14);
    for (std::int64_t i = 0; i < kMaxTopLogprobs; ++i)
        EXPECT_EQ(c.top_id.at(i), i < 10 ? 9 - static_cast<double>(i) : -1);
}

TEST(TokenLogprobs, ReadsNothingWhereNothingIsWanted) {
    Case c(5, 9);
    c.wanted.set(1, -1);
    c.status.set(2, 1);
    c.token.set(2, -1);
    c.m_live.set(0, 3);
    c.logits.poison(1, 4);
    c.wanted.poison(4, 1);
    c.wanted.set(3, 5);
    c.run();
    EXPECT_EQ(c.rank.at(0) >= 1, true);
    for (std::int64_t r = 1; r < 5; ++r)
        c.expect_nothing(r);
}

TEST(TokenLogprobs, DoNotDependOnMatesOrThreads) {
    Case all(6, 300);
    for (std::int64_t r = 0; r < 6; ++r)
        all.wanted.set(r, static_cast<double>(r));
    all.run(1);
    const auto once = all.logprob.all_bytes(), top = all.top_logprob.all_bytes();
    all.run(3);
    EXPECT_EQ(all.logprob.all_bytes(), once);
    EXPECT_EQ(all.top_logprob.all_bytes(), top);
    Case one(1, 300);
    for (std::int64_t j = 0; j < 300; ++j)
        one.logits.set(j, all.logits.at(4 * 300 + j));
    one.token.set(0, 4);
    one.wanted.set(0, 4);
    one.run();
    EXPECT_EQ(one.logprob.at(0), all.logprob.at(4));
    EXPECT_EQ(one.top_logprob.row_bits(0), all.top_logprob.row_bits(4));
}

TEST(TokenLogprobs, RefuseWrongArguments) {
    Case c(2, 5);
    TokenLogprobsArgs args = c.args;
    args.vocab_limit = 6;
    EXPECT_EQ(check(args).message(),
              "token_logprobs: vocab_limit: expected a number in [1, V=5], got 6");
    args = c.args;
    args.logprob.dtype = DType::kF32;
    EXPECT_EQ(check(args).message(), "token_logprobs: logprob: expected dtype f64, got f32");
    args = c.args;
    args.top_id.shape[1] = 19;
    EXPECT_EQ(check(args).message(), "token_logprobs: top_id dim 1: expected 20, got 19");
}

} // namespace
} // namespace lr::ops
