// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "ops/gemm/linear_splitk.h"
#include "tests/ops/gemm/product_case.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lr::ops {
namespace {

struct Case {
    ActivationCase x;
    WeightCase w;
    GuardedTensor partial;
    LinearSplitkArgs args;

    Case(DType act, std::int64_t n, std::int64_t k, std::int64_t splits)
        : x(ActivationFormat::kPlain, act, n, k, 1),
          w(WeightFormat::kPlain, DType::kBF16, 0, {3, 4}, k, 2),
          partial(DType::kF32, {splits, n, 7}) {
        args.x = x.x();
        args.w = w.weight();
        args.partial = partial;
    }
};

TEST(LinearSplitk, EachRunIsADotOfItsColumns) {
    ThreadPool pool(2);
    // 300 columns in 3 runs of 128 (the last has 44); 100 in 4 runs of 64, of which two are empty.
    for (auto [k, splits, run] : {std::array<std::int64_t, 3>{300, 3, 128}, {100, 4, 64}}) {
        EXPECT_EQ(splitk_run(k, splits), run);
        Case c(DType::kBF16, 5, k, splits);
        ASSERT_TRUE(check(c.args).ok()) << check(c.args).message();
        cpu::linear_splitk(c.args, pool);
        EXPECT_TRUE(c.partial.guards_intact());
        for (std::int64_t s = 0; s < splits; ++s)
            for (std::int64_t i = 0; i < 5; ++i)
                for (std::int64_t j = 0; j < 7; ++j) {
                    const std::int64_t first = std::min(s * run, k);
                    const std::int64_t count = std::min(run, k - first);
                    const float expected = plain_dot(c.x.row(i).values.data() + first,
                                                     c.w.row(0, j).values.data() + first, count);
                    ASSERT_EQ(c.partial.at((s * 5 + i) * 7 + j), expected);
                }
    }
}

TEST(LinearSplitk, DeadRowsAreZeroAndNotRead) {
    ThreadPool pool(1);
    Case full(DType::kF32, 5, 130, 2), c(DType::kF32, 5, 130, 2);
    GuardedTensor n_live(DType::kI32, {1});
    n_live.set(0, 2);
    c.args.n_live = n_live;
    c.x.data().poison(2, 3);
    cpu::linear_splitk(full.args, pool);
    cpu::linear_splitk(c.args, pool);
    for (std::int64_t e = 0; e < c.partial.count(); ++e)
        EXPECT_EQ(c.partial.at(e), e / 7 % 5 < 2 ? full.partial.at(e) : 0.0);
}

TEST(LinearSplitk, ReadsAShardOfColumns) {
    ThreadPool pool(1);
    Case dense(DType::kBF16, 3, 192, 2), sharded(DType::kBF16, 3, 192, 2);
    WeightCase whole(WeightFormat::kPlain, DType::kBF16, 0, {3, 4}, 320, 5);
    for (std::size_t part : {0u, 1u}) {
        sharded.w.parts()[part].data = whole.parts()[part].data.slice_columns(128, 192);
        for (std::int64_t j = 0; j < dense.w.parts()[part].data.rows(); ++j)
            std::memcpy(dense.w.data(part).view().row(j), sharded.w.parts()[part].data.row(j),
                        2 * 192);
    }
    cpu::linear_splitk(dense.args, pool);
    cpu::linear_splitk(sharded.args, pool);
    EXPECT_EQ(sharded.partial.all_bytes(), dense.partial.all_bytes());
}

TEST(LinearSplitk, RefusesQuantisedWeightsAndWrongShapes) {
    Case c(DType::kBF16, 5, 128, 2);
    LinearSplitkArgs args = c.args;
    args.w.format = WeightFormat::kNvfp4;
    EXPECT_EQ(check(args).message(), "linear_splitk: w: expected a plain weight, got nvfp4");
    args = c.args;
    args.partial.shape[1] = 4;
    EXPECT_EQ(check(args).message(), "linear_splitk: partial dim 1: expected n=5, got 4");
    EXPECT_EQ(cost(c.args).flops, 2 * 5 * 7 * 128);
    EXPECT_EQ(cost(c.args).write_bytes, 4 * 2 * 5 * 7);
}

} // namespace
} // namespace lr::ops
