// SPDX-License-Identifier: Apache-2.0
//
// numerics/e2m1.h: the E2M1 (FP4) codec. Code = sign << 3 | m; m stands for {0, 0.5, 1, 1.5, 2, 3,
// 4, 6}. Two codes share a byte along the last dim: low nibble = even index.
//
// encode  round to nearest, ties to the even code (0.25 -> 0, 0.75 -> 1, 1.25 -> 1, 1.75 -> 2,
//         2.5 -> 2, 3.5 -> 4, 5 -> 4); saturating at 6, infinity included; the sign is kept, also
//         of zeros; E2M1 has no NaN: every NaN becomes +6 (code 7), as the GPU's conversion does,
//         and it is the block scale that carries the NaN
// decode  exact
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace lr::numerics {

inline constexpr float kE2M1Max = 6.0f;
inline constexpr std::array<float, 16> kE2M1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                      4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                      -2.0f, -3.0f, -4.0f, -6.0f};

// The upper nibble of `code` is ignored.
constexpr float decode_e2m1(std::uint8_t code) {
    return kE2M1Values[code & 0xFu];
}

constexpr std::uint8_t encode_e2m1(float x) {
    const bool negative = std::bit_cast<std::uint32_t>(x) >> 31 != 0;
    const float a = negative ? -x : x;
    if (a != a)
        return 0x7;
    // One step per half-way point passed; a tie passes it only towards an even code.
    const int m = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) +
                  (a >= 3.5f) + (a > 5.0f);
    return static_cast<std::uint8_t>((negative ? 8 : 0) | m);
}

// |decode(encode(x))| from a = |x|: the steps that encode counts, as heights. Without a branch or a
// table, for loops that compilers turn into vectors.
constexpr float round_e2m1_magnitude(float a) {
    const auto step = [](bool passed, float height) { return passed ? height : 0.0f; };
    return step(a > 0.25f, 0.5f) + step(a >= 0.75f, 0.5f) + step(a > 1.25f, 0.5f) +
           step(a >= 1.75f, 0.5f) + step(a > 2.5f, 1.0f) + step(a >= 3.5f, 1.0f) +
           step(a > 5.0f, 2.0f);
}

constexpr std::uint8_t pack_e2m1(std::uint8_t even, std::uint8_t odd) {
    return static_cast<std::uint8_t>((even & 0xFu) | (odd & 0xFu) << 4);
}

// Code number `index` of a packed row.
constexpr std::uint8_t unpack_e2m1(const std::uint8_t* packed, std::int64_t index) {
    return static_cast<std::uint8_t>(packed[index / 2] >> (index % 2 * 4) & 0xF);
}

} // namespace lr::numerics
