// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/attention/attention.h"
#include "ops/attention/qk_norm_rope_gate.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lr::ops {
namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kQueryHeads = 3;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kDim = 40;
constexpr std::int64_t kRotary = 16;
constexpr std::int64_t kHalf = kRotary / 2;

struct Case {
    GuardedTensor qg, k, q_norm, k_norm, q, gate, k_out;
    GuardedTensor positions{DType::kI32, {kRows}};
    GuardedTensor n_live{DType::kI32, {1}};
    QkNormRopeGateArgs args;

    Case(DType act, Precision precision)
        : qg(act, {kRows, kQueryHeads, 2 * kDim}, 300), k(act, {kRows, kKvHeads, kDim}, 300),
          q_norm(DType::kBF16, {kDim}), k_norm(DType::kF32, {kDim}),
          q(act, {kRows, kQueryHeads, kDim}), gate(act, {kRows, kQueryHeads * kDim}),
          k_out(act, {kRows, kKvHeads, kDim}) {
        qg.fill("qg", 2.0);
        k.fill("k", 2.0);
        q_norm.fill("q_norm", 0.2);
        k_norm.fill("k_norm", 0.2);
        positions.set_all({0, 1, 2, 63, 1000, 200000});
        n_live.set(0, kRows);
        args = {.qg = qg,
                .k = k,
                .positions = positions,
                .n_live = n_live,
                .q_norm = q_norm,
                .k_norm = k_norm,
                .q = q,
                .gate = gate,
                .k_out = k_out,
                .eps = 1e-6f,
                .rope_theta = 1e7f,
                .rotary_dim = kRotary,
                .precision = precision};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::qk_norm_rope_gate(args, pool);
    }
};

// The f32 angle that the contract names.
float angle_of(std::int64_t position, std::int64_t i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(kRotary);
    const float inv_freq = 1.0f / std::pow(1e7f, exponent);
    return static_cast<float>(position) * inv_freq;
}

// One head in double. `first` is its first element in x; u and y have kDim entries.
void oracle(GuardedTensor& x, std::int64_t first, GuardedTensor& weight, std::int64_t position,
            std::vector<double>& u, std::vector<double>& y) {
    double squares = 0;
    for (std::int64_t j = 0; j < kDim; ++j)
        squares += x.at(first + j) * x.at(first + j);
    const double inv = 1.0 / std::sqrt(squares / static_cast<double>(kDim) + double{1e-6f});
    u.clear();
    for (std::int64_t j = 0; j < kDim; ++j)
        u.push_back(x.at(first + j) * inv * (1.0 + weight.at(j)));
    y = u;
    for (std::int64_t i = 0; i < kHalf; ++i) {
        const double angle = angle_of(position, i);
        const auto low = static_cast<std::size_t>(i);
        const auto high = static_cast<std::size_t>(i + kHalf);
        y[low] = u[low] * std::cos(angle) - u[high] * std::sin(angle);
        y[high] = u[high] * std::cos(angle) + u[low] * std::sin(angle);
    }
}

// relative: error of u and of each product; at_store: of the last rounding.
void expect_heads_match(Case& c, double relative, double at_store) {
    std::vector<double> u, y;
    for (std::int64_t row = 0; row < kRows; ++row) {
        const auto position = static_cast<std::int64_t>(c.positions.at(row));
        for (std::int64_t h = 0; h < kQueryHeads + kKvHeads; ++h) {
            const bool query = h < kQueryHeads;
            const std::int64_t head =
                query ? row * kQueryHeads + h : row * kKvHeads + h - kQueryHeads;
            oracle(query ? c.qg : c.k, head * (query ? 2 : 1) * kDim, query ? c.q_norm : c.k_norm,
                   position, u, y);
            for (std::int64_t j = 0; j < kDim; ++j) {
                const std::int64_t partner = j < kHalf ? j + kHalf : j - kHalf;
                const double size =
                    std::abs(u[static_cast<std::size_t>(j)]) +
                    (j < kRotary ? std::abs(u[static_cast<std::size_t>(partner)]) : 0);
                const double expected = y[static_cast<std::size_t>(j)];
                EXPECT_NEAR((query ? c.q : c.k_out).at(head * kDim + j), expected,
                            relative * size + at_store * std::abs(expected))
                    << "row " << row << " head " << h << " channel " << j;
            }
        }
    }
}

