// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/recurrent_update.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kRows = 5, kHk = 2, kDk = 32, kDv = 16, kSlots = 7;

struct Case {
    std::int64_t hv;
    GuardedTensor q, k, v, b, a, a_log, dt_bias, slot, n_live, ssm_state, o;
    RecurrentUpdateArgs args;

    explicit Case(Precision precision, std::int64_t group = 3, DType state = DType::kF32)
        : hv(kHk * group), q(act_dtype(precision), {kRows, kHk, kDk}),
          k(act_dtype(precision), {kRows, kHk, kDk}), v(act_dtype(precision), {kRows, hv, kDv}),
          b(act_dtype(precision), {kRows, hv}), a(act_dtype(precision), {kRows, hv}),
          a_log(DType::kF32, {hv}), dt_bias(DType::kF16, {hv}), slot(DType::kI32, {kRows}),
          n_live(DType::kI32, {1}), ssm_state(state, {kSlots, hv, kDv, kDk}),
          o(act_dtype(precision), {kRows, hv, kDv}) {
        q.fill("q", 0.7);
        k.fill("k", 0.7);
        v.fill("v", 1.0);
        b.fill("b", 1.5);
        a.fill("a", 1.5);
        a_log.fill("a_log", 0.7);
        dt_bias.fill("dt_bias", 1.0);
        ssm_state.fill("state", 0.3);
        slot.set_all({4, -1, 0, 6, 2});
        n_live.set(0, kRows - 1);
        for (GuardedTensor* x : {&q, &k, &v, &b, &a}) {
            x->poison(1, 1); // slot -1
            x->poison(kRows - 1, 1);
        }
        for (std::int64_t untouched : {1, 2, 3, 5})
            ssm_state.poison(untouched, 1);
        args = {.q = q,
                .k = k,
                .v = v,
                .b = b,
                .a = a,
                .a_log = a_log,
                .dt_bias = dt_bias,
                .slot = slot,
                .n_live = n_live,
                .ssm_state = ssm_state,
                .o = o,
                .precision = precision};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::recurrent_update, args, threads); }
};

struct Head {
    std::vector<double> state, o; // [dv, dk], [dv]
};

// The recurrence of one row and head in double, from the state before it.
Head oracle(Case& c, GuardedTensor& before, std::int64_t row, std::int64_t head) {
    const std::int64_t key_head = head / (c.hv / kHk);
    double q_squares = 1e-6, k_squares = 1e-6;
    std::vector<double> qn, kn;
    for (std::int64_t i = 0; i < kDk; ++i) {
        qn.push_back(c.q.at((row * kHk + key_head) * kDk + i));
        kn.push_back(c.k.at((row * kHk + key_head) * kDk + i));
        q_squares += qn.back() * qn.back();
        k_squares += kn.back() * kn.back();
    }
    for (std::size_t i = 0; i < qn.size(); ++i) {
        qn[i] /= std::sqrt(q_squares) * std::sqrt(double{kDk});
        kn[i] /= std::sqrt(k_squares);
    }
    const std::int64_t gate = row * c.hv + head;
    const double alpha =
        std::exp(-std::exp(c.a_log.at(head)) * softplus(c.a.at(gate) + c.dt_bias.at(head)));
    const double beta = rounded(c.args.precision, sigmoid(c.b.at(gate)));
    const auto slot = static_cast<std::int64_t>(c.slot.at(row));
    Head out;
    for (std::int64_t i = 0; i < kDv; ++i) {
        std::vector<double> s;
        double read = 0, o = 0;
        for (std::int64_t j = 0; j < kDk; ++j) {
            s.push_back(alpha * before.at(((slot * c.hv + head) * kDv + i) * kDk + j));
            read += s.back() * kn[static_cast<std::size_t>(j)];
        }
        const double d = beta * (c.v.at((row * c.hv + head) * kDv + i) - read);
        for (std::size_t j = 0; j < s.size(); ++j) {
            s[j] += d * kn[j];
            o += s[j] * qn[j];
        }
        out.o.push_back(o);
        out.state.insert(out.state.end(), s.begin(), s.end());
    }
    return out;
}

void expect_oracle(Precision precision, std::int64_t group, DType state) {
    Case c(precision, group, state);
    GuardedTensor before = c.ssm_state;
    c.run();
    // Values are below 8. The chain has about 6 roundings of S, a read of 32 terms (tree depth 6
    // and the product), 6 of the norms and 10 of the gates, whose errors the decay rate (below 10)
    // may amplify: 40 roundings of 2^-24 relative to 8.
    const double f32_bound = 40 * kF32Error * 8;
    for (std::int64_t row : {0, 2, 3})
        for (std::int64_t head = 0; head < c.hv; ++head) {
            const Head expected = oracle(c, before, row, head);
            const auto slot = static_cast<std::int64_t>(c.slot.at(row));
            for (std::int64_t i = 0; i < kDv; ++i) {
                const double o = expected.o[static_cast<std::size_t>(i)];
                EXPECT_TRUE(near(c.o.at((row * c.hv + head) * kDv + i), o,
                                 f32_bound + store_error(c.o.view().dtype) * std::abs(o)))
                    << row << " " << head << " " << i;
            }
            for (std::int64_t i = 0; i < kDv * kDk; ++i) {
                const double s = expected.state[static_cast<std::size_t>(i)];
                EXPECT_TRUE(near(c.ssm_state.at((slot * c.hv + head) * kDv * kDk + i), s,
                                 f32_bound + store_error(state) * std::abs(s)))
                    << row << " " << head << " " << i;
            }
        }
    EXPECT_TRUE(c.o.row_is_zero(1));
    EXPECT_TRUE(c.o.row_is_zero(kRows - 1));
    EXPECT_TRUE(c.o.guards_intact());
    EXPECT_TRUE(c.ssm_state.guards_intact());
    for (std::int64_t untouched : {1, 2, 3, 5})
        EXPECT_EQ(c.ssm_state.row_bits(untouched), before.row_bits(untouched));
}

