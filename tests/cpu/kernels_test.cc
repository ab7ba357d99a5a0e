// SPDX-License-Identifier: Apache-2.0
#include "cpu/dot_tile.h"
#include "cpu/kernels/kernels.h"
#include "cpu/rows.h"
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/f16.h"
#include "tests/cpu/coded_rows.h"
#include "tests/cpu/plain_dot.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace lr::cpu {
namespace {

constexpr std::array kAllCodes = {Codes::kF32, Codes::kBF16, Codes::kF16, Codes::kE4M3,
                                  Codes::kNvfp4};

// Dots of `rows` rows of x, lifted where the codes ask for it; [rows, columns + 1], the last column
// untouched.
std::vector<float> run(const Kernels& set, const Weights& w, const std::vector<float>& x,
                       std::int64_t x_stride, std::int64_t rows) {
    std::vector<float> lifted = x;
    if (w.codes == Codes::kE4M3)
        for (float& value : lifted)
            value *= kE4M3Lift;
    std::vector<float> out(static_cast<std::size_t>(rows * (w.columns + 1)), -1.0f);
    DotArgs args;
    args.x = lifted.data();
    args.x_stride = x_stride;
    args.rows = rows;
    args.w = w.row(0);
    args.w_stride = w.stride;
    args.columns = w.columns;
    args.scales = w.scales.data();
    args.scale_stride = w.blocks;
    args.count = w.count;
    args.out = out.data();
    args.out_stride = w.columns + 1;
    set.dot(w.codes, args);
    return out;
}

void expect_definition(Codes codes, std::int64_t rows, std::int64_t columns, std::int64_t count) {
    const Weights w(codes, columns, count);
    const std::int64_t x_stride = count + 3;
    const auto x = random_floats(rows * x_stride, 1);
    for (Isa isa : available_isas()) {
        const auto out = run(kernels(isa), w, x, x_stride, rows);
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j <= columns; ++j) {
                const float expected =
                    j < columns ? plain_dot(x.data() + i * x_stride, w.values(j).data(), count)
                                : -1.0f;
                ASSERT_EQ(out[static_cast<std::size_t>(i * (columns + 1) + j)], expected)
                    << isa_name(isa) << ", codes " << static_cast<int>(codes) << ", " << rows << "x"
                    << columns << "x" << count << " at " << i << "," << j;
            }
    }
}

TEST(Kernels, EveryInstructionSetAndTileGivesTheBitsOfTheDefinition) {
    for (Codes codes : kAllCodes)
        for (std::int64_t rows : {1, 2, 3, 4, 5, 13})
            for (std::int64_t columns : {1, 2, 5, 9})
                for (std::int64_t count : {16, 48, 160})
                    expect_definition(codes, rows, columns, count);
}

TEST(Kernels, RowsOfAnyLength) {
    for (Codes codes : kAllCodes)
        for (std::int64_t count : {0, 1, 15, 17, 31, 63, 100})
            if (codes != Codes::kNvfp4)
                expect_definition(codes, 4, 3, count);
}

// Several chunks of several blocks of tiles, with edges on all sides.
TEST(Kernels, LargeTiles) {
    for (Codes codes : {Codes::kF32, Codes::kBF16})
        expect_definition(codes, 29, 21, 2080);
}

TEST(Kernels, DecodesEveryCode) {
    for (Isa isa : available_isas()) {
        std::array<float, 259> out{};
        std::array<std::byte, 260> codes{};
        for (std::size_t i = 0; i < 256; ++i)
            codes[i + 1] = static_cast<std::byte>(i);
        kernels(isa).decode(Codes::kE4M3, codes.data() + 1, nullptr, 259, out.data());
        for (std::size_t i = 0; i < 256; ++i) {
            const float expected = numerics::decode_e4m3(static_cast<std::uint8_t>(i));
            ASSERT_EQ(std::isnan(out[i]), std::isnan(expected)) << isa_name(isa) << " " << i;
            if (!std::isnan(expected))
                ASSERT_EQ(std::memcmp(&out[i], &expected, 4), 0) << isa_name(isa) << " " << i;
        }
    }
}

