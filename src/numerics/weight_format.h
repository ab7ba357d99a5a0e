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

#include <cstdint>
#include <optional>
#include <string_view>

namespace lr::numerics {

enum class WeightFormat : std::uint8_t { kPlain, kFp8Block, kFp8Channel, kFp8Tensor, kNvfp4 };

// "bf16", "fp8-block", "fp8-channel", "fp8-tensor", "nvfp4".
std::string_view weight_format_name(WeightFormat format);
std::optional<WeightFormat> weight_format_from_name(std::string_view name);

// Bytes in memory of a [rows, columns] matrix in this format, scales included (block scales counted
// as bf16, channel scales as f32: what released files hold; global factors not counted).
std::int64_t weight_format_bytes(WeightFormat format, DType plain_dtype, std::int64_t rows,
                                 std::int64_t columns);

} // namespace lr::numerics
