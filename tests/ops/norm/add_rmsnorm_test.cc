// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "ops/norm/add_rmsnorm.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lr::ops {
namespace {

constexpr std::int64_t kRows = 21;
constexpr std::int64_t kHidden = 130;
constexpr float kEps = 1e-6f;

struct Case {
    GuardedTensor x, residual, weight, residual_out, y;
    GuardedTensor n_live{DType::kI32, {1}};
    AddRmsnormArgs args;

    Case(DType act, Numerics numerics, Precision precision)
        : x(act, {kRows, kHidden}, kHidden + 6), residual(act, {kRows, kHidden}),
          weight(DType::kF32, {kHidden}), residual_out(act, {kRows, kHidden}),
          y(act, {kRows, kHidden}) {
        x.fill("x", 1.0);
        residual.fill("residual", 3.0);
        weight.fill("weight", 0.3);
        n_live.set(0, kRows);
        args = {.x = x,
                .residual = residual,
                .n_live = n_live,
                .weight = weight,
                .residual_out = residual_out,
                .y = y,
                .eps = kEps,
                .numerics = numerics,
                .precision = precision};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::add_rmsnorm(args, pool);
    }
    double sum_at(std::int64_t i) { return x.at(i) + residual.at(i); }
};

// y in double from the row that the norm reads.
double oracle(const std::vector<double>& s, double weight, std::int64_t j) {
    double squares = 0;
    for (double value : s)
        squares += value * value;
    const double inv = 1.0 / std::sqrt(squares / static_cast<double>(s.size()) + double{kEps});
    return s[static_cast<std::size_t>(j)] * inv * (1.0 + weight);
}

TEST(AddRmsnorm, MatchesADoubleOracleInF32) {
    Case c(DType::kF32, Numerics::kHf, Precision::kF32);
    c.run();
    for (std::int64_t i = 0; i < kRows; ++i) {
        std::vector<double> s;
        for (std::int64_t j = 0; j < kHidden; ++j)
            s.push_back(c.sum_at(i * kHidden + j));
        for (std::int64_t j = 0; j < kHidden; ++j) {
            const double expected = oracle(s, c.weight.at(j), j);
            // s 1, squares and their tree 6 (halved by the root), mean 1, root 1, reciprocal 1,
            // 1 + w 1, two products 2: at most 12 roundings of 2^-24.
            EXPECT_NEAR(c.y.at(i * kHidden + j), expected, 12 * 0x1p-24 * std::abs(expected))
                << i << ", " << j;
            EXPECT_EQ(c.residual_out.at(i * kHidden + j),
                      static_cast<float>(c.sum_at(i * kHidden + j)));
        }
    }
    EXPECT_TRUE(c.y.guards_intact());
    EXPECT_TRUE(c.residual_out.guards_intact());
}

// In kHf the norm reads the stored residual; in kSeed the sum before it was rounded. Both are
// within a rounding of bf16 (2^-8, plus the f32 part) of the oracle for their own input, and they
// differ from one another somewhere.
TEST(AddRmsnorm, ReadsTheRoundedResidualInHfAndTheSumInSeed) {
    Case hf(DType::kBF16, Numerics::kHf, Precision::kModel);
    Case seed(DType::kBF16, Numerics::kSeed, Precision::kModel);
    hf.run();
    seed.run();
    EXPECT_EQ(hf.residual_out.all_bytes(), seed.residual_out.all_bytes());
    EXPECT_NE(hf.y.all_bytes(), seed.y.all_bytes());
    for (std::int64_t i = 0; i < kRows; ++i) {
        std::vector<double> rounded, sum;
        for (std::int64_t j = 0; j < kHidden; ++j) {
            rounded.push_back(hf.residual_out.at(i * kHidden + j));
            sum.push_back(static_cast<float>(hf.sum_at(i * kHidden + j)));
        }
        for (std::int64_t j = 0; j < kHidden; ++j) {
            const double from_rounded = oracle(rounded, hf.weight.at(j), j);
            const double from_sum = oracle(sum, hf.weight.at(j), j);
            const double bound = 0x1p-8 + 12 * 0x1p-24;
            EXPECT_NEAR(hf.y.at(i * kHidden + j), from_rounded, bound * std::abs(from_rounded));
            EXPECT_NEAR(seed.y.at(i * kHidden + j), from_sum, bound * std::abs(from_sum));
        }
    }
}

TEST(AddRmsnorm, RoundsTheSumInHfEvenWhenItIsNotStored) {
    Case stored(DType::kBF16, Numerics::kHf, Precision::kModel);
    Case dropped(DType::kBF16, Numerics::kHf, Precision::kModel);
    dropped.args.residual_out = {};
    stored.run();
    dropped.run();
    EXPECT_EQ(stored.y.all_bytes(), dropped.y.all_bytes());
}

TEST(AddRmsnorm, TakesXAsTheResidualWhenThereIsNone) {
    Case c(DType::kBF16, Numerics::kHf, Precision::kModel);
    c.args.residual = {};
    c.run();
    for (std::int64_t i = 0; i < kRows * kHidden; ++i)
        ASSERT_EQ(c.residual_out.at(i), c.x.at(i));
    EXPECT_FALSE(std::isnan(c.y.at(0)));
}

TEST(AddRmsnorm, HandlesAKnownRow) {
    GuardedTensor x(DType::kF32, {1, 4}), weight(DType::kF32, {4}), y(DType::kF32, {1, 4});
    x.set_all({1, -1, 1, -1}); // mean of squares 1, eps 3: inv = 1/2
    weight.set_all({0, 1, 2, 3});
    AddRmsnormArgs args{.x = x, .weight = weight, .y = y, .eps = 3.0f};
    ThreadPool pool(1);
    cpu::add_rmsnorm(args, pool);
    EXPECT_EQ(y.at(0), 0.5);
    EXPECT_EQ(y.at(1), -1.0);
    EXPECT_EQ(y.at(2), 1.5);
    EXPECT_EQ(y.at(3), -2.0);
}

TEST(AddRmsnorm, LeavesDeadRowsUnreadAndZeroesTheirOutputs) {
    Case all(DType::kBF16, Numerics::kHf, Precision::kModel);
    Case some(DType::kBF16, Numerics::kHf, Precision::kModel);
    some.n_live.set(0, 9);
    some.x.poison(9, kRows - 9);
    some.residual.poison(9, kRows - 9);
    all.run();
    some.run();
    for (std::int64_t i = 0; i < kRows; ++i) {
        if (i < 9) {
            EXPECT_EQ(some.y.row_bits(i), all.y.row_bits(i));
        } else {
            EXPECT_TRUE(some.y.row_is_zero(i));
            EXPECT_TRUE(some.residual_out.row_is_zero(i));
        }
    }
}

TEST(AddRmsnorm, GivesARowTheSameBitsAloneInABatchAndOnTwoThreads) {
    Case batch(DType::kBF16, Numerics::kHf, Precision::kModel);
    Case threads(DType::kBF16, Numerics::kHf, Precision::kModel);
    batch.run(1);
    threads.run(2);
    EXPECT_EQ(batch.y.all_bytes(), threads.y.all_bytes());
    const std::vector<std::byte> expected = batch.y.row_bits(13);
    batch.args.x = batch.args.x.slice_rows(13, 1);
    batch.args.residual = batch.args.residual.slice_rows(13, 1);
    batch.args.residual_out = {};
    GuardedTensor alone(DType::kBF16, {1, kHidden});
    batch.args.y = alone;
    batch.run();
    EXPECT_EQ(alone.row_bits(0), expected);
}

TEST(AddRmsnorm, AllowsThePermittedAliases) {
    Case apart(DType::kBF16, Numerics::kHf, Precision::kModel);
    Case together(DType::kBF16, Numerics::kHf, Precision::kModel);
    together.args.residual_out = together.residual;
    together.args.y = together.x;
    apart.run();
    together.run();
    for (std::int64_t i = 0; i < kRows; ++i) {
        EXPECT_EQ(together.residual.row_bits(i), apart.residual_out.row_bits(i));
        EXPECT_EQ(together.x.row_bits(i), apart.y.row_bits(i));
    }
    EXPECT_TRUE(together.x.guards_intact());
}

TEST(AddRmsnorm, RefusesWrongArguments) {
    Case c(DType::kBF16, Numerics::kHf, Precision::kModel);
    AddRmsnormArgs args = c.args;
    args.weight.shape[0] = 128;
    EXPECT_EQ(check(args).message(), "add_rmsnorm: weight dim 0: expected D=130, got 128");
    args = c.args;
    args.residual.shape[0] = 3;
    EXPECT_EQ(check(args).message(), "add_rmsnorm: residual dim 0: expected n=21, got 3");
    args = c.args;
    args.eps = 0;
    EXPECT_EQ(check(args).message(), "add_rmsnorm: eps: expected a positive number, got 0");
    args = c.args;
    args.y = args.residual_out;
    EXPECT_EQ(check(args).message(), "add_rmsnorm: y and residual_out must be different buffers");
    args = c.args;
    args.x = {};
    EXPECT_EQ(check(args).message(), "add_rmsnorm: x: expected a tensor, got none");
}

// Three ranks' partial rows against one rank whose x is their sum in f32, in rank order: the sum
// is not rounded before the residual is added.
TEST(AddRmsnorm, AddsTheRanksPartialRowsInOrderBeforeTheResidual) {
    for (Numerics numerics : {Numerics::kHf, Numerics::kSeed}) {
        Case ranks(DType::kBF16, numerics, Precision::kModel);
        Case one(DType::kBF16, numerics, Precision::kModel);
        std::vector<GuardedTensor> partial(3, ranks.x);
        partial[0].fill("rank 0", 100.0);
        partial[1].fill("rank 1", 1.0);
        partial[2].fill("rank 2", 100.0);
        GuardedTensor sum(DType::kF32, {kRows, kHidden});
        for (std::int64_t i = 0; i < sum.count(); ++i)
            sum.set(i, static_cast<float>(partial[0].at(i)) + static_cast<float>(partial[1].at(i)) +
                           static_cast<float>(partial[2].at(i)));
        ranks.args.x = partial[1];
        ranks.args.ranks = 3;
        for (std::size_t r = 0; r < 3; ++r) {
            ranks.n_live.set(0, kRows - 2);
            partial[r].poison(kRows - 2, 2);
            ranks.args.peers[r] = partial[r].view().data;
        }
        one.n_live.set(0, kRows - 2);
        one.args.x = sum;
        ranks.run(2);
        one.run();
        EXPECT_EQ(ranks.residual_out.all_bytes(), one.residual_out.all_bytes());
        EXPECT_EQ(ranks.y.all_bytes(), one.y.all_bytes());
    }
}

TEST(AddRmsnorm, RefusesToOverwriteWhatOtherRanksRead) {
    Case c(DType::kBF16, Numerics::kHf, Precision::kModel);
    c.args.residual_out = c.x;
    EXPECT_TRUE(check(c.args).ok());
    c.args.ranks = 2;
    EXPECT_EQ(check(c.args).message(), "add_rmsnorm: ranks > 1: nothing may alias x");
    c.args.ranks = kMaxRanks + 1;
    EXPECT_EQ(check(c.args).message(), "add_rmsnorm: ranks: expected 1..16, got 17");
}

TEST(AddRmsnormDeathTest, RunsNoSumWhosePeersAreUnknown) {
    Case c(DType::kBF16, Numerics::kHf, Precision::kModel);
    c.args.ranks = 2;
    c.args.peers[0] = c.args.x.data;
    ThreadPool pool(1);
    EXPECT_DEATH(cpu::add_rmsnorm(c.args, pool), "peers");
}

TEST(AddRmsnorm, CountsEachTensorOnce) {
    AddRmsnormArgs args;
    args.x = ConstView(nullptr, DType::kBF16, {8, 4096});
    args.residual = args.x;
    args.weight = ConstView(nullptr, DType::kBF16, {4096});
    args.y = View(nullptr, DType::kBF16, {8, 4096});
    args.residual_out = args.y;
    const Cost expected{.read_bytes = 2 * 8 * 4096 * 2 + 4096 * 2,
                        .write_bytes = 2 * 8 * 4096 * 2,
                        .flops = 7 * 8 * 4096};
    EXPECT_EQ(cost(args), expected);
    args.ranks = 3;
    EXPECT_EQ(cost(args).read_bytes, 4 * 8 * 4096 * 2 + 4096 * 2);
    EXPECT_EQ(cost(args).flops, 9 * 8 * 4096);
}

} // namespace
} // namespace lr::ops