// Every block scale, NaN and subnormal ones included, with every nibble.
TEST(Kernels, Nvfp4TakesEveryScale) {
    std::array<std::byte, 8> nibbles;
    for (std::size_t i = 0; i < 8; ++i)
        nibbles[i] = static_cast<std::byte>(numerics::pack_e2m1(
            static_cast<std::uint8_t>(2 * i), static_cast<std::uint8_t>(2 * i + 1)));
    std::vector<std::byte> codes;
    std::vector<std::uint8_t> scales;
    for (int scale = 0; scale < 256; ++scale) {
        codes.insert(codes.end(), nibbles.begin(), nibbles.end());
        scales.push_back(static_cast<std::uint8_t>(scale));
    }
    for (Isa isa : available_isas())
        for (std::size_t k = 0; k < 4096; ++k) {
            // The dot with a unit vector, two columns at once, which are the same row.
            std::vector<float> x(4096), out(2);
            x[k] = 1.0f;
            const float expected =
                numerics::kE2M1Values[k % 16] * numerics::kE4M3Values[scales[k / 16]];
            DotArgs args;
            args.rows = 1;
            args.x = x.data() + k / 32 * 32;
            args.w = codes.data() + k / 32 * 16;
            args.scales = scales.data() + k / 32 * 2;
            args.columns = 2;
            args.count = 32;
            args.out = out.data();
            kernels(isa).dot(Codes::kNvfp4, args);
            // A NaN scale spreads over its pair of blocks: 0 * NaN.
            const bool nan = std::isnan(numerics::kE4M3Values[scales[k / 32 * 2]]) ||
                             std::isnan(numerics::kE4M3Values[scales[k / 32 * 2 + 1]]);
            for (float got : out)
                if (nan)
                    ASSERT_TRUE(std::isnan(got)) << isa_name(isa) << " " << k;
                else
                    ASSERT_EQ(got, expected) << isa_name(isa) << " " << k;
        }
}

TEST(Kernels, ANaNStaysInItsRow) {
    for (Codes codes : {Codes::kF32, Codes::kBF16, Codes::kF16, Codes::kE4M3})
        for (std::int64_t at : {0, 37, 66}) { // 66: behind the last whole run of 16
            Weights w(codes, 6, 67);
            const float nan = NAN;
            const std::uint16_t half = codes == Codes::kBF16 ? 0x7FC0 : 0x7E00;
            if (codes == Codes::kF32)
                std::memcpy(w.at(2, at), &nan, 4);
            else if (codes == Codes::kE4M3)
                *w.at(2, at) = std::byte{0xFF};
            else
                std::memcpy(w.at(2, at), &half, 2);
            const auto x = random_floats(3 * 67, 1);
            for (Isa isa : available_isas()) {
                const auto out = run(kernels(isa), w, x, 67, 3);
                for (std::size_t i = 0; i < 3; ++i)
                    for (std::size_t j = 0; j < 6; ++j)
                        ASSERT_EQ(std::isnan(out[i * 7 + j]), j == 2)
                            << isa_name(isa) << " codes " << static_cast<int>(codes) << " " << at;
            }
        }
}

TEST(Kernels, TheFusedStepOfTheBaselineRoundsOnce) {
    // Values whose product and sum meet at every distance, subnormal results and ties included.
    std::mt19937 random(3);
    for (int trial = 0; trial < 200000; ++trial) {
        std::array<float, 3> v{};
        for (float& value : v) {
            const auto bits = static_cast<std::uint32_t>(random());
            std::memcpy(&value, &bits, 4);
            if (!std::isfinite(value))
                value = 1.0f;
        }
        v[0] = std::ldexp(v[0], trial % 3 == 0 ? 0 : -std::ilogb(v[0] == 0 ? 1.0f : v[0]));
        v[2] = std::ldexp(v[2], trial % 3 == 0
                                    ? 0
                                    : std::ilogb(v[1] == 0 ? 1.0f : v[1]) -
                                          std::ilogb(v[2] == 0 ? 1.0f : v[2]) + trial % 60 - 30);
        // Lane 0 takes v[2], then v[0] * v[1].
        std::array<float, 17> x{1.0f}, w{v[2]};
        x[16] = v[0];
        w[16] = v[1];
        float out = 0;
        DotArgs args;
        args.x = x.data();
        args.w = reinterpret_cast<const std::byte*>(w.data());
        args.rows = args.columns = 1;
        args.count = 17;
        args.out = &out;
        kernels(Isa::kBaseline).dot(Codes::kF32, args);
        const float expected = std::fma(v[0], v[1], v[2]);
        ASSERT_EQ(std::isnan(out), std::isnan(expected));
        if (!std::isnan(out))
            ASSERT_EQ(out, expected) << v[0] << " * " << v[1] << " + " << v[2];
    }
}

