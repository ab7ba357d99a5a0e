// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/quant/quant.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "ops/quant/nvfp4_quant.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lr::ops {
namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kColumns = 48;

struct Case {
    GuardedTensor x, q, scale;
    GuardedTensor n_live{DType::kI32, {1}};
    Nvfp4QuantArgs args;

    explicit Case(DType act)
        : x(act, {kRows, kColumns}, kColumns + 8), q(DType::kE2M1, {kRows, kColumns}),
          scale(DType::kE4M3, {kRows, kColumns / 16}) {
        x.fill("x", 1.5);
        n_live.set(0, kRows);
        args = {.x = x, .n_live = n_live, .q = q, .scale = scale, .encode_scale = 20.0f};
    }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::nvfp4_quant(args, pool);
    }
    double scale_at(std::int64_t row, std::int64_t block) {
        return numerics::decode_e4m3(
            static_cast<std::uint8_t>(scale.at(row * (kColumns / 16) + block)));
    }
    double value_at(std::int64_t row, std::int64_t column) {
        const auto* codes = args.q.row_as<std::uint8_t>(row);
        const double code = numerics::decode_e2m1(numerics::unpack_e2m1(codes, column));
        return code * scale_at(row, column / 16) / double{args.encode_scale};
    }
};

// sf is the E4M3 value nearest to G amax / 6 (relative 2^-4 in the normal range); an element is off
// by at most half the widest E2M1 step, 1, of its block's unit, or by what saturation at 6 cuts off
// when sf was rounded down.
TEST(Nvfp4Quant, StaysWithinHalfACodeStepOfEachElement) {
    for (DType act : {DType::kBF16, DType::kF32}) {
        Case c(act);
        c.run();
        for (std::int64_t i = 0; i < kRows; ++i)
            for (std::int64_t b = 0; b < kColumns / 16; ++b) {
                double amax = 0;
                for (std::int64_t j = b * 16; j < b * 16 + 16; ++j)
                    amax = std::max(amax, std::abs(c.x.at(i * kColumns + j)));
                const double ideal = 20.0 * amax / 6.0;
                EXPECT_NEAR(c.scale_at(i, b), ideal, ideal / 16);
                const double unit = c.scale_at(i, b) / 20.0;
                const double bound = std::max(unit, amax - 6 * unit) * (1 + 1e-6);
                for (std::int64_t j = b * 16; j < b * 16 + 16; ++j)
                    EXPECT_NEAR(c.value_at(i, j), c.x.at(i * kColumns + j), bound);
            }
        EXPECT_TRUE(c.q.guards_intact());
        EXPECT_TRUE(c.scale.guards_intact());
    }
}

TEST(Nvfp4Quant, GivesAKnownBlockItsCodes) {
    Case c(DType::kF32);
    c.args.encode_scale = 2.0f;
    // amax 3: sf = 2 * 3 / 6 = 1, unit = 1/2; x / unit = 6, -1, 0.25 (tie to 0), 0.75 (tie to 1)
    // ...
    c.x.set_all({3, -0.5, 0.125, 0.375, 2, 1.75, 0, 0, 0, 0, 0, 0, 0, 0, 0, -3});
    c.run();
    const auto* codes = c.args.q.row_as<std::uint8_t>(0);
    EXPECT_EQ(c.scale.at(0), 0x38); // 1.0
    EXPECT_EQ(codes[0], 0x7 | 0xA << 4);
    EXPECT_EQ(codes[1], 0x0 | 0x2 << 4);
    EXPECT_EQ(codes[2], 0x6 | 0x6 << 4); // 4; 3.5 is a tie, to 4
    EXPECT_EQ(codes[7], 0x0 | 0xF << 4);
}

TEST(Nvfp4Quant, GivesAZeroBlockZeroCodes) {
    Case c(DType::kBF16);
    for (std::int64_t j = 0; j < 16; ++j)
        c.x.set(j, 0.0);
    c.run();
    for (std::int64_t j = 0; j < 8; ++j)
        EXPECT_EQ(c.args.q.row_as<std::uint8_t>(0)[j], 0);
    EXPECT_NE(c.args.q.row_as<std::uint8_t>(0)[8], 0);
}

TEST(Nvfp4Quant, MarksABlockWithANaN) {
    Case c(DType::kBF16);
    c.x.set(20, std::nan(""));
    c.run();
    EXPECT_TRUE(std::isnan(c.scale_at(0, 1)));
    EXPECT_FALSE(std::isnan(c.scale_at(0, 0)));
    EXPECT_FALSE(std::isnan(c.scale_at(1, 1)));
}

TEST(Nvfp4Quant, ZeroesDeadRowsWithoutReadingThem) {
    Case all(DType::kBF16);
    Case some(DType::kBF16);
    some.n_live.set(0, 2);
    some.x.poison(2, kRows - 2);
    all.run();
    some.run(2);
    for (std::int64_t i = 0; i < kRows; ++i) {
        if (i < 2) {
            EXPECT_EQ(some.q.row_bits(i), all.q.row_bits(i));
            EXPECT_EQ(some.scale.row_bits(i), all.scale.row_bits(i));
        } else {
            EXPECT_TRUE(some.q.row_is_zero(i));
            EXPECT_TRUE(some.scale.row_is_zero(i));
        }
    }
}

TEST(Nvfp4Quant, RefusesWrongArguments) {
    Case c(DType::kBF16);
    Nvfp4QuantArgs args = c.args;
    args.x.shape[1] = args.q.shape[1] = 40;
    EXPECT_EQ(check(args).message(),
              "nvfp4_quant: x dim 1: expected K to be a multiple of 16, got 40");
    args = c.args;
    args.scale.shape[1] = 2;
    EXPECT_EQ(check(args).message(), "nvfp4_quant: scale dim 1: expected 3, got 2");
    args = c.args;
    args.encode_scale = 0;
    EXPECT_EQ(check(args).message(),
              "nvfp4_quant: encode_scale: expected a positive normal number, got 0");
}

TEST(Nvfp4Quant, CountsHalfAByteForACode) {
    const Cost expected{.read_bytes = kRows * kColumns * 2 + 4,
                        .write_bytes = kRows * kColumns / 2 + kRows * kColumns / 16,
                        .flops = 4 * kRows * kColumns};
    EXPECT_EQ(cost(Case(DType::kBF16).args), expected);
}

} // namespace
} // namespace lr::ops
