// SPDX-License-Identifier: Apache-2.0
#include "cpu/activation.h"

#include "numerics/softmax_weight.h"

#include <cstring>

namespace lr::cpu {
namespace {

constexpr std::int64_t kWidth = 4; // lanes of the baseline's registers
using Floats = float __attribute__((vector_size(16)));
using Words = std::uint32_t __attribute__((vector_size(16)));
using Ints = std::int32_t __attribute__((vector_size(16)));

// The polynomial of numerics/softmax_weight.h, times a power of two in two steps, of which neither
// overflows.
[[gnu::always_inline]] inline Floats exp_of(Floats x) {
    using C = numerics::SoftmaxWeight;
    const Floats most = Floats{} + 89.0f, least = Floats{} - 104.0f; // infinity and 0 lie between
    x = x > most ? most : x;
    x = x < least ? least : x;
    const Floats n = (x * C::kLog2e + C::kRound) - C::kRound;
    const Floats r = (x - n * C::kHi) - n * C::kLo;
    const Floats tail = C::kC2 + r * (C::kC3 + r * (C::kC4 + r * (C::kC5 + r * C::kC6)));
    const Floats p = 1.0f + (r + r * r * tail);
    const Ints power = __builtin_convertvector(n, Ints);
    const Ints half = power >> 1;
    const Words first = ((Words)half + 127u) << 23;
    const Words second = ((Words)power - (Words)half + 127u) << 23;
    return p * (Floats)first * (Floats)second;
}

template <typename Function>
void each(const float* x, std::int64_t count, float* out, Function function) {
    std::int64_t i = 0;
    for (; i + kWidth <= count; i += kWidth) {
        Floats some;
        std::memcpy(&some, x + i, sizeof(some));
        some = function(some);
        std::memcpy(out + i, &some, sizeof(some));
    }
    if (i == count)
        return;
    Floats some = {};
    const auto bytes = static_cast<std::size_t>(count - i) * sizeof(float);
    std::memcpy(&some, x + i, bytes);
    some = function(some);
    std::memcpy(out + i, &some, bytes);
}

} // namespace

void exp_each(const float* x, std::int64_t count, float shift, float* out) {
    each(x, count, out, [shift](Floats v) { return exp_of(v - shift); });
}

void sigmoid_each(const float* x, std::int64_t count, float* out) {
    each(x, count, out, [](Floats v) { return 1.0f / (1.0f + exp_of(-v)); });
}

void silu_each(const float* x, std::int64_t count, float* out) {
    each(x, count, out, [](Floats v) { return v / (1.0f + exp_of(-v)); });
}

} // namespace lr::cpu
