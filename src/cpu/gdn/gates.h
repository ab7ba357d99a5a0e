// SPDX-License-Identifier: Apache-2.0
//
// cpu/gdn/gates.h: the scalar functions of Gated DeltaNet, in f32. Prefill and decode share them,
// so that their gates have the same bits.
#pragma once

#include "cpu/activation.h"
#include "numerics/bf16.h"
#include "ops/op.h"

#include <cmath>

namespace lr::cpu::gdn {

// log(1 + exp(x)); above 20 the two are the same f32.
inline float softplus(float x) {
    return x > 20.0f ? x : std::log1p(std::exp(x));
}

// g: the log of the factor by which a token fades the state, <= 0.
inline float log_decay(float a, float a_log, float dt_bias) {
    return -std::exp(a_log) * softplus(a + dt_bias);
}

// beta: how much of the correction a token writes.
inline float write_strength(float b, ops::Precision precision) {
    const float beta = sigmoid(b);
    return precision == ops::Precision::kModel ? numerics::round_bf16(beta) : beta;
}

} // namespace lr::cpu::gdn
