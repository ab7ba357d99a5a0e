// SPDX-License-Identifier: Apache-2.0
//
// numerics/ue8m0.h: the UE8M0 scale format: value 2^(code - 127), codes 0..254; 0xFF is NaN. It has
// no sign and no zero.
//
// decode  exact (code 0 is the subnormal 2^-127)
// encode  NaN and every negative number become 0xFF; -0 counts as zero. Otherwise:
//   _up       the smallest power of two >= x        zero -> code 0; above 2^127 -> code 254
//   _down     the largest power of two <= x         below 2^-127 -> code 0; infinity -> code 254
//   _nearest  the nearest in value, 1.5 * 2^k ties to the even code; both ends saturate
//   _exact    only where x is a power of two in range, else nothing
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace lr::numerics {

inline constexpr std::uint8_t kUE8M0NaN = 0xFF;

constexpr float decode_ue8m0(std::uint8_t code) {
    if (code == 0)
        return 0x1p-127f;
    if (code == kUE8M0NaN)
        return std::bit_cast<float>(0x7FC0'0000u);
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

namespace detail {

// x = 2^(exponent - 127) * (1 + fraction / 2^23); exponent <= 0 for subnormals.
struct Ue8m0Parts {
    bool valid; // neither NaN, nor negative
    int exponent;
    std::uint32_t fraction;
};

constexpr Ue8m0Parts ue8m0_parts(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    if (bits == 0x8000'0000u)
        return {true, -23, 0};
    if (bits > 0x7F80'0000u)
        return {false, 0, 0};
    const std::uint32_t fraction = bits & 0x7F'FFFFu;
    if (bits >> 23 != 0)
        return {true, static_cast<int>(bits >> 23), fraction};
    if (fraction == 0)
        return {true, -23, 0};
    const int shift = std::countl_zero(fraction) - 8;
    return {true, 1 - shift, (fraction << shift) & 0x7F'FFFFu};
}

constexpr std::uint8_t ue8m0_saturate(int exponent) {
    return static_cast<std::uint8_t>(exponent < 0 ? 0 : exponent > 254 ? 254 : exponent);
}

} // namespace detail

constexpr std::uint8_t encode_ue8m0_up(float x) {
    const detail::Ue8m0Parts parts = detail::ue8m0_parts(x);
    if (!parts.valid)
        return kUE8M0NaN;
    return detail::ue8m0_saturate(parts.exponent + (parts.fraction != 0 ? 1 : 0));
}

constexpr std::uint8_t encode_ue8m0_down(float x) {
    const detail::Ue8m0Parts parts = detail::ue8m0_parts(x);
    return parts.valid ? detail::ue8m0_saturate(parts.exponent) : kUE8M0NaN;
}

constexpr std::uint8_t encode_ue8m0_nearest(float x) {
    const detail::Ue8m0Parts parts = detail::ue8m0_parts(x);
    if (!parts.valid)
        return kUE8M0NaN;
    const bool odd = (parts.exponent & 1) != 0;
    const bool up = parts.fraction > 0x40'0000u || (parts.fraction == 0x40'0000u && odd);
    return detail::ue8m0_saturate(parts.exponent + (up ? 1 : 0));
}

constexpr std::optional<std::uint8_t> encode_ue8m0_exact(float x) {
    const detail::Ue8m0Parts parts = detail::ue8m0_parts(x);
    if (!parts.valid || parts.fraction != 0 || parts.exponent < 0 || parts.exponent > 254)
        return std::nullopt;
    return static_cast<std::uint8_t>(parts.exponent);
}

} // namespace lr::numerics