TEST(QkNormRopeGate, MatchesADoubleOracleInF32) {
    Case c(DType::kF32, Precision::kF32);
    c.run(2);
    // u: 10 roundings as in add_rmsnorm; cos or sin 2 halves, product 1, sum 1.
    expect_heads_match(c, 14 * 0x1p-24, 0);
    EXPECT_TRUE(c.q.guards_intact());
    EXPECT_TRUE(c.k_out.guards_intact());
    EXPECT_TRUE(c.gate.guards_intact());
}

TEST(QkNormRopeGate, RoundsTheNormAndTheResultInModelPrecision) {
    Case c(DType::kBF16, Precision::kModel);
    c.run();
    expect_heads_match(c, 0x1p-8 + 14 * 0x1p-24, 0x1p-8 * (1 + 0x1p-8));
}

// At position 0 the result is the rounded norm itself, and from it every other position follows
// with f32 arithmetic and one rounding, to the bit.
TEST(QkNormRopeGate, RotatesTheRoundedNormWithOneRounding) {
    Case norm(DType::kBF16, Precision::kModel);
    for (std::int64_t i = 0; i < kRows; ++i)
        norm.positions.set(i, 0);
    Case rotated(DType::kBF16, Precision::kModel);
    norm.run();
    rotated.run();
    for (std::int64_t row = 0; row < kRows; ++row)
        for (std::int64_t i = 0; i < kHalf; ++i) {
            const std::int64_t at = row * kKvHeads * kDim + i;
            const auto low = static_cast<float>(norm.k_out.at(at));
            const auto high = static_cast<float>(norm.k_out.at(at + kHalf));
            const float angle = angle_of(static_cast<std::int64_t>(rotated.positions.at(row)), i);
            const float cosine = std::cos(angle), sine = std::sin(angle);
            EXPECT_EQ(rotated.k_out.at(at), numerics::round_bf16(low * cosine - high * sine));
            EXPECT_EQ(rotated.k_out.at(at + kHalf),
                      numerics::round_bf16(high * cosine + low * sine));
        }
}

TEST(QkNormRopeGate, RotatesAKnownPair) {
    Case c(DType::kF32, Precision::kF32);
    for (std::int64_t j = 0; j < kDim; ++j) {
        c.k.set(kKvHeads * kDim + j, 0.0);
        c.k_norm.set(j, 0.0);
    }
    c.k.set(kKvHeads * kDim + 1, 1e3); // row 1, channel 1: position 1, angle 1e7^(-2/16)
    c.run();
    const double length = std::sqrt(double{kDim}); // of a unit vector after the norm
    EXPECT_NEAR(c.k_out.at(kKvHeads * kDim + 1), length * std::cos(0.13335214321633240), 2e-6);
    EXPECT_NEAR(c.k_out.at(kKvHeads * kDim + 1 + kHalf), length * std::sin(0.13335214321633240),
                2e-6);
    EXPECT_EQ(c.k_out.at(kKvHeads * kDim + 2), 0.0);
}

TEST(QkNormRopeGate, CopiesTheGateThatFollowsEachHeadsQuery) {
    for (DType act : {DType::kBF16, DType::kF32}) {
        Case c(act, Precision::kModel);
        c.run();
        for (std::int64_t row = 0; row < kRows; ++row)
            for (std::int64_t h = 0; h < kQueryHeads; ++h)
                for (std::int64_t j = 0; j < kDim; ++j)
                    ASSERT_EQ(c.gate.at((row * kQueryHeads + h) * kDim + j),
                              c.qg.at(((row * kQueryHeads + h) * 2 + 1) * kDim + j));
    }
}

