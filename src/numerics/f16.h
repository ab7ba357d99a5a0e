// SPDX-License-Identifier: Apache-2.0
//
// numerics/f16.h: the IEEE half-precision codec, for checkpoints that hold F16.
//
// encode  round to nearest, ties to even, subnormals included; 65520 and more becomes infinity; a
//         NaN keeps its sign and becomes the quiet NaN 0x7E00
// decode  exact
#pragma once

#include <bit>
#include <cstdint>

namespace lr::numerics {

constexpr float decode_f16(std::uint16_t code) {
    const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000u) << 16;
    const std::uint32_t magnitude = code & 0x7FFFu;
    if (magnitude >= 0x7C00u) // infinity or NaN: the largest exponent of f32
        return std::bit_cast<float>(sign | 0x7F80'0000u | (magnitude & 0x3FFu) << 13);
    if (magnitude < 0x400u) { // zero or subnormal: a count of 2^-24
        const float value = static_cast<float>(magnitude) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

constexpr std::uint16_t encode_f16(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFu;
    std::uint32_t code = 0;
    if (magnitude > 0x7F80'0000u) {
        code = 0x7E00u;
    } else if (magnitude >= 0x477F'F000u) { // 65520, half-way to 2^16
        code = 0x7C00u;
    } else if (magnitude < 0x3880'0000u) { // below 2^-14
        // 0.5 has an ulp of 2^-24, so the addition itself rounds to a count of 2^-24.
        const float sum = std::bit_cast<float>(magnitude) + 0.5f;
        code = std::bit_cast<std::uint32_t>(sum) - 0x3F00'0000u;
    } else {
        const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
        code = (rounded - ((127u - 15u) << 23)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | code);
}

} // namespace lr::numerics
