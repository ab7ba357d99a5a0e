// SPDX-License-Identifier: Apache-2.0
#include "cpu/sampling/softmax.h"

#include "numerics/softmax_weight.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lr::cpu {
namespace {

// Vectors that may lie anywhere and alias scalars.
template <int kLanes> struct Vector;
#define LR_VECTORS(lanes)                                                                          \
    template <> struct Vector<lanes> {                                                             \
        typedef float F LR_VECTOR(4 * lanes);                                                      \
        typedef float Fh LR_VECTOR(2 * lanes);                                                     \
        typedef std::int32_t I LR_VECTOR(4 * lanes);                                               \
        typedef std::int32_t Ih LR_VECTOR(2 * lanes);                                              \
        typedef std::uint64_t U LR_VECTOR(4 * lanes);                                              \
        typedef double D LR_VECTOR(4 * lanes);                                                     \
    };
#define LR_VECTOR(bytes) __attribute__((vector_size(bytes), aligned(4), may_alias))
LR_VECTORS(4)
LR_VECTORS(8)
LR_VECTORS(16)
#undef LR_VECTOR
#undef LR_VECTORS

// exp in f64: x = n ln 2 + r, |r| <= 0.347, and the first 13 terms of exp(r) = sum r^k / k!, which
// leave out less than 2e-16; hi has 33 bits, so that n * hi is exact.
constexpr double kExpLowest = -700.0, kExpLog2e = 0x1.71547652b82fep+0;
constexpr double kExpRound = 0x1.8p52; // adding it leaves n in the low bits
constexpr double kExpHi = 0x1.62e42fef00000p-1, kExpLo = 0x1.473de6af278edp-34;
constexpr std::array kExpTerms = {1.0 / 479001600,
                                  1.0 / 39916800,
                                  1.0 / 3628800,
                                  1.0 / 362880,
                                  1.0 / 40320,
                                  1.0 / 5040,
                                  1.0 / 720,
                                  1.0 / 120,
                                  1.0 / 24,
                                  1.0 / 6,
                                  1.0 / 2,
                                  1.0,
                                  1.0};

// The block behind the last whole one, if there is one.
bool survey_rest(const float* z, std::int64_t first, std::int64_t count, float* block_max) {
    if (first == count)
        return true;
    float odd = 0;
    for (std::int64_t i = first; i < count; ++i)
        odd += z[i] - z[i];
    *block_max = *std::max_element(z + first, z + count);
    return odd == 0.0f;
}

std::uint64_t weigh_rest(const float* z, std::int64_t first, std::int64_t count, float largest,
                         float temperature, std::uint64_t* weight) {
    std::uint64_t sum = 0;
    for (std::int64_t i = first; i < count; ++i) {
        weight[i] = numerics::softmax_weight((z[i] - largest) / temperature);
        sum += weight[i];
    }
    return sum;
}

#define LR_SOFTMAX_NAME(x) x##_baseline
#define LR_SOFTMAX_TARGET
#define LR_SOFTMAX_LANES 4
#include "cpu/sampling/softmax_lanes.inc"
#undef LR_SOFTMAX_NAME
#undef LR_SOFTMAX_TARGET
#undef LR_SOFTMAX_LANES

#if defined(__x86_64__)
#define LR_SOFTMAX_NAME(x) x##_avx2
#define LR_SOFTMAX_TARGET __attribute__((target("avx2")))
#define LR_SOFTMAX_LANES 8
#include "cpu/sampling/softmax_lanes.inc"
#undef LR_SOFTMAX_NAME
#undef LR_SOFTMAX_TARGET
#undef LR_SOFTMAX_LANES

#define LR_SOFTMAX_NAME(x) x##_avx512
#define LR_SOFTMAX_TARGET __attribute__((target("avx512f")))
#define LR_SOFTMAX_LANES 16
#include "cpu/sampling/softmax_lanes.inc"
#undef LR_SOFTMAX_NAME
#undef LR_SOFTMAX_TARGET
#undef LR_SOFTMAX_LANES
#endif

constexpr SoftmaxKernels kBaseline = {Isa::kBaseline, survey_baseline, weigh_baseline,
                                      sum_exp_baseline};
#if defined(__x86_64__)
constexpr SoftmaxKernels kAvx2 = {Isa::kAvx2, survey_avx2, weigh_avx2, sum_exp_avx2};
constexpr SoftmaxKernels kAvx512 = {Isa::kAvx512, survey_avx512, weigh_avx512, sum_exp_avx512};
#endif

} // namespace

const SoftmaxKernels& softmax_kernels(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::kAvx512)
        return kAvx512;
    if (isa == Isa::kAvx2)
        return kAvx2;
#endif
    return kBaseline;
}

const SoftmaxKernels& softmax_kernels() {
    static const SoftmaxKernels& set = softmax_kernels(isa());
    return set;
}

} // namespace lr::cpu
