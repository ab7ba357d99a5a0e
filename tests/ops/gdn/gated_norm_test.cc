// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/gated_norm.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kRows = 9, kHv = 5, kDv = 48;

struct Case {
    GuardedTensor o, z, n_live, weight, y;
    GatedNormArgs args;

    explicit Case(DType act)
        : o(act, {kRows, kHv, kDv}), z(act, {kRows, kHv, kDv}, 3 * kHv * kDv),
          n_live(DType::kI32, {1}), weight(DType::kF32, {kDv}), y(act, {kRows, kHv * kDv}) {
        fill_rows(o, "o", 0.2, kRows - 2);
        fill_rows(z, "z", 2.0, kRows - 2);
        weight.fill("weight", 0.5, 1.0);
        n_live.set(0, kRows - 2);
        args = {.o = o, .z = z, .n_live = n_live, .weight = weight, .y = y, .eps = 1e-6f};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::gated_norm, args, threads); }
};

void expect_oracle(DType act) {
    Case c(act);
    c.run();
    for (std::int64_t head = 0; head < (kRows - 2) * kHv; ++head) {
        double squares = 0;
        for (std::int64_t i = 0; i < kDv; ++i)
            squares += c.o.at(head * kDv + i) * c.o.at(head * kDv + i);
        const double inv = 1 / std::sqrt(squares / double{kDv} + double{1e-6f});
        for (std::int64_t i = 0; i < kDv; ++i) {
            const double z = c.z.at(head * kDv + i);
            const double expected = c.o.at(head * kDv + i) * inv * c.weight.at(i) * z * sigmoid(z);
            // The mean's tree 8 (halved by the root), root and reciprocal 2, sigmoid 3, products 4.
            const double bound = (14 * kF32Error + store_error(act)) * std::abs(expected);
            EXPECT_TRUE(near(c.y.at(head * kDv + i), expected, bound)) << head << " " << i;
        }
    }
    EXPECT_TRUE(c.y.row_is_zero(kRows - 1));
    EXPECT_TRUE(c.y.row_is_zero(kRows - 2));
    EXPECT_TRUE(c.y.guards_intact());
}

TEST(GatedNorm, MatchesADoubleOracleInF32) {
    expect_oracle(DType::kF32);
}

TEST(GatedNorm, MatchesADoubleOracleInBf16) {
    expect_oracle(DType::kBF16);
}

TEST(GatedNorm, NormalisesOverTheHeadAndGatesAfterwards) {
    Case c(DType::kF32);
    c.weight.fill("two", 0, 2.0);
    c.o.fill("five", 0, 5.0);
    c.z.fill("large", 0, 64.0); // sigmoid is 1
    c.run();
    for (std::int64_t i = 0; i < (kRows - 2) * kHv * kDv; ++i)
        EXPECT_NEAR(c.y.at(i), 128.0, 1e-4);
    c.o.fill("zero", 0);
    c.run();
    EXPECT_EQ(c.y.at(0), 0);
}

TEST(GatedNorm, BitsDoNotDependOnThreadsOrBatchMatesAndOutputMayBeO) {
    Case one(DType::kBF16), two(DType::kBF16), alone(DType::kBF16), aliased(DType::kBF16);
    one.run();
    two.run(2);
    EXPECT_EQ(one.y.all_bytes(), two.y.all_bytes());
    for (std::int64_t i = 1; i < kRows; ++i) {
        alone.o.poison(i, 1);
        alone.z.poison(i, 1);
    }
    alone.n_live.set(0, 1);
    alone.run();
    EXPECT_EQ(one.y.row_bits(0), alone.y.row_bits(0));
    aliased.args.y = View(aliased.o.view().data, DType::kBF16, {kRows, kHv * kDv});
    aliased.run(2);
    EXPECT_EQ(one.y.all_bytes(), aliased.o.all_bytes());
}

TEST(GatedNorm, RefusesShapesThatDisagree) {
    Case c(DType::kBF16);
    GatedNormArgs bad = c.args;
    bad.z.shape[2] = 32;
    EXPECT_EQ(check(bad).message(), "gated_norm: z dim 2: expected dv=48, got 32");
    bad = c.args;
    bad.y.shape = {kRows, kHv, kDv};
    EXPECT_EQ(check(bad).message(), "gated_norm: y: expected 2 dims, got shape [9, 5, 48]");
    bad = c.args;
    bad.eps = 0;
    EXPECT_EQ(check(bad).message(), "gated_norm: expected eps > 0, got 0");
}

} // namespace
} // namespace lr::ops
