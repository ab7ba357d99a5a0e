// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/gdn.h"
#include "ops/gdn/qkv_split.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kRows = 20, kHk = 2, kHv = 3, kDk = 16, kDv = 32;
constexpr std::int64_t kKeys = kHk * kDk, kValues = kHv * kDv, kChannels = 2 * kKeys + kValues;

struct Case {
    GuardedTensor x, n_live, q, k, v;
    QkvSplitArgs args;

    explicit Case(DType act)
        : x(act, {kRows, kChannels}, kChannels + 8), n_live(DType::kI32, {1}),
          q(act, {kRows, kHk, kDk}), k(act, {kRows, kHk, kDk}), v(act, {kRows, kHv, kDv}) {
        fill_rows(x, "x", 1.0, kRows - 1);
        n_live.set(0, kRows - 1);
        args = {.x = x, .n_live = n_live, .q = q, .k = k, .v = v};
    }
    Case(const Case&) = delete;
};

TEST(QkvSplit, CopiesEachPartAndZeroesPadding) {
    for (DType act : {DType::kBF16, DType::kF32}) {
        Case c(act);
        ASSERT_TRUE(check(c.args).ok()) << check(c.args).message();
        ThreadPool pool(2);
        cpu::qkv_split(c.args, pool);
        for (std::int64_t row = 0; row < kRows - 1; ++row)
            for (std::int64_t i = 0; i < kChannels; ++i) {
                const double got = i < kKeys       ? c.q.at(row * kKeys + i)
                                   : i < 2 * kKeys ? c.k.at(row * kKeys + i - kKeys)
                                                   : c.v.at(row * kValues + i - 2 * kKeys);
                ASSERT_EQ(got, c.x.at(row * kChannels + i)) << row << " " << i;
            }
        for (GuardedTensor* out : {&c.q, &c.k, &c.v}) {
            EXPECT_TRUE(out->row_is_zero(kRows - 1));
            EXPECT_TRUE(out->guards_intact());
        }
    }
}

TEST(QkvSplit, RefusesShapesThatDisagree) {
    Case c(DType::kBF16);
    QkvSplitArgs bad = c.args;
    bad.x.shape[1] = 128;
    EXPECT_EQ(check(bad).message(), "qkv_split: x dim 1: expected C=160, got 128");
    bad = c.args;
    bad.v.dtype = DType::kF32;
    EXPECT_EQ(check(bad).message(), "qkv_split: v: expected dtype bf16, got f32");
}

} // namespace
} // namespace lr::ops
