// SPDX-License-Identifier: Apache-2.0
#include "numerics/weight_format.h"

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

std::int64_t weight_format_bytes(WeightFormat format, DType plain_dtype, std::int64_t rows,
                                 std::int64_t columns) {
    const std::int64_t count = rows * columns;
    switch (format) {
    case WeightFormat::kPlain:
        return dtype_bytes(plain_dtype, count);
    case WeightFormat::kFp8Block:
        return count + 2 * ((rows + 127) / 128) * ((columns + 127) / 128);
    case WeightFormat::kFp8Channel:
        return count + 4 * rows;
    case WeightFormat::kFp8Tensor:
        return count;
    case WeightFormat::kNvfp4:
        return count / 2 + count / 16;
    }
    return 0;
}

} // namespace lr::numerics
