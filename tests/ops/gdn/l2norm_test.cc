// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/l2norm.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kRows = 11, kHeads = 3, kWidth = 48;

struct Case {
    GuardedTensor x, n_live, y;
    L2normArgs args;

    explicit Case(DType act)
        : x(act, {kRows, kHeads, kWidth}), n_live(DType::kI32, {1}),
          y(act, {kRows, kHeads, kWidth}) {
        fill_rows(x, "x", 0.02, kRows - 1);
        n_live.set(0, kRows - 1);
        args = {.x = x, .n_live = n_live, .y = y};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::l2norm, args, threads); }
};

TEST(L2norm, MatchesADoubleOracle) {
    for (DType act : {DType::kF32, DType::kBF16}) {
        Case c(act);
        for (std::int64_t i = 0; i < kWidth; ++i)
            c.x.set(kWidth + i, 0); // a zero head
        c.run();
        for (std::int64_t head = 0; head < (kRows - 1) * kHeads; ++head) {
            double squares = 1e-6; // the heads are short enough for it to show
            for (std::int64_t i = 0; i < kWidth; ++i)
                squares += c.x.at(head * kWidth + i) * c.x.at(head * kWidth + i);
            for (std::int64_t i = 0; i < kWidth; ++i) {
                const double expected = c.x.at(head * kWidth + i) / std::sqrt(squares);
                // Square and tree 8, eps 1 (halved by the root), root 1, quotient 1.
                EXPECT_TRUE(near(c.y.at(head * kWidth + i), expected,
                                 (7 * kF32Error + store_error(act)) * std::abs(expected)))
                    << head << " " << i;
            }
        }
        EXPECT_TRUE(c.y.row_is_zero(kRows - 1));
        EXPECT_TRUE(c.y.guards_intact());
    }
}

TEST(L2norm, BitsDoNotDependOnThreadsOrBatchMatesAndOutputMayBeX) {
    Case one(DType::kBF16), two(DType::kBF16), alone(DType::kBF16), aliased(DType::kBF16);
    one.run();
    two.run(2);
    EXPECT_EQ(one.y.all_bytes(), two.y.all_bytes());
    alone.n_live.set(0, 1);
    alone.x.poison(1, kRows - 1);
    alone.run();
    EXPECT_EQ(one.y.row_bits(0), alone.y.row_bits(0));
    aliased.args.y = aliased.x;
    aliased.run(2);
    EXPECT_EQ(one.y.all_bytes(), aliased.x.all_bytes());
}

TEST(L2norm, RefusesShapesThatDisagree) {
    Case c(DType::kBF16);
    L2normArgs bad = c.args;
    bad.y.shape[1] = 2;
    EXPECT_EQ(check(bad).message(), "l2norm: y dim 1: expected H=3, got 2");
    bad = c.args;
    bad.x.dtype = DType::kE4M3;
    EXPECT_EQ(check(bad).message(), "l2norm: x: expected dtype bf16 or f32, got e4m3");
}

} // namespace
} // namespace lr::ops
