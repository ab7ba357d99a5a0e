// SPDX-License-Identifier: Apache-2.0
//
// cpu/activation.h: the elementwise non-linearities, in f32. The functions of many numbers have
// their own exp, within 2^-22 of the true value, with the same bits on every instruction set;
// overflow is infinity, underflow 0, and a NaN stays one.
#pragma once

#include <cmath>
#include <cstdint>

namespace lr::cpu {

inline float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}

// x * sigmoid(x) with one division less; -0 for a very negative x.
inline float silu(float x) {
    return x / (1.0f + std::exp(-x));
}

// out[i] = exp(x[i] - shift), sigmoid(x[i]), silu(x[i]). `out` may be x.
void exp_each(const float* x, std::int64_t count, float shift, float* out);
void sigmoid_each(const float* x, std::int64_t count, float* out);
void silu_each(const float* x, std::int64_t count, float* out);

} // namespace lr::cpu