TEST(RecurrentUpdate, MatchesADoubleOracleInF32) {
    for (std::int64_t group : {1, 2, 3})
        expect_oracle(Precision::kF32, group, DType::kF32);
}

TEST(RecurrentUpdate, MatchesADoubleOracleInBf16) {
    expect_oracle(Precision::kModel, 3, DType::kF32);
    expect_oracle(Precision::kModel, 2, DType::kBF16);
}

// One key channel, so that S kn and S qn are single products; v = 1, S = 0: o = beta.
TEST(RecurrentUpdate, RoundsBetaToBf16InTheModelsPrecisionOnly) {
    for (Precision precision : {Precision::kModel, Precision::kF32}) {
        Case c(Precision::kF32, 1);
        c.args.precision = precision;
        c.ssm_state.fill("zero", 0);
        c.q.fill("zero", 0);
        c.k.fill("zero", 0);
        c.v.fill("one", 0, 1);
        c.b.fill("b", 0, 0.3);
        c.q.set(0, 1e6);
        c.k.set(0, 1e6);
        c.run();
        const double beta = 1 / (1 + std::exp(-double{0.3f}));
        const double expected = rounded(precision, beta);
        EXPECT_NEAR(c.ssm_state.at(4 * c.hv * kDv * kDk), expected, 2e-7);
        EXPECT_NEAR(c.o.at(0), expected / std::sqrt(double{kDk}), 1e-7);
    }
}

TEST(RecurrentUpdate, BitsDoNotDependOnThreadsOrBatchMates) {
    Case one(Precision::kModel), two(Precision::kModel), alone(Precision::kModel);
    one.run();
    two.run(2);
    EXPECT_EQ(one.o.all_bytes(), two.o.all_bytes());
    EXPECT_EQ(one.ssm_state.all_bytes(), two.ssm_state.all_bytes());
    alone.slot.set_all({-1, -1, -1, 6, -1});
    alone.run();
    EXPECT_EQ(one.o.row_bits(3), alone.o.row_bits(3));
    EXPECT_EQ(one.ssm_state.row_bits(6), alone.ssm_state.row_bits(6));
}

TEST(RecurrentUpdate, OutputMayBeV) {
    Case apart(Precision::kModel), aliased(Precision::kModel);
    aliased.args.o = aliased.v;
    apart.run();
    aliased.run();
    EXPECT_EQ(apart.o.all_bytes(), aliased.v.all_bytes());
}

TEST(RecurrentUpdate, RefusesShapesThatDisagree) {
    Case c(Precision::kModel);
    RecurrentUpdateArgs bad = c.args;
    bad.v.shape[1] = 4;
    EXPECT_EQ(check(bad).message(), "recurrent_update: b dim 1: expected Hv=4, got 6");
    bad = c.args;
    std::swap(bad.ssm_state.shape[2], bad.ssm_state.shape[3]);
    EXPECT_EQ(check(bad).message(), "recurrent_update: ssm_state dim 2: expected dv=16, got 32");
    bad = c.args;
    for (ConstView* x : {&bad.q, &bad.k})
        x->shape[1] = 4;
    EXPECT_EQ(check(bad).message(),
              "recurrent_update: expected Hv a multiple of Hk, got Hv=6 Hk=4");
    bad = c.args;
    for (ConstView* x : {&bad.q, &bad.k})
        x->shape[2] = 24;
    bad.ssm_state.shape[3] = 24;
    EXPECT_EQ(check(bad).message(), "recurrent_update: expected dk a multiple of 16, got 24");
    bad = c.args;
    bad.a_log = {};
    EXPECT_EQ(check(bad).message(), "recurrent_update: a_log: expected a tensor, got none");
}

TEST(RecurrentUpdate, CostCountsOneSlotForEachRow) {
    Case c(Precision::kModel);
    const Cost got = cost(c.args);
    EXPECT_EQ(got.flops, 7 * kRows * c.hv * kDv * kDk);
    EXPECT_EQ(got.state_bytes, kRows * c.hv * kDv * kDk * 4);
    EXPECT_EQ(got.write_bytes, got.state_bytes + kRows * c.hv * kDv * 2);
}

} // namespace
} // namespace lr::ops
