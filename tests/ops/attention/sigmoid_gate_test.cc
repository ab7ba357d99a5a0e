// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/attention/attention.h"
#include "ops/attention/sigmoid_gate.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lr::ops {
namespace {

constexpr std::int64_t kRows = 11;
constexpr std::int64_t kColumns = 37;

struct Case {
    GuardedTensor o, gate, y;
    GuardedTensor n_live{DType::kI32, {1}};
    SigmoidGateArgs args;

    explicit Case(DType act)
        : o(act, {kRows, kColumns}, kColumns + 5), gate(act, {kRows, kColumns}),
          y(act, {kRows, kColumns}, kColumns + 2) {
        o.fill("o", 1.0);
        gate.fill("gate", 4.0);
        n_live.set(0, kRows);
        args = {.o = o, .gate = gate, .n_live = n_live, .y = y};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::sigmoid_gate(args, pool);
    }
};

TEST(SigmoidGate, MatchesADoubleOracle) {
    for (DType act : {DType::kF32, DType::kBF16}) {
        Case c(act);
        c.run();
        // exp 1 ulp (2 halves), 1 + e, quotient, product: 5 roundings; one more to store bf16.
        const double bound = 5 * 0x1p-24 + (act == DType::kBF16 ? 0x1p-8 : 0.0);
        for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
            const double expected = c.o.at(i) / (1.0 + std::exp(-c.gate.at(i)));
            EXPECT_NEAR(c.y.at(i), expected, bound * std::abs(expected)) << i;
        }
        EXPECT_TRUE(c.y.guards_intact());
    }
}

TEST(SigmoidGate, HalvesAtZeroAndSaturatesWithoutNaN) {
    Case c(DType::kF32);
    c.o.set_all({3, 3, 3});
    c.gate.set_all({0, 200, -200});
    c.run();
    EXPECT_EQ(c.y.at(0), 1.5);
    EXPECT_EQ(c.y.at(1), 3.0);
    EXPECT_EQ(c.y.at(2), 0.0);
}

TEST(SigmoidGate, LeavesDeadRowsUnreadAndMayWriteInPlace) {
    Case all(DType::kBF16);
    Case some(DType::kBF16);
    some.n_live.set(0, 5);
    some.o.poison(5, kRows - 5);
    some.gate.poison(5, kRows - 5);
    some.args.y = some.o;
    all.run();
    some.run(2);
    for (std::int64_t i = 0; i < kRows; ++i) {
        if (i < 5)
            EXPECT_EQ(some.o.row_bits(i), all.y.row_bits(i));
        else
            EXPECT_TRUE(some.o.row_is_zero(i));
    }
    EXPECT_TRUE(some.o.guards_intact());
}

TEST(SigmoidGate, RefusesWrongShapesAndCountsItsBytes) {
    Case c(DType::kBF16);
    EXPECT_EQ(cost(c.args), (Cost{.read_bytes = 2 * 11 * 37 * 2 + 4,
                                  .write_bytes = 11 * 37 * 2,
                                  .flops = 5 * 11 * 37}));
    c.args.gate.shape[1] = 36;
    EXPECT_EQ(check(c.args).message(), "sigmoid_gate: gate dim 1: expected C=37, got 36");
}

} // namespace
} // namespace lr::ops
