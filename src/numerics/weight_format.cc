// SPDX-License-Identifier: Apache-2.0
#include "numerics/weight_format.h"

#include "numerics/quantize.h"

#include <array>
#include <utility>

namespace lr::numerics {
namespace {

constexpr std::array<std::pair<WeightFormat, std::string_view>, 5> kNames = {{
    {WeightFormat::kPlain, "bf16"},
    {WeightFormat::kFp8Block, "fp8-block"},
    {WeightFormat::kFp8Channel, "fp8-channel"},
    {WeightFormat::kFp8Tensor, "fp8-tensor"},
    {WeightFormat::kNvfp4, "nvfp4"},
}};

} // namespace

std::string_view weight_format_name(WeightFormat format) {
    return kNames[static_cast<std::size_t>(format)].second;
}

std::optional<WeightFormat> weight_format_from_name(std::string_view name) {
    for (const auto& [format, text] : kNames)
        if (text == name)
            return format;
    return std::nullopt;
}

DType weight_data_dtype(WeightFormat format, DType plain_dtype) {
    switch (format) {
    case WeightFormat::kPlain:
        return plain_dtype;
    case WeightFormat::kNvfp4:
        return DType::kE2M1;
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
    case WeightFormat::kFp8Tensor:
        break;
    }
    return DType::kE4M3;
}

Shape weight_scale_shape(WeightFormat format, std::int64_t rows, std::int64_t columns) {
    switch (format) {
    case WeightFormat::kFp8Block:
        return {(rows + kFp8Block - 1) / kFp8Block, (columns + kFp8Block - 1) / kFp8Block};
    case WeightFormat::kFp8Channel:
        return {rows};
    case WeightFormat::kNvfp4:
        return {rows, columns / kNvfp4Block};
    case WeightFormat::kPlain:
    case WeightFormat::kFp8Tensor:
        break;
    }
    return {};
}

DType weight_scale_dtype(WeightFormat format) {
    switch (format) {
    case WeightFormat::kFp8Block:
        return DType::kBF16;
    case WeightFormat::kNvfp4:
        return DType::kE4M3;
    case WeightFormat::kPlain:
    case WeightFormat::kFp8Channel:
    case WeightFormat::kFp8Tensor:
        break;
    }
    return DType::kF32;
}

std::int64_t weight_format_bytes(WeightFormat format, DType plain_dtype, std::int64_t rows,
                                 std::int64_t columns) {
    const Shape scale = weight_scale_shape(format, rows, columns);
    return dtype_bytes(weight_data_dtype(format, plain_dtype), rows * columns) +
           (scale.rank() == 0 ? 0 : dtype_bytes(weight_scale_dtype(format), scale.count()));
}

} // namespace lr::numerics
