// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/counted.h"

#include "core/check.h"
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/f16.h"

#include <limits>

namespace lr::cpu::reference {

double nearest(double x, DType dtype) {
    const auto single = static_cast<float>(x);
    switch (dtype) {
    case DType::kF64:
        return x;
    case DType::kF32:
        return single;
    case DType::kBF16:
        return numerics::round_bf16(single);
    case DType::kF16:
        return numerics::decode_f16(numerics::encode_f16(single));
    case DType::kE4M3:
        return numerics::decode_e4m3(numerics::encode_e4m3(single));
    case DType::kE2M1:
        return numerics::decode_e2m1(numerics::encode_e2m1(single));
    default:
        LR_CHECK(false);
        return 0;
    }
}

Counted stored(Counted x, DType dtype) {
    const double value = nearest(x.value, dtype);
    if (!std::isfinite(value) || !std::isfinite(x.value))
        return {value, 0};
    if (x.exact())
        return {value, 0};
    if (dtype == DType::kF32 || dtype == DType::kF64)
        return {value, x.error + std::abs(value - x.value)};
    // Through f32, as an implementation stores: its own rounding is part of the error.
    const double low = nearest(x.value - x.error, dtype), high = nearest(x.value + x.error, dtype);
    const double error = std::max(high - value, value - low);
    // Zero of either sign: equal as numbers, not as bits.
    const bool signs = error == 0 && value == 0 && std::signbit(low) != std::signbit(high);
    return {value, signs ? std::numeric_limits<double>::min() : error};
}

} // namespace lr::cpu::reference
