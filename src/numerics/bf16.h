// SPDX-License-Identifier: Apache-2.0
//
// numerics/bf16.h: the BF16 codec. A code is the upper half of an f32.
//
// encode  round to nearest, ties to even; too large becomes infinity; a NaN keeps its sign and its
//         upper payload and is made quiet, so it stays a NaN
// decode  exact
#pragma once

#include <bit>
#include <cstdint>

namespace lr::numerics {

constexpr float decode_bf16(std::uint16_t code) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

constexpr std::uint16_t encode_bf16(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40u;
    const bool nan = (bits & 0x7FFF'FFFFu) > 0x7F80'0000u;
    return static_cast<std::uint16_t>(nan ? quiet : rounded);
}

// The BF16 value nearest to x, as f32.
constexpr float round_bf16(float x) {
    return decode_bf16(encode_bf16(x));
}

} // namespace lr::numerics
