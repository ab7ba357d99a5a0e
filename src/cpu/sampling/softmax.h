// SPDX-License-Identifier: Apache-2.0
//
// cpu/sampling/softmax.h: the passes over a whole row of logits that sampling makes, for the
// instruction sets of the machine. All give the same bits.
#pragma once

#include "cpu/isa.h"

#include <cstdint>

namespace lr::cpu {

inline constexpr std::int64_t kSoftmaxBlock = 64;
inline constexpr std::int64_t kSoftmaxLanes = 16;

struct SoftmaxKernels {
    Isa isa;
    // block_max[b] = the largest of z[64 b ... 64 b + 63], [ceil(count / 64)]. False when a value
    // is not finite; block_max is then of no use.
    bool (*survey)(const float* z, std::int64_t count, float* block_max);
    // weight[i] = numerics::softmax_weight((z[i] - largest) / temperature); returns their sum.
    std::uint64_t (*weigh)(const float* z, std::int64_t count, float largest, float temperature,
                           std::uint64_t* weight);
    // lanes[l] = sum of exp(z[i] - largest) in f64 over i = l, l + 16, ..., ascending; each term
    // within 2^-50 of itself. largest >= z.
    void (*sum_exp)(const float* z, std::int64_t count, double largest, double* lanes);
};

const SoftmaxKernels& softmax_kernels(Isa isa);
// Those of cpu::isa().
const SoftmaxKernels& softmax_kernels();

} // namespace lr::cpu
