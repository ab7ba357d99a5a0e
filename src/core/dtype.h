// SPDX-License-Identifier: Apache-2.0
//
// core/dtype.h: the element types that tensors have in files, in memory and in kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lr {

enum class DType : std::uint8_t {
    kF32,
    kBF16,
    kF16,
    kE4M3,  // E4M3FN: max 448, no infinity, NaN = 0x7F / 0xFF
    kE2M1,  // FP4, two codes to a byte along the last dim: low nibble = even index
    kUE8M0, // power-of-two scale, value 2^(code - 127), NaN = 0xFF
    kU8,
    kI32,
    kI64,
    kU16,
    kF64,
};

// Bits of one element: 4 for kE2M1, else a multiple of 8.
int dtype_bits(DType dtype);

// "f32", "bf16", "f16", "e4m3", "e2m1", "ue8m0", "u8", "i32", "i64",
// "u16", "f64".
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of `count` elements laid out densely (kE2M1: two to a byte, count even).
std::int64_t dtype_bytes(DType dtype, std::int64_t count);

constexpr bool is_float(DType dtype) {
    return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

} // namespace lr
