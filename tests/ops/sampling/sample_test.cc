// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/sampling/sampling.h"
#include "ops/sampling/sample.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace lr::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
    GuardedTensor logits, temperature, seed, position, token, status;
    GuardedTensor m_live{DType::kI32, {1}};
    SampleArgs args;

    Case(std::int64_t m, std::int64_t v)
        : logits(DType::kF32, {m, v}, v + 3), temperature(DType::kF32, {m}), seed(DType::kI64, {m}),
          position(DType::kI32, {m}), token(DType::kI32, {m}), status(DType::kI32, {m}) {
        logits.fill("logits", 2.0);
        for (std::int64_t i = 0; i < m; ++i) {
            temperature.set(i, 0.0);
            seed.set(i, 11.0);
            position.set(i, static_cast<double>(i));
        }
        m_live.set(0, static_cast<double>(m));
        args = {.logits = logits,
                .temperature = temperature,
                .seed = seed,
                .position = position,
                .m_live = m_live,
                .token = token,
                .status = status,
                .vocab_limit = static_cast<std::int32_t>(v)};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::sample(args, pool);
        EXPECT_TRUE(token.guards_intact());
        EXPECT_TRUE(status.guards_intact());
    }
};

TEST(Sample, TakesTheLargestLogitWhenGreedy) {
    Case c(1, 6);
    c.logits.set_all({0, -1, 5, 4.999, 2, -7});
    c.run();
    EXPECT_EQ(c.token.at(0), 2);
    EXPECT_EQ(c.status.at(0), 0);
}

TEST(Sample, LetsTheLowestIdWinTies) {
    Case c(3, 5);
    c.logits.set_all({1, 3, 3, 3, 0, -2, -2, -2, -2, -2, -1, -1, -0.0, 0.0, -1});
    c.run();
    EXPECT_EQ(c.token.at(0), 1);
    EXPECT_EQ(c.token.at(1), 0);
    EXPECT_EQ(c.token.at(2), 2); // -0 equals 0
}

TEST(Sample, CountsANegativeOrNaNTemperatureAsGreedy) {
    Case c(2, 4);
    c.logits.set_all({0, 0, 9, 0, 0, 8, 0, 0});
    c.temperature.set(0, -1.0);
    c.temperature.set(1, std::nan(""));
    c.run();
    EXPECT_EQ(c.token.at(0), 2);
    EXPECT_EQ(c.token.at(1), 1);
}

TEST(Sample, NeverReturnsAMaskedId) {
    Case c(2, 6);
    c.logits.set_all({0, 1, 0, 0, 99, std::nan(""), 0, 1, 0, 0, kInfinity, 99});
    c.args.vocab_limit = 4;
    c.temperature.set(1, 100.0);
    c.run();
    EXPECT_EQ(c.token.at(0), 1);
    EXPECT_EQ(c.status.at(0), 0); // what lies beyond the limit is not looked at
    EXPECT_LT(c.token.at(1), 4);
    EXPECT_EQ(c.status.at(1), 0);
}

TEST(Sample, FailsARowWithNonFiniteLogitsAlone) {
    Case c(5, 4);
    c.logits.set(0, std::nan(""));
    c.logits.set(1 * 4 + 3, double{kInfinity});
    c.logits.set(2 * 4 + 1, -double{kInfinity});
    c.temperature.set(1, 1.0);
    c.run();
    for (std::int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(c.status.at(i), i < 3 ? 1 : 0) << i;
        EXPECT_EQ(c.token.at(i) == -1, i < 3) << i;
    }
}

TEST(Sample, GivesDeadRowsMinusOneWithoutReadingThem) {
    Case c(4, 8);
    c.m_live.set(0, 1);
    c.logits.poison(1, 3);
    c.temperature.poison(1, 3);
    c.run(2);
    EXPECT_GE(c.token.at(0), 0);
    for (std::int64_t i = 1; i < 4; ++i) {
        EXPECT_EQ(c.token.at(i), -1);
        EXPECT_EQ(c.status.at(i), 0);
    }
}

