// SPDX-License-Identifier: Apache-2.0
//
// numerics/convert.h: rows of any float dtype to f32 and back, at any alignment.
//
// decode  exact; encode  as the codec of the dtype rounds (bf16.h, f16.h, e4m3.h, e2m1.h; ue8m0.h:
//         encode_ue8m0_nearest). No scale is involved: scaled formats are numerics/quantize.h.
// Supported: f32, bf16, f16, e4m3, e2m1 (count even), ue8m0. Anything else is a caller's mistake.
#pragma once

#include "core/dtype.h"

#include <cstddef>
#include <cstdint>

namespace lr::numerics {

void decode_to_f32(DType dtype, const std::byte* source, std::int64_t count, float* out);
void encode_from_f32(DType dtype, const float* source, std::int64_t count, std::byte* out);

} // namespace lr::numerics
