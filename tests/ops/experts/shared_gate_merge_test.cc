// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "cpu/rows.h"
#include "ops/experts/shared_gate_merge.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lr::ops {
namespace {

struct Case {
    GuardedTensor m, shared, routed, n_live{DType::kI32, {1}}, gate, y;
    SharedGateMergeArgs args;

    Case(DType act, std::int64_t n, std::int64_t d)
        : m(act, {n, d}), shared(act, {n, d}), routed(act, {n, d}), gate(DType::kBF16, {1, d}),
          y(act, {n, d}) {
        n_live.set(0, static_cast<double>(n));
        m.fill("m", 1.0);
        shared.fill("shared", 1.0);
        routed.fill("routed", 1.0);
        gate.fill("gate", 0.3);
        args = {.m = m,
                .shared = shared,
                .routed = routed,
                .n_live = n_live,
                .gate_weight = gate,
                .y = y};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::shared_gate_merge(args, pool);
    }
};

// eta: the dot errs by (ceil(D/16) + 5) * 2^-24 of its magnitudes; sigmoid's slope is at most 1/4;
// sigmoid, product and sum add at most 5 roundings. The bf16 store adds 2^-8 of the result.
TEST(SharedGateMerge, MatchesDouble) {
    for (DType act : {DType::kF32, DType::kBF16}) {
        constexpr std::int64_t kD = 72;
        Case c(act, 6, kD);
        c.run(2);
        EXPECT_TRUE(c.y.guards_intact());
        for (std::int64_t t = 0; t < 6; ++t) {
            double logit = 0, magnitudes = 0;
            for (std::int64_t i = 0; i < kD; ++i) {
                logit += c.m.at(t * kD + i) * c.gate.at(i);
                magnitudes += std::abs(c.m.at(t * kD + i) * c.gate.at(i));
            }
            const double eta = 1 / (1 + std::exp(-logit));
            const double eta_bound = (5 + 5) * 0x1p-24 * magnitudes / 4 + 4 * 0x1p-24;
            for (std::int64_t i = 0; i < kD; ++i) {
                const double s = c.shared.at(t * kD + i), r = c.routed.at(t * kD + i);
                const double expected = r + eta * s;
                double bound =
                    std::abs(s) * eta_bound + 2 * 0x1p-24 * (std::abs(r) + std::abs(eta * s));
                if (act == DType::kBF16)
                    bound += std::abs(expected) * 0x1p-8;
                ASSERT_NEAR(c.y.at(t * kD + i), expected, bound);
            }
        }
    }
}

TEST(SharedGateMerge, RoundsOnce) {
    Case c(DType::kBF16, 2, 40);
    c.run();
    for (std::int64_t t = 0; t < 2; ++t) {
        std::vector<float> m(40), w(40);
        for (std::int64_t i = 0; i < 40; ++i) {
            m[static_cast<std::size_t>(i)] = static_cast<float>(c.m.at(t * 40 + i));
            w[static_cast<std::size_t>(i)] = static_cast<float>(c.gate.at(i));
        }
        const float eta = 1.0f / (1.0f + std::exp(-cpu::dot(m.data(), w.data(), 40)));
        for (std::int64_t i = t * 40; i < (t + 1) * 40; ++i) {
            const volatile float scaled = eta * static_cast<float>(c.shared.at(i));
            EXPECT_EQ(c.y.at(i), numerics::round_bf16(static_cast<float>(c.routed.at(i)) + scaled));
        }
    }
}

TEST(SharedGateMerge, MayWriteOverSharedOrRouted) {
    Case c(DType::kBF16, 5, 24);
    c.run();
    for (bool over_shared : {true, false}) {
        Case in_place(DType::kBF16, 5, 24);
        GuardedTensor& target = over_shared ? in_place.shared : in_place.routed;
        in_place.args.y = target;
        in_place.run(2);
        for (std::int64_t t = 0; t < 5; ++t)
            EXPECT_EQ(target.row_bits(t), c.y.row_bits(t));
    }
}

TEST(SharedGateMerge, DeadRowsAreZeroAndNotRead) {
    Case c(DType::kBF16, 3, 24), full(DType::kBF16, 3, 24);
    full.run();
    c.n_live.set(0, 1);
    for (GuardedTensor* in : {&c.m, &c.shared, &c.routed})
        in->poison(1, 2);
    c.run();
    EXPECT_EQ(c.y.row_bits(0), full.y.row_bits(0));
    EXPECT_TRUE(c.y.row_is_zero(1) && c.y.row_is_zero(2));
}

TEST(SharedGateMerge, RefusesWrongShapes) {
    Case c(DType::kBF16, 3, 24);
    SharedGateMergeArgs args = c.args;
    args.gate_weight.shape[0] = 2;
    EXPECT_EQ(check(args).message(), "shared_gate_merge: gate_weight dim 0: expected 1, got 2");
    args = c.args;
    args.routed.shape[1] = 25;
    EXPECT_EQ(check(args).message(), "shared_gate_merge: routed dim 1: expected D=24, got 25");
    EXPECT_EQ(cost(c.args).flops, 4 * 3 * 24);
}

} // namespace
} // namespace lr::ops