// The token whose interval of the running distribution, in double, holds the documented draw. The
// draw lands within f32 error of an interval's edge too rarely to matter: such cases are skipped.
TEST(Sample, DrawsByInverseDistributionFunction) {
    const std::int64_t rows = 300, vocab = 50;
    Case c(rows, vocab);
    for (std::int64_t i = 0; i < rows; ++i)
        c.temperature.set(i, 0.5 + 0.01 * static_cast<double>(i));
    c.run();
    int compared = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const double draw = numerics::counter_uniform(11, 0, static_cast<std::uint64_t>(i));
        std::array<double, 50> sums{};
        double total = 0;
        for (std::int64_t j = 0; j < vocab; ++j) {
            total += std::exp(c.logits.at(i * vocab + j) / c.temperature.at(i));
            sums[static_cast<std::size_t>(j)] = total;
        }
        std::size_t expected = 0;
        double margin = 1;
        for (std::size_t j = 0; j < sums.size(); ++j) {
            margin = std::min(margin, std::abs(sums[j] / total - draw));
            expected += sums[j] / total <= draw ? 1 : 0;
        }
        if (margin < 1e-5)
            continue;
        ++compared;
        EXPECT_EQ(c.token.at(i), static_cast<double>(expected)) << i;
    }
    EXPECT_GT(compared, 290);
}

// 4096 equal logits: token k owns the draws in [k/4096, (k+1)/4096), its lower edge included.
TEST(Sample, GivesTheLowerEdgeOfAnIntervalToItsToken) {
    std::uint64_t position = 0;
    const auto steps = [&position] { return numerics::counter_uniform(11, 0, position) * 4096; };
    while (steps() != std::floor(steps()) || steps() < 1)
        ++position;
    Case c(1, 4096);
    c.logits.set_all(std::vector<double>(4096, 0.5));
    c.temperature.set(0, 0.7);
    c.position.set(0, static_cast<double>(position));
    c.run();
    EXPECT_EQ(c.token.at(0), steps());
}

TEST(Sample, FollowsTheDistributionOverManyPositions) {
    const std::int64_t draws = 4000;
    Case c(draws, 3);
    const std::array<double, 3> probability = {0.2, 0.5, 0.3};
    for (std::int64_t i = 0; i < draws; ++i) {
        c.temperature.set(i, 2.0);
        for (std::int64_t j = 0; j < 3; ++j)
            c.logits.set(i * 3 + j, 2.0 * std::log(probability[static_cast<std::size_t>(j)]));
    }
    c.run(2);
    std::array<double, 3> seen{};
    for (std::int64_t i = 0; i < draws; ++i)
        seen[static_cast<std::size_t>(c.token.at(i))] += 1.0 / static_cast<double>(draws);
    for (std::size_t j = 0; j < 3; ++j) // four standard deviations
        EXPECT_NEAR(seen[j], probability[j], 4 * std::sqrt(0.25 / static_cast<double>(draws)));
}

TEST(Sample, DependsOnSeedAndPositionNotOnTheRow) {
    Case c(6, 40);
    for (std::int64_t i = 0; i < 6; ++i) {
        c.temperature.set(i, 3.0);
        c.position.set(i, 17.0);
        for (std::int64_t j = 0; j < 40; ++j)
            c.logits.set(i * 40 + j, 0.0);
    }
    c.position.set(4, 18.0);
    c.seed.set(5, 12.0);
    c.run();
    for (std::int64_t i = 1; i < 4; ++i)
        EXPECT_EQ(c.token.at(i), c.token.at(0));
    EXPECT_NE(c.token.at(4), c.token.at(0));
    EXPECT_NE(c.token.at(5), c.token.at(0));
}

TEST(Sample, SurvivesExtremeTemperatures) {
    Case c(2, 3);
    c.logits.set_all({1e30, -3e38, 9.9e29, 1e30, -3e38, 9.9e29});
    c.temperature.set(0, 1e-38);
    c.temperature.set(1, double{kInfinity}); // all ids alike
    c.run();
    EXPECT_EQ(c.token.at(0), 0);
    EXPECT_EQ(c.status.at(1), 0);
    EXPECT_GE(c.token.at(1), 0);
}

TEST(Sample, RefusesWrongArguments) {
    Case c(2, 5);
    SampleArgs args = c.args;
    args.vocab_limit = 6;
    EXPECT_EQ(check(args).message(), "sample: vocab_limit: expected a number in [1, V=5], got 6");
    args.vocab_limit = 0;
    EXPECT_EQ(check(args).message(), "sample: vocab_limit: expected a number in [1, V=5], got 0");
    args = c.args;
    args.logits.dtype = DType::kBF16;
    EXPECT_EQ(check(args).message(), "sample: logits: expected dtype f32, got bf16");
    args = c.args;
    args.seed.dtype = DType::kI32;
    EXPECT_EQ(check(args).message(), "sample: seed: expected dtype i64, got i32");
    args = c.args;
    args.status.shape[0] = 3;
    EXPECT_EQ(check(args).message(), "sample: status dim 0: expected m=2, got 3");
}

} // namespace
} // namespace lr::ops
