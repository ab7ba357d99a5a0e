// SPDX-License-Identifier: Apache-2.0
//
// numerics/weight_format.h: the formats in which a weight matrix can be stored, and what each
// costs.
//
//   format        data dtype        scale                              value of element (i, j)
//   kPlain        bf16 f16 f32      none                               data
//   kFp8Block     e4m3 [N, K]       bf16|f32 [ceil N/128, ceil K/128]  data * scale[i/128, j/128]
//   kFp8Channel   e4m3 [N, K]       bf16|f32 [N]                       data * scale[i]
//   kFp8Tensor    e4m3 [N, K]       none; one global factor            data * global
//   kNvfp4        e2m1 [N, K]       e4m3 [N, K/16], one global factor  data * scale[i, j/16] *
//   global
#pragma once

#include "core/dtype.h"
#include "core/shape.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace lr::numerics {

enum class WeightFormat : std::uint8_t { kPlain, kFp8Block, kFp8Channel, kFp8Tensor, kNvfp4 };

// "bf16", "fp8-block", "fp8-channel", "fp8-tensor", "nvfp4".
std::string_view weight_format_name(WeightFormat format);
std::optional<WeightFormat> weight_format_from_name(std::string_view name);

// What the table above says of a [rows, columns] matrix: its data's dtype, and its scale's shape
// and dtype where there is a scale (rank 0: none), bf16 and f32 as released files have them.
DType weight_data_dtype(WeightFormat format, DType plain_dtype);
Shape weight_scale_shape(WeightFormat format, std::int64_t rows, std::int64_t columns);
DType weight_scale_dtype(WeightFormat format);

// Bytes in memory of a [rows, columns] matrix in this format, scales included, global factors not.
std::int64_t weight_format_bytes(WeightFormat format, DType plain_dtype, std::int64_t rows,
                                 std::int64_t columns);

} // namespace lr::numerics
