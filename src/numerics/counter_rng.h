// SPDX-License-Identifier: Apache-2.0
//
// numerics/counter_rng.h: the counter-based generator that C++, Python
// (tools/goldens/counter_rng.py) and GPU code share. A value depends on (seed, tensor name, flat
// element index) alone, so tensors may be made in any order, in parts and in parallel. Only 64-bit
// integer operations modulo 2^64 and single IEEE f32 operations occur: no libm, no contraction of a
// product and a sum into an FMA.
//
//   key   = fnv1a64(name) ^ (seed * kGolden)
//   bits  = mix64(key + (index + 1) * kGolden)                  splitmix64's finaliser
//   sum   = the four 16-bit fields of bits, added, - 131070      in [-131070, 131070], about
//   normal,
//                                                                standard deviation 37837.23
//   normal  = mean + (f32(sum) * scale)     scale = f32(std / 37837.2275); two f32 roundings
//   unit    = f32(bits >> 40) * 2^-24       in [0, 1), exact
//   uniform = lo + unit * (hi - lo)         three f32 roundings; in [lo, hi], hi only by rounding
// A tensor in another dtype holds the f32 value rounded by that dtype's codec.
#pragma once

#include "core/host_device.h"

#include <cstdint>
#include <string_view>

namespace lr::numerics {

inline constexpr std::uint64_t kGolden = 0x9E37'79B9'7F4A'7C15u;

constexpr std::uint64_t fnv1a64(std::string_view text) {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325u;
    for (char c : text) {
        hash ^= static_cast<std::uint8_t>(c);
        hash *= 0x0000'0100'0000'01B3u;
    }
    return hash;
}

LR_HD constexpr std::uint64_t mix64(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9u;
    x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBu;
    return x ^ (x >> 31);
}

constexpr float unit_from_bits(std::uint64_t bits) {
    return static_cast<float>(static_cast<std::uint32_t>(bits >> 40)) * 0x1p-24f;
}

// The `scale` of CounterRng::normal for a standard deviation.
constexpr float normal_scale(double std_deviation) {
    return static_cast<float>(std_deviation / 37837.2275);
}

// The values of one tensor.
class CounterRng {
  public:
    constexpr CounterRng(std::string_view tensor_name, std::uint64_t seed)
        : key_(fnv1a64(tensor_name) ^ (seed * kGolden)) {}

    constexpr std::uint64_t bits(std::uint64_t index) const {
        return mix64(key_ + (index + 1) * kGolden);
    }

    constexpr std::int32_t normal_sum(std::uint64_t index) const {
        const std::uint64_t x = bits(index);
        return static_cast<std::int32_t>((x & 0xFFFF) + (x >> 16 & 0xFFFF) + (x >> 32 & 0xFFFF) +
                                         (x >> 48)) -
               131070;
    }

    constexpr float normal(std::uint64_t index, float scale, float mean) const {
        const float deviation = static_cast<float>(normal_sum(index)) * scale;
        return mean + deviation;
    }

    constexpr float uniform(std::uint64_t index, float lo, float hi) const {
        const float width = hi - lo;
        const float offset = unit_from_bits(bits(index)) * width;
        return lo + offset;
    }

  private:
    std::uint64_t key_;
};

// The sampler's draw: 64 bits for one position of one stream of a seed.
//   mix64(mix64(mix64(seed + kGolden) + stream) + (position + 1) * kGolden)
LR_HD constexpr std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream,
                                           std::uint64_t position) {
    const std::uint64_t key = mix64(mix64(seed + kGolden) + stream);
    return mix64(key + (position + 1) * kGolden);
}

// floor(bits * count / 2^64): a number in [0, count) from 64 random bits.
constexpr std::uint64_t below(std::uint64_t bits, std::uint64_t count) {
    __extension__ typedef unsigned __int128 Wide;
    return static_cast<std::uint64_t>(static_cast<Wide>(bits) * count >> 64);
}

} // namespace lr::numerics
