// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernels/bf16_dot.h"
#include "cpu/rows.h"
#include "tests/cpu/coded_rows.h"
#include "tests/cpu/plain_bf16_dot.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

namespace lr::cpu {
namespace {

constexpr std::array kCodes = {Codes::kBF16, Codes::kE4M3, Codes::kNvfp4};

std::vector<Isa> isas_with_bf16() {
    std::vector<Isa> found;
    for (Isa isa : available_isas())
        if (kernels(isa).bf16)
            found.push_back(isa);
    return found;
}

struct Rows {
    std::int64_t rows, count, stride;
    std::vector<std::uint16_t> codes;
    std::vector<float> values;

    Rows(std::int64_t rows_in, std::int64_t count_in)
        : rows(rows_in), count(count_in), stride(count + 3),
          codes(static_cast<std::size_t>(rows * stride)), values(random_floats(rows * stride, 1)) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            codes[i] = numerics::encode_bf16(values[i]);
            values[i] = numerics::decode_bf16(codes[i]);
        }
    }
    const std::byte* row(std::int64_t i) const {
        return reinterpret_cast<const std::byte*>(codes.data() + i * stride);
    }
};

// Products in place and of expanded weights.
struct Results {
    std::vector<float> in_place, expanded;
};

Results run(const Bf16Kernels& set, const Weights& w, const Rows& x,
            const std::vector<float>& block_scales, std::int64_t scale_step) {
    const std::int64_t stride = packed_count(w.count) + 32, blocks = packed_count(w.count) / 128;
    std::vector<std::uint16_t> packed(static_cast<std::size_t>(x.rows * stride), 0x7FC0);
    for (std::int64_t i = 0; i < x.rows; ++i)
        set.pack(w.codes, x.row(i), w.count, packed.data() + i * stride);
    Results results;
    results.in_place.assign(static_cast<std::size_t>(x.rows * (w.columns + 1)), -1.0f);
    results.expanded = results.in_place;
    Bf16DotArgs args;
    args.x = packed.data();
    args.x_stride = stride;
    args.rows = x.rows;
    args.w = w.row(0);
    args.w_stride = w.stride;
    args.columns = w.columns;
    if (!block_scales.empty())
        args.block_scales = {block_scales.data(), scale_step};
    args.scales = w.scales.data();
    args.scale_stride = w.blocks;
    args.count = w.count;
    args.out = results.in_place.data();
    args.out_stride = w.columns + 1;
    set.dot(w.codes, args);

    std::vector<std::uint16_t> weights(static_cast<std::size_t>(w.columns * stride));
    std::vector<float> lane_scales(static_cast<std::size_t>(w.columns * blocks * 16));
    for (std::int64_t j = 0; j < w.columns; ++j)
        set.expand(w.codes, w.row(j), w.scales.data() + j * w.blocks, w.count,
                   weights.data() + j * stride, lane_scales.data() + j * blocks * 16);
    args.w = reinterpret_cast<const std::byte*>(weights.data());
    args.w_stride = 2 * stride;
    args.lane_scales = lane_scales.data();
    args.lane_scale_stride = blocks * 16;
    args.out = results.expanded.data();
    set.dot_expanded(w.codes, args);
    return results;
}

// Values without their NVFP4 scales, and those.
std::vector<float> plain_values(const Weights& w, std::int64_t j, std::vector<float>& scales) {
    Weights bare = w;
    scales.clear();
    if (w.codes == Codes::kNvfp4) {
        for (std::int64_t b = 0; b < w.blocks; ++b)
            scales.push_back(
                numerics::decode_e4m3(w.scales[static_cast<std::size_t>(j * w.blocks + b)]));
        std::fill(bare.scales.begin(), bare.scales.end(), numerics::encode_e4m3(1.0f));
    }
    return bare.values(j);
}

