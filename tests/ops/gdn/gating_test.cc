// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/gating.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kRows = 40, kHv = 6;

struct Case {
    GuardedTensor ba, a_log, dt_bias, n_live, g, beta;
    GatingArgs args;

    explicit Case(Precision precision)
        : ba(act_dtype(precision), {kRows, 2 * kHv}, 2 * kHv + 4), a_log(DType::kF32, {kHv}),
          dt_bias(DType::kBF16, {kHv}), n_live(DType::kI32, {1}), g(DType::kF32, {kRows, kHv}),
          beta(DType::kF32, {kRows, kHv}) {
        fill_rows(ba, "ba", 4.0, kRows - 1);
        a_log.fill("a_log", 1.0);
        dt_bias.fill("dt_bias", 1.0);
        n_live.set(0, kRows - 1);
        args = {.ba = ba,
                .a_log = a_log,
                .dt_bias = dt_bias,
                .n_live = n_live,
                .g = g,
                .beta = beta,
                .precision = precision};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::gating, args, threads); }
};

TEST(Gating, MatchesADoubleOracleAndRoundsBetaAlone) {
    for (Precision precision : {Precision::kF32, Precision::kModel}) {
        Case c(precision);
        c.run();
        for (std::int64_t row = 0; row < kRows - 1; ++row)
            for (std::int64_t h = 0; h < kHv; ++h) {
                const double b = c.ba.at(row * 2 * kHv + h), a = c.ba.at(row * 2 * kHv + kHv + h);
                const double x = a + c.dt_bias.at(h);
                const double g = -std::exp(c.a_log.at(h)) * softplus(x);
                // The sum's rounding passes through softplus (slope at most 1); then exp, log1p,
                // exp and the product, an ulp each at most.
                EXPECT_TRUE(
                    near(c.g.at(row * kHv + h), g,
                         (8 * std::abs(g) + std::exp(c.a_log.at(h)) * std::abs(x)) * kF32Error))
                    << row << " " << h;
                const double beta = sigmoid(b);
                const double flip = precision == Precision::kModel ? kBf16Error : 0;
                EXPECT_TRUE(near(c.beta.at(row * kHv + h), beta, (5 * kF32Error + flip) * beta))
                    << row << " " << h;
                if (precision == Precision::kModel) {
                    EXPECT_EQ(c.beta.at(row * kHv + h),
                              rounded(precision, c.beta.at(row * kHv + h)));
                }
            }
        EXPECT_TRUE(c.g.row_is_zero(kRows - 1));
        EXPECT_TRUE(c.beta.row_is_zero(kRows - 1));
        EXPECT_TRUE(c.g.guards_intact());
        EXPECT_TRUE(c.beta.guards_intact());
    }
}

TEST(Gating, StaysFiniteAtExtremeInputs) {
    Case c(Precision::kF32);
    c.a_log.fill("zero", 0);
    c.dt_bias.fill("zero", 0);
    c.ba.set_all({-200, 200, 0, 0, 0, 0, -200, 200, 20, 20.5, 0, 0});
    c.run();
    EXPECT_EQ(c.beta.at(0), 0);
    EXPECT_EQ(c.beta.at(1), 1);
    EXPECT_EQ(c.beta.at(2), 0.5);
    EXPECT_EQ(c.g.at(0), 0);
    EXPECT_EQ(c.g.at(1), -200);
    EXPECT_NEAR(c.g.at(2), -softplus(20), 4e-6);
    EXPECT_EQ(c.g.at(3), -20.5);
}

TEST(Gating, BitsDoNotDependOnThreadsOrBatchMates) {
    Case one(Precision::kModel), two(Precision::kModel), alone(Precision::kModel);
    one.run();
    two.run(2);
    EXPECT_EQ(one.g.all_bytes(), two.g.all_bytes());
    EXPECT_EQ(one.beta.all_bytes(), two.beta.all_bytes());
    alone.n_live.set(0, 1);
    alone.ba.poison(1, kRows - 1);
    alone.run();
    EXPECT_EQ(one.g.row_bits(0), alone.g.row_bits(0));
    EXPECT_TRUE(alone.g.row_is_zero(1));
}

TEST(Gating, RefusesShapesThatDisagree) {
    Case c(Precision::kModel);
    GatingArgs bad = c.args;
    bad.ba.shape[1] = kHv;
    EXPECT_EQ(check(bad).message(), "gating: ba dim 1: expected 2*Hv=12, got 6");
    bad = c.args;
    bad.g.dtype = DType::kBF16;
    EXPECT_EQ(check(bad).message(), "gating: g: expected dtype f32, got bf16");
}

} // namespace
} // namespace lr::ops
