// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "ops/experts/experts_down.h"
#include "tests/ops/experts/expert_case.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

using A = ActivationFormat;
using W = WeightFormat;

struct Case {
    RowsCase rows;
    ActivationCase f;
    WeightCase w;
    GuardedTensor z;
    ExpertsDownArgs args;

    Case(A a, W format, DType act, std::vector<std::int32_t> counts, DType z_dtype = DType::kF32,
         std::int64_t d = 150, std::int64_t width = 144)
        : rows(std::move(counts), 4, 8, 1), f(a, act, rows.rows, width, 1),
          w(format, DType::kBF16, rows.local(), {d}, width, 2), z(z_dtype, {rows.rows, d}) {
        for (std::int64_t r = 0; r < rows.rows; ++r)
            if (!rows.live(r)) {
                f.data().poison(r, 1);
                if (!f.scale().empty())
                    f.scales().poison(r, 1);
            }
        args.f = f.x();
        args.f_scale = f.scale();
        args.start = rows.start;
        args.end = rows.end;
        args.w = w.weight();
        args.z = z;
        args.f_global = f.global();
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::experts_down(args, pool);
        EXPECT_TRUE(z.guards_intact());
    }
};

TEST(ExpertsDown, EveryProductHasTheBitsOfItsDefinitionAndDeadRowsStay) {
    for (auto [a, format] : {std::pair{A::kPlain, W::kPlain},
                             {A::kPlain, W::kFp8Block},
                             {A::kPlain, W::kFp8Channel},
                             {A::kPlain, W::kFp8Tensor},
                             {A::kPlain, W::kNvfp4},
                             {A::kFp8Token, W::kFp8Channel},
                             {A::kFp8Static, W::kFp8Tensor},
                             {A::kFp8Group, W::kFp8Block},
                             {A::kNvfp4, W::kNvfp4}}) {
        Case c(a, format, DType::kBF16, {0, 10, 1, 0, 3});
        c.run(2);
        for (std::int64_t e = 0; e < 5; ++e)
            for (std::int64_t r = c.rows.first(e); r < c.rows.last(e); ++r)
                for (std::int64_t j = 0; j < 150; ++j)
                    ASSERT_EQ(c.z.at(r * 150 + j), product_f32(c.f.row(r), c.w.row(e, j)))
                        << activation_format_name(a) << " x " << weight_format_name(format)
                        << " expert " << e << " row " << r << " column " << j;
        for (std::int64_t r = 0; r < c.rows.rows; ++r)
            if (!c.rows.live(r)) {
                for (std::byte b : c.z.row_bits(r))
                    ASSERT_EQ(b, std::byte{0xFF});
            }
    }
}

TEST(ExpertsDown, RoundsOnceAndDoesNotDependOnMatesOrThreads) {
    Case exact(A::kPlain, W::kPlain, DType::kBF16, {0, 19}, DType::kF32, 20, 48);
    Case c(A::kPlain, W::kPlain, DType::kBF16, {0, 19}, DType::kBF16, 20, 48);
    exact.run(2);
    c.run(1);
    for (std::int64_t i = 0; i < 19 * 20; ++i)
        ASSERT_EQ(c.z.at(i), numerics::round_bf16(static_cast<float>(exact.z.at(i))));
    for (std::int64_t r = 0; r < 19; ++r) {
        GuardedTensor alone(DType::kF32, {c.rows.rows, 20});
        exact.rows.start.set(1, static_cast<double>(r));
        exact.rows.end.set(1, static_cast<double>(r + 1));
        exact.args.z = alone;
        exact.run();
        ASSERT_EQ(alone.row_bits(r), exact.z.row_bits(r));
    }
}

TEST(ExpertsDown, RefusesWhatDoesNotFit) {
    Case c(A::kNvfp4, W::kNvfp4, DType::kBF16, {2, 2});
    ExpertsDownArgs args = c.args;
    args.z.shape[1] = 151;
    EXPECT_EQ(check(args).message(), "experts_down: z dim 1: expected D=150, got 151");
    args = c.args;
    args.f_scale.shape[1] = 8;
    EXPECT_EQ(check(args).message(), "experts_down: f_scale dim 1: expected 9, got 8");
    args = c.args;
    args.w.shape = {2, 150, 128};
    EXPECT_EQ(check(args).message(), "experts_down: w dim 2: expected I=144, got 128");
    args = c.args;
    args.load = {.tokens = 4, .per_token = 2, .experts = 2};
    EXPECT_EQ(cost(args).flops, 2 * 8 * 150 * 144);
    EXPECT_EQ(cost(args).weight_bytes, 2 * (150 * 72 + 150 * 9));
}

} // namespace
} // namespace lr::ops