// scale_rows: rows of block scales (kE4M3): none, one for all rows of x, or one each.
void expect_definition(Codes codes, std::int64_t rows, std::int64_t columns, std::int64_t count,
                       std::int64_t scale_rows = 0) {
    const Weights w(codes, columns, count);
    const Rows x(rows, count);
    const std::int64_t blocks = packed_count(count) / 128;
    const auto block_scales = random_floats(scale_rows * blocks, 3);
    const std::int64_t step = scale_rows > 1 ? blocks : 0;
    for (Isa isa : isas_with_bf16()) {
        const Results got = run(*kernels(isa).bf16, w, x, block_scales, step);
        for (std::int64_t j = 0; j <= columns; ++j) {
            std::vector<float> own_scales, values;
            if (j < columns)
                values = plain_values(w, j, own_scales);
            for (std::int64_t i = 0; i < rows; ++i) {
                std::span<const float> scales = own_scales;
                if (scale_rows > 0)
                    scales = {block_scales.data() + i * step, static_cast<std::size_t>(blocks)};
                const float expected = j < columns
                                           ? plain_bf16_dot(codes, x.values.data() + i * x.stride,
                                                            values.data(), count, scales)
                                           : -1.0f;
                const auto at = static_cast<std::size_t>(i * (columns + 1) + j);
                ASSERT_EQ(got.in_place[at], expected)
                    << isa_name(isa) << ", codes " << static_cast<int>(codes) << ", " << rows << "x"
                    << columns << "x" << count << " at " << i << "," << j;
                ASSERT_EQ(got.expanded[at], expected)
                    << isa_name(isa) << ", expanded codes " << static_cast<int>(codes) << ", "
                    << rows << "x" << columns << "x" << count << " at " << i << "," << j;
            }
        }
    }
}

TEST(Bf16Dot, EveryTileGivesTheBitsOfTheDefinition) {
    for (Codes codes : kCodes)
        for (std::int64_t rows : {1, 2, 3, 4, 5, 13, 64})
            for (std::int64_t columns : {1, 3, 13})
                for (std::int64_t count : {16, 128, 272})
                    expect_definition(codes, rows, columns, count);
}

TEST(Bf16Dot, BlockScalesOfWeightsAndOfRows) {
    for (std::int64_t rows : {1, 2, 4, 7})
        for (std::int64_t count : {128, 300, 640}) {
            expect_definition(Codes::kE4M3, rows, 5, count, 1);
            expect_definition(Codes::kE4M3, rows, 5, count, rows);
        }
}

TEST(Bf16Dot, RowsOfAnyLength) {
    for (Codes codes : kCodes)
        for (std::int64_t count : {0, 1, 15, 17, 63, 100, 129, 1000})
            if (codes != Codes::kNvfp4)
                expect_definition(codes, 4, 3, count);
}

// Several chunks, several runs of NVFP4 scales, a short last block.
TEST(Bf16Dot, LongRows) {
    for (Codes codes : kCodes)
        for (std::int64_t rows : {1, 13})
            expect_definition(codes, rows, 5, 8192 + 1024 + 16);
}

TEST(Bf16Dot, PositionsAreAPermutation) {
    for (Codes codes : kCodes) {
        std::set<std::int64_t> seen;
        for (std::int64_t k = 0; k < 128; ++k)
            seen.insert(dot_position(codes, k));
        EXPECT_EQ(seen.size(), 128u);
        EXPECT_EQ(*seen.begin(), 0);
        EXPECT_EQ(*seen.rbegin(), 127);
    }
    EXPECT_EQ(dot_position(Codes::kE4M3, 8), 32);
    EXPECT_EQ(dot_position(Codes::kE4M3, 16), 8);
    EXPECT_EQ(dot_position(Codes::kNvfp4, 1), 32);
    EXPECT_EQ(dot_position(Codes::kNvfp4, 4), 1);
}