TEST(QkNormRopeGate, LeavesDeadRowsUnreadAndZeroesTheirOutputs) {
    Case all(DType::kBF16, Precision::kModel);
    Case some(DType::kBF16, Precision::kModel);
    some.n_live.set(0, 4);
    some.qg.poison(4, 2);
    some.k.poison(4, 2);
    some.positions.poison(4, 2);
    all.run();
    some.run();
    for (std::int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(some.q.row_bits(i), all.q.row_bits(i));
        EXPECT_EQ(some.k_out.row_bits(i), all.k_out.row_bits(i));
    }
    for (std::int64_t i = 4; i < kRows; ++i) {
        EXPECT_TRUE(some.q.row_is_zero(i));
        EXPECT_TRUE(some.gate.row_is_zero(i));
        EXPECT_TRUE(some.k_out.row_is_zero(i));
    }
}

TEST(QkNormRopeGate, GivesARowTheSameBitsAloneAndMayWriteKeysInPlace) {
    Case batch(DType::kBF16, Precision::kModel);
    Case alone(DType::kBF16, Precision::kModel);
    batch.run(2);
    alone.args.qg = alone.args.qg.slice_rows(4, 1);
    alone.args.k = alone.args.k.slice_rows(4, 1);
    alone.args.positions = alone.args.positions.slice_rows(4, 1);
    alone.args.q = alone.args.q.slice_rows(4, 1);
    alone.args.gate = alone.args.gate.slice_rows(4, 1);
    alone.args.k_out = alone.k.view().slice_rows(4, 1);
    alone.args.n_live = {};
    alone.run();
    EXPECT_EQ(alone.q.row_bits(4), batch.q.row_bits(4));
    EXPECT_EQ(alone.gate.row_bits(4), batch.gate.row_bits(4));
    EXPECT_EQ(alone.k.row_bits(4), batch.k_out.row_bits(4));
}

TEST(QkNormRopeGate, RefusesWrongArguments) {
    Case c(DType::kBF16, Precision::kModel);
    QkNormRopeGateArgs args = c.args;
    args.qg.shape[2] = kDim;
    EXPECT_EQ(check(args).message(), "qk_norm_rope_gate: qg dim 2: expected 2dh=80, got 40");
    args = c.args;
    args.gate.shape[1] = 80;
    EXPECT_EQ(check(args).message(), "qk_norm_rope_gate: gate dim 1: expected 120, got 80");
    args = c.args;
    args.rotary_dim = 42;
    EXPECT_EQ(check(args).message(),
              "qk_norm_rope_gate: rotary_dim: expected an even number in [2, dh=40], got 42");
    args.rotary_dim = 3;
    EXPECT_EQ(check(args).message(),
              "qk_norm_rope_gate: rotary_dim: expected an even number in [2, dh=40], got 3");
    args = c.args;
    args.k_norm.shape[0] = 8;
    EXPECT_EQ(check(args).message(), "qk_norm_rope_gate: k_norm dim 0: expected dh=40, got 8");
    args = c.args;
    args.rope_theta = 0;
    EXPECT_EQ(check(args).message(),
              "qk_norm_rope_gate: rope_theta: expected a positive number, got 0");
}

TEST(QkNormRopeGate, CountsEachTensorOnce) {
    const Case c(DType::kBF16, Precision::kModel);
    const std::int64_t q = kRows * kQueryHeads * kDim, k = kRows * kKvHeads * kDim;
    const Cost expected{.read_bytes = (2 * q + k) * 2 + kRows * 4 + 4 + kDim * 2 + kDim * 4,
                        .write_bytes = (2 * q + k) * 2,
                        // Five an element for the norm, three a rotary channel.
                        .flops = kRows * (kQueryHeads + kKvHeads) * (5 * kDim + 3 * kRotary)};
    EXPECT_EQ(cost(c.args), expected);
}

} // namespace
} // namespace lr::ops
