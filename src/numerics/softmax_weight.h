// SPDX-License-Identifier: Apache-2.0
//
// numerics/softmax_weight.h: exp(x) for x <= 0 as an integer, so that a sum of many is exact and
// the same in every order: the sampler's distribution, for C++ and GPU code alike.
//
//   n      = rint(x * log2 e)                       ties to even; x below -44 counts as -44
//   r      = (x - n * hi) - n * lo                  hi + lo = ln 2, hi of 9 bits
//   p      = 1 + (r + r*r * (c2 + r * (c3 + r * (c4 + r * (c5 + r * c6)))))
//   weight = floor(p * 2^(40 + n))                  p has 24 bits: an integer shifted right
// Single IEEE f32 operations in the order written, no contraction into an FMA (on a GPU: the _rn
// intrinsics). Within 2^-23 of 2^40 exp(x), relatively, before the floor. x = 0 (either sign) gives
// kWeightOne, x < -28.5 gives 0, and so do -infinity and NaN.
#pragma once

#include "core/host_device.h"

#include <cstdint>

namespace lr::numerics {

inline constexpr int kWeightBits = 40;
inline constexpr std::uint64_t kWeightOne = std::uint64_t{1} << kWeightBits;
// So many weights can be added in 63 bits.
inline constexpr std::int64_t kMaxWeights = std::int64_t{1} << (63 - kWeightBits);

// The constants of the formula. The c are the polynomial through ((exp(r) - 1) / r - 1) / r at the
// five Chebyshev nodes of |r| <= 0.347: within 1.1e-8 of exp(r).
struct SoftmaxWeight {
    static constexpr float kLowest = -44.0f;
    static constexpr float kLog2e = 0x1.715476p+0f;
    static constexpr float kHi = 0x1.63p-1f, kLo = -0x1.bd0106p-13f;
    static constexpr float kC2 = 0.5f, kC3 = 0x1.5554dcp-3f, kC4 = 0x1.55551ap-5f,
                           kC5 = 0x1.120ba2p-7f, kC6 = 0x1.6d113cp-10f;
    // Adding and taking away 1.5 * 2^23 rounds a small f32 to an integer.
    static constexpr float kRound = 0x1.8p23f;
};

LR_HD constexpr std::uint64_t softmax_weight(float x) {
    using C = SoftmaxWeight;
    const float in = x > C::kLowest ? x : C::kLowest;
    const float n = (in * C::kLog2e + C::kRound) - C::kRound;
    const float r = (in - n * C::kHi) - n * C::kLo;
    const float tail = C::kC2 + r * (C::kC3 + r * (C::kC4 + r * (C::kC5 + r * C::kC6)));
    const float p = 1.0f + (r + r * r * tail);
    const auto bits = static_cast<std::uint64_t>(static_cast<std::int32_t>(p * 0x1p24f));
    return bits << (kWeightBits - 24) >> static_cast<std::int32_t>(-n);
}

} // namespace lr::numerics