TEST(Bf16Dot, WidensEveryCode) {
    for (Isa isa : isas_with_bf16()) {
        std::array<std::byte, 256> codes;
        for (std::size_t i = 0; i < 256; ++i)
            codes[i] = static_cast<std::byte>(i);
        std::array<std::uint16_t, 256> out{};
        kernels(isa).bf16->expand(Codes::kE4M3, codes.data(), nullptr, 256, out.data(), nullptr);
        for (std::int64_t k = 0; k < 256; ++k) {
            const auto at =
                static_cast<std::size_t>(k / 128 * 128 + dot_position(Codes::kE4M3, k % 128));
            const float expected = numerics::decode_e4m3(static_cast<std::uint8_t>(k));
            const float got = numerics::decode_bf16(out[at]);
            ASSERT_EQ(std::isnan(got), std::isnan(expected)) << k;
            if (!std::isnan(expected))
                ASSERT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(expected))
                    << k;
        }
    }
}

// Every scale with every nibble, one product at a time.
TEST(Bf16Dot, Nvfp4TakesEveryScale) {
    for (Isa isa : isas_with_bf16())
        for (int scale = 0; scale < 256; ++scale) {
            Weights w(Codes::kNvfp4, 1, 16);
            w.scales[0] = static_cast<std::uint8_t>(scale);
            for (int k = 0; k < 8; ++k)
                *w.at(0, 2 * k) = static_cast<std::byte>(2 * k | (2 * k + 1) << 4);
            for (int k = 0; k < 16; ++k) {
                Rows x(1, 16);
                std::fill(x.codes.begin(), x.codes.end(), std::uint16_t{0});
                x.codes[static_cast<std::size_t>(k)] = numerics::encode_bf16(1.0f);
                const Results got = run(*kernels(isa).bf16, w, x, {}, 0);
                const float expected = numerics::decode_e2m1(static_cast<std::uint8_t>(k)) *
                                       numerics::decode_e4m3(static_cast<std::uint8_t>(scale));
                for (float value : {got.in_place[0], got.expanded[0]}) {
                    ASSERT_EQ(std::isnan(value), std::isnan(expected)) << scale << " " << k;
                    if (!std::isnan(expected))
                        ASSERT_EQ(value, expected) << scale << " " << k;
                }
            }
        }
}

TEST(Bf16Dot, ANaNStaysInItsRow) {
    for (Codes codes : {Codes::kBF16, Codes::kE4M3})
        for (std::int64_t at : {0, 37, 130}) { // 130: in the short last block
            Weights w(codes, 6, 140);
            const std::uint16_t nan = 0x7FC0;
            if (codes == Codes::kE4M3)
                *w.at(2, at) = std::byte{0xFF};
            else
                std::memcpy(w.at(2, at), &nan, 2);
            for (Isa isa : isas_with_bf16()) {
                const Results got = run(*kernels(isa).bf16, w, Rows(3, 140), {}, 0);
                for (std::size_t i = 0; i < 3; ++i)
                    for (std::size_t j = 0; j < 6; ++j) {
                        ASSERT_EQ(std::isnan(got.in_place[i * 7 + j]), j == 2) << at;
                        ASSERT_EQ(std::isnan(got.expanded[i * 7 + j]), j == 2) << at;
                    }
            }
        }
}

// A subnormal operand and a subnormal sum are zeros; the smallest normal numbers are not.
TEST(Bf16Dot, SubnormalsAreZeros) {
    const std::uint16_t subnormal = 0x007F, smallest = 0x0080, half = 0x3F00, one = 0x3F80;
    struct Case {
        std::uint16_t x, w;
        float expected;
    };
    for (auto [x_code, w_code, expected] :
         {Case{subnormal, one, 0.0f}, Case{smallest, half, 0.0f}, Case{smallest, one, 0x1p-126f},
          Case{one, smallest, 0x1p-126f}})
        for (Isa isa : isas_with_bf16()) {
            Weights w(Codes::kBF16, 1, 1);
            std::memcpy(w.at(0, 0), &w_code, 2);
            Rows x(1, 1);
            x.codes[0] = x_code;
            const Results got = run(*kernels(isa).bf16, w, x, {}, 0);
            EXPECT_EQ(got.in_place[0], expected);
            EXPECT_EQ(got.expanded[0], expected);
        }
}

} // namespace
} // namespace lr::cpu
