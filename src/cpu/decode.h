// SPDX-License-Identifier: Apache-2.0
//
// cpu/decode.h: rows of codes to f32, as numerics/convert.h decodes them, bit for bit but for the
// payload of a NaN, and fast. Rows of NVFP4 with their scales: cpu/kernels/kernels.h.
#pragma once

#include "core/dtype.h"

#include <cstddef>
#include <cstdint>

namespace lr::cpu {

// out[i] = value of code i; source at any alignment. f32, bf16, f16, e4m3, and e2m1 (count even).
void decode_row(DType dtype, const std::byte* source, std::int64_t count, float* out);

// The same without the kernels of this machine's instruction set: what those use for the last few.
void decode_codes(DType dtype, const std::byte* source, std::int64_t count, float* out);

} // namespace lr::cpu
