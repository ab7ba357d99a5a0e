// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "ops/experts/finalize.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

struct Case {
    GuardedTensor z, weights, row_of, n_live{DType::kI32, {1}}, y;
    FinalizeArgs args;

    Case(DType act, std::int64_t rows, std::int64_t n, std::int64_t k, std::int64_t d)
        : z(act, {rows, d}), weights(act, {n, k}), row_of(DType::kI32, {n * k}), y(act, {n, d}) {
        n_live.set(0, static_cast<double>(n));
        args = {.z = z, .weights = weights, .row_of = row_of, .n_live = n_live, .y = y};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::finalize(args, pool);
        EXPECT_TRUE(y.guards_intact());
    }
};

TEST(Finalize, AddsInSlotOrderInF32) {
    Case c(DType::kF32, 3, 2, 3, 1);
    c.z.set_all({0x1p24, 1, 1});
    c.weights.set_all({1, 1, 1, 1, 1, 1});
    c.row_of.set_all({0, 1, 2, 2, 1, 0});
    c.run();
    EXPECT_EQ(c.y.at(0), 0x1p24);     // (2^24 + 1) + 1 loses both
    EXPECT_EQ(c.y.at(1), 0x1p24 + 2); // (1 + 1) + 2^24 keeps them
}

TEST(Finalize, MatchesTheDefinitionWithOneRounding) {
    for (DType act : {DType::kBF16, DType::kF32}) {
        Case c(act, 40, 9, 4, 33);
        c.z.fill("z", 1.0);
        c.weights.fill("pi", 0.1, 0.25);
        for (std::int64_t i = 0; i < 36; ++i)
            c.row_of.set(i, i % 5 == 3 ? -1 : static_cast<double>(i * 7 % 40));
        c.run(2);
        for (std::int64_t t = 0; t < 9; ++t)
            for (std::int64_t j = 0; j < 33; ++j) {
                float sum = 0;
                for (std::int64_t k = 0; k < 4; ++k)
                    if (const auto row = static_cast<std::int64_t>(c.row_of.at(t * 4 + k));
                        row >= 0) {
                        const volatile float product = static_cast<float>(c.weights.at(t * 4 + k)) *
                                                       static_cast<float>(c.z.at(row * 33 + j));
                        sum += product;
                    }
                ASSERT_EQ(c.y.at(t * 33 + j),
                          act == DType::kBF16 ? numerics::round_bf16(sum) : sum);
            }
    }
}

TEST(Finalize, ReadsNothingOfDeadRowsAndMissingPairs) {
    Case c(DType::kBF16, 4, 3, 2, 8); // z rows 1..3 stay NaN
    for (std::int64_t j = 0; j < 8; ++j)
        c.z.set(j, 2.0);
    c.weights.set_all({0.5, NAN, NAN, NAN});
    c.row_of.set_all({0, -1, -1, -1, 3, 2});
    c.n_live.set(0, 2);
    c.run();
    for (std::int64_t j = 0; j < 8; ++j)
        EXPECT_EQ(c.y.at(j), 1.0);
    EXPECT_TRUE(c.y.row_is_zero(1)); // live, without local pairs
    EXPECT_TRUE(c.y.row_is_zero(2)); // dead
}

TEST(Finalize, RefusesWrongShapes) {
    Case c(DType::kBF16, 4, 3, 2, 8);
    FinalizeArgs args = c.args;
    args.row_of.shape[0] = 5;
    EXPECT_EQ(check(args).message(), "finalize: row_of dim 0: expected 6, got 5");
    args = c.args;
    args.y.shape[1] = 9;
    EXPECT_EQ(check(args).message(), "finalize: y dim 1: expected D=8, got 9");
    EXPECT_EQ(cost(c.args).flops, 2 * 6 * 8);
    EXPECT_EQ(cost(c.args).read_bytes, 6 * 8 * 2 + 12 + 24 + 4);
}

} // namespace
} // namespace lr::ops
