// SPDX-License-Identifier: Apache-2.0
//
// tests/cpu/coded_rows.h: random rows of codes for tests of the kernels.
#pragma once

#include "cpu/kernels/kernels.h"
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/f16.h"

#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace lr::cpu {

inline std::int64_t bytes_of(Codes codes, std::int64_t count) {
    constexpr std::array<std::int64_t, 5> kBits = {32, 16, 16, 8, 4};
    return count * kBits[static_cast<std::size_t>(codes)] / 8;
}

inline std::vector<float> random_floats(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values)
        value = normal(random);
    return values;
}

// Rows of random codes, at an odd address, a stride that is no multiple of anything, and what they
// stand for.
struct Weights {
    Codes codes;
    std::int64_t columns, count, stride, blocks;
    std::vector<std::byte> memory;
    std::vector<std::uint8_t> scales;

    Weights(Codes codes_in, std::int64_t columns_in, std::int64_t count_in)
        : codes(codes_in), columns(columns_in), count(count_in),
          stride(bytes_of(codes, count + 16) + 3), blocks((count + 15) / 16),
          memory(static_cast<std::size_t>(columns * stride + 1)),
          scales(static_cast<std::size_t>(columns * blocks)) {
        std::mt19937 random(7);
        for (std::uint8_t& scale : scales)
            scale = static_cast<std::uint8_t>(random() % 0x7F);
        const auto normal = random_floats(columns * count, 2);
        for (std::int64_t j = 0; j < columns; ++j)
            for (std::int64_t k = 0; k < count; ++k)
                put(j, k, normal[static_cast<std::size_t>(j * count + k)], random());
    }

    const std::byte* row(std::int64_t j) const { return memory.data() + 1 + j * stride; }
    std::byte* at(std::int64_t j, std::int64_t k) {
        return memory.data() + 1 + j * stride + bytes_of(codes, k);
    }

    void put(std::int64_t j, std::int64_t k, float value, unsigned random) {
        const auto code = static_cast<std::uint8_t>(random >> 8);
        std::uint16_t half = 0;
        switch (codes) {
        case Codes::kF32:
            std::memcpy(at(j, k), &value, 4);
            return;
        case Codes::kBF16:
        case Codes::kF16:
            half =
                codes == Codes::kF16 ? numerics::encode_f16(value) : numerics::encode_bf16(value);
            std::memcpy(at(j, k), &half, 2);
            return;
        case Codes::kE4M3:
            *at(j, k) = static_cast<std::byte>((code & 0x7F) == 0x7F ? 0 : code);
            return;
        case Codes::kNvfp4:
            *at(j, k) |= static_cast<std::byte>((code & 0xF) << (k % 2 * 4));
            return;
        }
    }

    std::vector<float> values(std::int64_t j) const {
        std::vector<float> out(static_cast<std::size_t>(count));
        for (std::int64_t k = 0; k < count; ++k) {
            const std::byte* from = row(j) + bytes_of(codes, k);
            std::uint16_t half = 0;
            float& value = out[static_cast<std::size_t>(k)];
            if (codes == Codes::kF32)
                std::memcpy(&value, from, 4);
            else if (codes == Codes::kE4M3)
                value = numerics::decode_e4m3(static_cast<std::uint8_t>(*from));
            else if (codes == Codes::kNvfp4)
                value =
                    numerics::decode_e2m1(static_cast<std::uint8_t>(*from) >> (k % 2 * 4)) *
                    numerics::decode_e4m3(scales[static_cast<std::size_t>(j * blocks + k / 16)]);
            else {
                std::memcpy(&half, from, 2);
                value =
                    codes == Codes::kF16 ? numerics::decode_f16(half) : numerics::decode_bf16(half);
            }
        }
        return out;
    }
};

} // namespace lr::cpu
