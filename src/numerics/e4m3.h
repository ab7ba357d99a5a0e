// SPDX-License-Identifier: Apache-2.0
//
// numerics/e4m3.h: the E4M3FN codec: sign, 4 exponent bits (bias 7), 3 mantissa bits, no infinity.
// Largest value 448 (0x7E), smallest normal 2^-6, smallest subnormal 2^-9, NaN 0x7F and 0xFF.
//
// encode  round to nearest, ties to even code; saturating: everything above 448, infinity included,
//         becomes 448 with its sign; -0 and values that round to zero keep their sign; every NaN
//         becomes 0x7F, whatever its sign, so that codes do not depend on a machine's default NaN
// decode  exact
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace lr::numerics {

inline constexpr float kE4M3Max = 448.0f;
inline constexpr float kE4M3MinSubnormal = 0x1p-9f;
inline constexpr std::uint8_t kE4M3NaN = 0x7F;

namespace detail {

constexpr float e4m3_value(std::uint32_t code) {
    const std::uint32_t sign = (code & 0x80u) << 24;
    const std::uint32_t magnitude = code & 0x7Fu;
    if (magnitude == 0x7Fu)
        return std::bit_cast<float>(sign | 0x7FC0'0000u);
    if (magnitude < 8) { // zero or subnormal: a count of 2^-9
        const float value = static_cast<float>(magnitude) * kE4M3MinSubnormal;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 20) + ((127u - 7u) << 23)));
}

constexpr std::array<float, 256> make_e4m3_table() {
    std::array<float, 256> table{};
    for (std::uint32_t code = 0; code < 256; ++code)
        table[code] = e4m3_value(code);
    return table;
}

} // namespace detail

inline constexpr std::array<float, 256> kE4M3Values = detail::make_e4m3_table();

constexpr float decode_e4m3(std::uint8_t code) {
    return kE4M3Values[code];
}

constexpr std::uint8_t encode_e4m3(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = (bits >> 24) & 0x80u;
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFu;
    if (magnitude > 0x7F80'0000u)
        return kE4M3NaN;
    std::uint32_t code = 0;
    if (magnitude >= 0x43E0'0000u) { // 448
        code = 0x7Eu;
    } else if (magnitude < 0x3C80'0000u) { // below 2^-6
        // 2^14 has an ulp of 2^-9, so the addition itself rounds to a count of 2^-9.
        const float sum = std::bit_cast<float>(magnitude) + 0x1p14f;
        code = std::bit_cast<std::uint32_t>(sum) - 0x4680'0000u;
    } else {
        const std::uint32_t rounded = magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u);
        code = (rounded - ((127u - 7u) << 23)) >> 20;
    }
    return static_cast<std::uint8_t>(sign | code);
}

} // namespace lr::numerics
