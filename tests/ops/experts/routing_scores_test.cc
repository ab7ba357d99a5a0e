// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "ops/experts/routing_scores.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace lr::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
    GuardedTensor logits, ids, weights, n_live{DType::kI32, {1}};
    RoutingScoresArgs args;

    Case(DType act, std::int64_t n, std::int64_t experts, std::int64_t k)
        : logits(act, {n, experts}), ids(DType::kI32, {n, k}), weights(act, {n, k}) {
        n_live.set(0, static_cast<double>(n));
        args.logits = logits;
        args.n_live = n_live;
        args.ids = ids;
        args.weights = weights;
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::routing_scores(args, pool);
        EXPECT_TRUE(ids.guards_intact() && weights.guards_intact());
    }
    std::vector<double> row_ids(std::int64_t t) {
        std::vector<double> out;
        for (std::int64_t slot = 0; slot < args.ids.shape[1]; ++slot)
            out.push_back(ids.at(t * args.ids.shape[1] + slot));
        return out;
    }
};

// Ids that somebody else chose, in an order of his own: exp(l - l of the first) over their sum.
TEST(RoutingScores, WeighsGivenIdsByTheSameFormula) {
    Case c(DType::kF32, 2, 4, 3);
    c.logits.set_all({1, 3, 2, 0, //
                      9, 9, 9, 9});
    c.ids.set_all({3, 1, 0, //
                   -1, -1, -1});
    c.n_live.set(0, 1);
    cpu::routing_weights(c.args);
    const double sum = 1 + std::exp(3.0) + std::exp(1.0);
    EXPECT_NEAR(c.weights.at(0), 1 / sum, 1e-6);
    EXPECT_NEAR(c.weights.at(1), std::exp(3.0) / sum, 1e-6);
    EXPECT_NEAR(c.weights.at(2), std::exp(1.0) / sum, 1e-6);
    EXPECT_EQ(c.row_ids(0), (std::vector<double>{3, 1, 0}));
    EXPECT_TRUE(std::isnan(c.weights.at(3))) << "a dead row was written";
}

TEST(RoutingScores, LowestIndexWinsTies) {
    Case c(DType::kF32, 3, 6, 3);
    c.logits.set_all({1, 3, 3, 2, 3, 0, //
                      5, 5, 5, 5, 5, 5, //
                      0, 1, 2, 3, 3, 2});
    c.run();
    EXPECT_EQ(c.row_ids(0), (std::vector<double>{1, 2, 4}));
    EXPECT_EQ(c.row_ids(1), (std::vector<double>{0, 1, 2}));
    EXPECT_EQ(c.row_ids(2), (std::vector<double>{3, 4, 2}));
    for (std::int64_t i = 0; i < 6; ++i)
        EXPECT_FLOAT_EQ(static_cast<float>(c.weights.at(i)), 1.0f / 3);
    const double sum = 2 + std::exp(-1.0);
    EXPECT_NEAR(c.weights.at(6), 1 / sum, 1e-7);
    EXPECT_NEAR(c.weights.at(8), std::exp(-1.0) / sum, 1e-7);
}

// Softmax over the chosen in double. f32: exp errs by 1 ulp at most (glibc), then a sum of K terms
// and a division: K + 3 roundings of 2^-24 each; the bf16 store adds 2^-8.
TEST(RoutingScores, MatchesASortAndASoftmaxInDouble) {
    for (DType act : {DType::kF32, DType::kBF16}) {
        Case c(act, 20, 256, 8);
        c.logits.fill("logits", 2.0);
        c.run(2);
        for (std::int64_t t = 0; t < 20; ++t) {
            std::vector<std::int64_t> order(256);
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                return c.logits.at(t * 256 + a) > c.logits.at(t * 256 + b);
            });
            double sum = 0;
            for (std::size_t slot = 0; slot < 8; ++slot)
                sum +=
                    std::exp(c.logits.at(t * 256 + order[slot]) - c.logits.at(t * 256 + order[0]));
            for (std::size_t slot = 0; slot < 8; ++slot) {
                const auto i = t * 8 + static_cast<std::int64_t>(slot);
                ASSERT_EQ(c.ids.at(i), static_cast<double>(order[slot]));
                const double expected =
                    std::exp(c.logits.at(t * 256 + order[slot]) - c.logits.at(t * 256 + order[0])) /
                    sum;
                const double store = act == DType::kBF16 ? 0x1p-8 : 0;
                ASSERT_NEAR(c.weights.at(i), expected, expected * (13 * 0x1p-24 + store));
            }
        }
    }
}

TEST(RoutingScores, DeadRowsChooseNothingAndAreNotRead) {
    Case c(DType::kBF16, 4, 16, 2);
    c.logits.fill("logits", 1.0);
    c.logits.poison(1, 3);
    c.n_live.set(0, 1);
    c.run();
    EXPECT_GE(c.ids.at(0), 0);
    EXPECT_GT(c.weights.at(0), 0);
    for (std::int64_t i = 2; i < 8; ++i) {
        EXPECT_EQ(c.ids.at(i), -1);
        EXPECT_EQ(c.weights.at(i), 0);
    }
}

TEST(RoutingScores, NaNRanksLastAndIdsStayDistinct) {
    Case c(DType::kF32, 4, 4, 3);
    c.logits.set_all({NAN, 1, NAN, 2,       //
                      NAN, NAN, NAN, NAN,   //
                      -kInf, NAN, -kInf, 0, //
                      kInf, 0, 1, 2});
    c.run();
    EXPECT_EQ(c.row_ids(0), (std::vector<double>{3, 1, 0}));
    EXPECT_EQ(c.row_ids(1), (std::vector<double>{0, 1, 2}));
    EXPECT_EQ(c.row_ids(2), (std::vector<double>{3, 0, 2}));
    EXPECT_EQ(c.row_ids(3), (std::vector<double>{0, 3, 2}));
    EXPECT_TRUE(std::isnan(c.weights.at(0))); // a NaN was chosen
    EXPECT_TRUE(std::isnan(c.weights.at(3)));
    EXPECT_EQ(c.weights.at(6), 1.0);
    EXPECT_EQ(c.weights.at(7), 0.0);
    EXPECT_TRUE(std::isnan(c.weights.at(9))); // inf - inf
}

TEST(RoutingScores, ChoosesAllWhenKIsE) {
    Case c(DType::kF32, 1, 3, 3);
    c.logits.set_all({0, 2, 1});
    c.run();
    EXPECT_EQ(c.row_ids(0), (std::vector<double>{1, 2, 0}));
}

TEST(RoutingScores, RefusesWrongShapes) {
    Case c(DType::kBF16, 4, 16, 2);
    RoutingScoresArgs args = c.args;
    args.weights.shape[1] = 3;
    EXPECT_EQ(check(args).message(), "routing_scores: weights dim 1: expected K=2, got 3");
    args = c.args;
    args.logits.shape[1] = 1;
    EXPECT_EQ(check(args).message(), "routing_scores: ids dim 1: expected K in 1..E=1, got 2");
    EXPECT_EQ(cost(c.args).flops, 4 * (16 + 4 * 2));
}

} // namespace
} // namespace lr::ops
