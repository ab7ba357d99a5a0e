// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/quant/quant.h"
#include "numerics/e4m3.h"
#include "ops/quant/fp8_quant.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lr::ops {
namespace {

constexpr std::int64_t kRows = 9;

struct Case {
    GuardedTensor x, q, scale;
    GuardedTensor n_live{DType::kI32, {1}};
    Fp8QuantArgs args;

    Case(DType act, std::int64_t k, std::int32_t group)
        : x(act, {kRows, k}, k + 4), q(DType::kE4M3, {kRows, k}, k + 3),
          scale(DType::kF32, group == 0 ? Shape{kRows} : Shape{kRows, (k + 127) / 128}) {
        x.fill("x", 2.0);
        n_live.set(0, kRows);
        args = {.x = x, .n_live = n_live, .q = q, .scale = scale, .group = group};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::fp8_quant(args, pool);
    }
};

// The code nearest to x / s among all finite ones; on a tie the even code.
std::uint8_t nearest_code(float x, float s) {
    const double target = static_cast<double>(x / s);
    std::uint8_t best = 0;
    double best_distance = std::numeric_limits<double>::infinity();
    for (int code = 0; code < 127; ++code) {
        const double value = numerics::decode_e4m3(static_cast<std::uint8_t>(code));
        const double distance = std::abs(std::abs(target) - value);
        if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
            best = static_cast<std::uint8_t>(code);
            best_distance = distance;
        }
    }
    return static_cast<std::uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
}

// Codes and scales of columns [first, first + count) of every row against the definition.
void expect_run(Case& c, std::int64_t k, std::int64_t first, std::int64_t count,
                std::int64_t scales, std::int64_t scale_column) {
    for (std::int64_t i = 0; i < kRows; ++i) {
        float amax = 0;
        for (std::int64_t j = first; j < first + count; ++j)
            amax = std::max(amax, std::abs(static_cast<float>(c.x.at(i * k + j))));
        const float s = amax / 448.0f;
        EXPECT_EQ(static_cast<float>(c.scale.at(i * scales + scale_column)), s);
        for (std::int64_t j = first; j < first + count; ++j)
            ASSERT_EQ(c.q.at(i * k + j), nearest_code(static_cast<float>(c.x.at(i * k + j)), s))
                << i << ", " << j;
    }
}

TEST(Fp8Quant, GivesEachTokenItsScale) {
    for (DType act : {DType::kBF16, DType::kF32}) {
        Case c(act, 200, 0);
        c.run();
        expect_run(c, 200, 0, 200, 1, 0);
        EXPECT_TRUE(c.q.guards_intact());
        EXPECT_TRUE(c.scale.guards_intact());
    }
}

TEST(Fp8Quant, GivesEachGroupOf128ItsScaleAndAShortOneAtTheEnd) {
    Case c(DType::kBF16, 300, 128);
    c.run();
    expect_run(c, 300, 0, 128, 3, 0);
    expect_run(c, 300, 128, 128, 3, 1);
    expect_run(c, 300, 256, 44, 3, 2);
}

TEST(Fp8Quant, UsesTheStaticScaleAndSaturates) {
    Case c(DType::kF32, 16, 0);
    c.args.scale = {};
    c.args.static_scale = 0.25f;
    c.x.set(0, 1.0);   // 4
    c.x.set(1, 1000);  // 4000 saturates at 448
    c.x.set(2, -1000); // -448
    c.x.set(3, 0.25);  // 1
    c.run();
    EXPECT_EQ(c.q.at(0), 0x48);
    EXPECT_EQ(c.q.at(1), 0x7E);
    EXPECT_EQ(c.q.at(2), 0xFE);
    EXPECT_EQ(c.q.at(3), 0x38);
}

TEST(Fp8Quant, GivesAZeroRowZeroCodesAndATinyScale) {
    Case c(DType::kBF16, 128, 0);
    for (std::int64_t j = 0; j < 128; ++j)
        c.x.set(2 * 128 + j, 0.0);
    c.run();
    EXPECT_TRUE(c.q.row_is_zero(2));
    EXPECT_GT(c.scale.at(2), 0.0);
    EXPECT_LT(c.scale.at(2), 1e-30);
}

TEST(Fp8Quant, ShowsANaNInItsRowAlone) {
    Case c(DType::kBF16, 128, 0);
    c.x.set(3 * 128 + 5, std::nan(""));
    c.run();
    EXPECT_TRUE(std::isnan(c.scale.at(3)));
    EXPECT_EQ(c.q.at(3 * 128), 0x7F);
    EXPECT_FALSE(std::isnan(c.scale.at(2)));
    EXPECT_NE(c.q.at(2 * 128), 0x7F);
}

TEST(Fp8Quant, ZeroesDeadRowsWithoutReadingThem) {
    for (std::int32_t group : {0, 128}) {
        Case all(DType::kBF16, 256, group);
        Case some(DType::kBF16, 256, group);
        some.n_live.set(0, 4);
        some.x.poison(4, kRows - 4);
        all.run();
        some.run(2);
        for (std::int64_t i = 0; i < 4; ++i)
            EXPECT_EQ(some.q.row_bits(i), all.q.row_bits(i));
        for (std::int64_t i = 4; i < kRows; ++i) {
            EXPECT_TRUE(some.q.row_is_zero(i));
            EXPECT_TRUE(some.scale.row_is_zero(i));
        }
    }
}

TEST(Fp8Quant, RefusesWrongArguments) {
    Case c(DType::kBF16, 256, 128);
    Fp8QuantArgs args = c.args;
    args.group = 64;
    EXPECT_EQ(check(args).message(), "fp8_quant: group: expected 0 or 128, got 64");
    args = c.args;
    args.scale.shape[1] = 3;
    EXPECT_EQ(check(args).message(), "fp8_quant: scale dim 1: expected 2, got 3");
    args = c.args;
    args.group = 0;
    EXPECT_EQ(check(args).message(), "fp8_quant: scale: expected 1 dims, got shape [9, 2]");
    args.scale = {};
    EXPECT_EQ(check(args).message(),
              "fp8_quant: scale is absent: expected group 0 and static_scale > 0, got group 0 and "
              "static_scale 0");
    args = c.args;
    args.q.dtype = DType::kU8;
    EXPECT_EQ(check(args).message(), "fp8_quant: q: expected dtype e4m3, got u8");
}

TEST(Fp8Quant, CountsCodesAndScales) {
    Case c(DType::kBF16, 256, 128);
    const Cost expected{.read_bytes = kRows * 256 * 2 + 4,
                        .write_bytes = kRows * 256 + kRows * 2 * 4,
                        .flops = 3 * kRows * 256};
    EXPECT_EQ(cost(c.args), expected);
}

} // namespace
} // namespace lr::ops