TEST(Kernels, BlocksAreScaledByTheirScale) {
    const auto x = random_floats(300, 5);
    const std::vector<float> scales = {0.3f, -1.7f, 1e20f};
    for (Isa isa : available_isas()) {
        std::vector<float> out(301, 7.0f);
        kernels(isa).scale_blocks(x.data(), scales.data(), 300, out.data());
        for (std::size_t k = 0; k < 300; ++k)
            ASSERT_EQ(out[k], x[k] * scales[k / 128]) << isa_name(isa) << " " << k;
        EXPECT_EQ(out[300], 7.0f);
    }
}

TEST(Kernels, ADeltaRowIsItsDefinition) {
    for (std::int64_t count : {16, 128}) {
        const auto k = random_floats(count, 6), q = random_floats(count, 7);
        const auto before = random_floats(count, 8);
        std::vector<float> expected = before;
        for (float& value : expected)
            value *= 0.9f;
        const float d = 0.7f * (1.3f - plain_dot(k.data(), expected.data(), count));
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = std::fma(d, k[i], expected[i]);
        const float o = plain_dot(q.data(), expected.data(), count);
        for (Isa isa : available_isas()) {
            std::vector<float> state = before;
            EXPECT_EQ(
                kernels(isa).delta_row({0.9f, 0.7f, 1.3f, k.data(), q.data(), count, state.data()}),
                o)
                << isa_name(isa);
            EXPECT_EQ(state, expected) << isa_name(isa);
        }
    }
}

TEST(Kernels, AProductIsAChainOfFusedSteps) {
    constexpr std::int64_t kRows = 8, kDepth = 21, kStep = 19;
    const auto a = random_floats(kRows * kDepth, 1), b = random_floats(kDepth * 16, 2);
    const auto before = random_floats(kRows * kStep, 3);
    for (bool transposed : {false, true}) {
        const std::int64_t row_step = transposed ? 1 : kDepth, depth_step = transposed ? kRows : 1;
        std::vector<float> expected = before;
        for (std::int64_t i = 0; i < kRows; ++i)
            for (std::int64_t j = 0; j < 16; ++j)
                for (std::int64_t k = 0; k < kDepth; ++k) {
                    float& c = expected[static_cast<std::size_t>(i * kStep + j)];
                    c = std::fma(a[static_cast<std::size_t>(i * row_step + k * depth_step)],
                                 b[static_cast<std::size_t>(k * 16 + j)], c);
                }
        for (Isa isa : available_isas()) {
            std::vector<float> c = before;
            kernels(isa).add_product({.c = c.data(),
                                      .c_step = kStep,
                                      .a = a.data(),
                                      .a_row_step = row_step,
                                      .a_depth_step = depth_step,
                                      .b = b.data(),
                                      .rows = kRows,
                                      .depth = kDepth});
            EXPECT_EQ(c, expected) << isa_name(isa);
        }
    }
}

// Every upper half with lower halves below, at and above the tie.
TEST(Kernels, RoundsToBf16AsTheCodecDoes) {
    std::vector<float> values;
    for (std::uint32_t upper = 0; upper < 65536; ++upper)
        for (std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
            const std::uint32_t bits = upper << 16 | lower;
            values.emplace_back();
            std::memcpy(&values.back(), &bits, 4);
        }
    values.push_back(1.0f); // an odd count: a tail
    for (Isa isa : available_isas()) {
        std::vector<std::uint16_t> codes(values.size());
        kernels(isa).encode_bf16(values.data(), static_cast<std::int64_t>(values.size()),
                                 codes.data());
        for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(codes[i], numerics::encode_bf16(values[i])) << isa_name(isa) << " " << i;
    }
}

TEST(DotTile, DotIsTheSameFunction) {
    const auto x = random_floats(1000, 3);
    const auto w = random_floats(1000, 4);
    for (std::int64_t count : {1, 16, 31, 128, 1000}) {
        EXPECT_EQ(dot(x.data(), w.data(), count), plain_dot(x.data(), w.data(), count));
        EXPECT_EQ(dot_one(x.data(), w.data(), count), plain_dot(x.data(), w.data(), count));
    }
}

} // namespace
} // namespace lr::cpu
