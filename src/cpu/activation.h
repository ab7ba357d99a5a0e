// SPDX-License-Identifier: Apache-2.0
//
// cpu/activation.h: the elementwise non-linearities, in f32.
#pragma once

#include <cmath>

namespace lr::cpu {

inline float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}

// x * sigmoid(x) with one division less; -0 for a very negative x.
inline float silu(float x) {
    return x / (1.0f + std::exp(-x));
}

} // namespace lr::cpu
