// SPDX-License-Identifier: Apache-2.0
#include "model/quantize_scheme.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lr::model {
namespace {

using checkpoint::StoredFormat;
using numerics::BlockScales;

constexpr std::array<std::pair<QuantizeFormat, std::string_view>, 4> kFormats = {{
    {QuantizeFormat::kFp8Block, "fp8-block"},
    {QuantizeFormat::kFp8Channel, "fp8-channel"},
    {QuantizeFormat::kNvfp4, "nvfp4"},
    {QuantizeFormat::kNvfp4Mixed, "nvfp4-mixed"},
}};
constexpr std::array<std::pair<QuantizeFlavor, std::string_view>, 3> kFlavors = {{
    {QuantizeFlavor::kHf, "hf"},
    {QuantizeFlavor::kModelOpt, "modelopt"},
    {QuantizeFlavor::kCompressedTensors, "compressed-tensors"},
}};
// The first flavor of a format is the one it gets unasked.
constexpr std::array<std::pair<QuantizeFormat, QuantizeFlavor>, 6> kPairs = {{
    {QuantizeFormat::kFp8Block, QuantizeFlavor::kHf},
    {QuantizeFormat::kFp8Block, QuantizeFlavor::kCompressedTensors},
    {QuantizeFormat::kFp8Channel, QuantizeFlavor::kCompressedTensors},
    {QuantizeFormat::kNvfp4, QuantizeFlavor::kModelOpt},
    {QuantizeFormat::kNvfp4, QuantizeFlavor::kCompressedTensors},
    {QuantizeFormat::kNvfp4Mixed, QuantizeFlavor::kModelOpt},
}};

template <typename Table> std::vector<std::string> names_of(const Table& table) {
    std::vector<std::string> names;
    for (const auto& row : table)
        names.emplace_back(row.second);
    return names;
}

template <typename Table>
auto find_name(const Table& table, std::string_view name, std::string_view what)
    -> Result<typename Table::value_type::first_type> {
    for (const auto& row : table)
        if (row.second == name)
            return row.first;
    return fail(Code::kInvalidArgument, "{}: expected one of {}, got \"{}\"", what,
                fmt::join(names_of(table), ", "), name);
}

// "fp8-block (hf, compressed-tensors), ..."
std::string list_pairs() {
    std::string text;
    for (const auto& row : kFormats) {
        std::string flavors;
        for (const auto& pair : kPairs)
            if (pair.first == row.first)
                flavors += fmt::format("{}{}", flavors.empty() ? "" : ", ",
                                       quantize_flavor_name(pair.second));
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", row.second, flavors);
    }
    return text;
}

std::int64_t blocks(std::int64_t length) {
    return (length + numerics::kFp8Block - 1) / numerics::kFp8Block;
}

} // namespace

std::vector<std::string> quantize_format_names() {
    return names_of(kFormats);
}

std::vector<std::string> quantize_flavor_names() {
    return names_of(kFlavors);
}

std::string_view quantize_format_name(QuantizeFormat format) {
    return kFormats[static_cast<std::size_t>(format)].second;
}

std::string_view quantize_flavor_name(QuantizeFlavor flavor) {
    return kFlavors[static_cast<std::size_t>(flavor)].second;
}

Result<QuantizeScheme> quantize_scheme(std::string_view format, std::string_view flavor,
                                       bool experts_only, BlockScales scales, bool calibrated) {
    QuantizeScheme scheme{.experts_only = experts_only, .scales = scales, .calibrated = calibrated};
    LR_TRY_ASSIGN(scheme.format, find_name(kFormats, format, "format"));
    const auto* first = std::find_if(kPairs.begin(), kPairs.end(),
                                     [&](const auto& pair) { return pair.first == scheme.format; });
    scheme.flavor = first->second;
    if (!flavor.empty()) {
        LR_TRY_ASSIGN(scheme.flavor, find_name(kFlavors, flavor, "flavor"));
    }
    const auto pair = std::pair(scheme.format, scheme.flavor);
    if (std::find(kPairs.begin(), kPairs.end(), pair) == kPairs.end())
        return fail(Code::kInvalidArgument,
                    "format {} does not exist in flavor {}; expected one of {}", format, flavor,
                    list_pairs());
    const bool fp8 =
        scheme.format == QuantizeFormat::kFp8Block || scheme.format == QuantizeFormat::kFp8Channel;
    if (fp8 && scales == BlockScales::kMse)
        return fail(Code::kInvalidArgument,
                    "scales mse: expected a format with NVFP4 blocks (nvfp4, nvfp4-mixed), got {}",
                    format);
    if (fp8 && calibrated)
        return fail(Code::kInvalidArgument,
                    "calibration: expected a format with static activation scales (nvfp4, "
                    "nvfp4-mixed), got {}, whose activations are scaled as they come",
                    format);
    return scheme;
}

FormatPolicy quantize_policy(const QuantizeScheme& scheme) {
    const auto all = [](WeightFormat format) {
        return FormatPolicy{format, format, format, format};
    };
    FormatPolicy policy;
    switch (scheme.format) {
    case QuantizeFormat::kFp8Block:
        policy = all(WeightFormat::kFp8Block);
        break;
    case QuantizeFormat::kFp8Channel:
        policy = all(WeightFormat::kFp8Channel);
        break;
    case QuantizeFormat::kNvfp4:
        policy = all(WeightFormat::kNvfp4);
        break;
    case QuantizeFormat::kNvfp4Mixed:
        policy = all(WeightFormat::kFp8Tensor);
        policy.routed = WeightFormat::kNvfp4;
        break;
    }
    if (scheme.experts_only)
        policy.mixer = WeightFormat::kPlain;
    return policy;
}

StoredFormat stored_format(const QuantizeScheme& scheme, WeightFormat format) {
    switch (format) {
    case WeightFormat::kPlain:
        break;
    case WeightFormat::kFp8Block:
        return StoredFormat::kFp8Block;
    case WeightFormat::kFp8Channel:
        return StoredFormat::kFp8Channel;
    case WeightFormat::kFp8Tensor:
        return StoredFormat::kFp8Tensor;
    case WeightFormat::kNvfp4:
        return scheme.flavor == QuantizeFlavor::kCompressedTensors ? StoredFormat::kNvfp4Compressed
                                                                   : StoredFormat::kNvfp4ModelOpt;
    }
    LR_CHECK(format != WeightFormat::kPlain);
    return StoredFormat::kPlain;
}

std::vector<StoredSpec> stored_specs(const QuantizeScheme& scheme, WeightFormat format,
                                     const std::string& base, std::int64_t rows,
                                     std::int64_t columns) {
    const StoredSpec fp8 = {StoredPart::kCodes, {base + ".weight", DType::kE4M3, {rows, columns}}};
    const auto scale = [&](const char* suffix, DType dtype, Shape shape) {
        return StoredSpec{StoredPart::kScale, {base + suffix, dtype, shape}};
    };
    const auto global = [&](const char* suffix, Shape shape) {
        return StoredSpec{StoredPart::kGlobal, {base + suffix, DType::kF32, shape}};
    };
    const auto codes = [&](const char* suffix) {
        return StoredSpec{StoredPart::kCodes, {base + suffix, DType::kU8, {rows, columns / 2}}};
    };
    const auto with_input = [&](const char* suffix, std::vector<StoredSpec> specs) {
        const Shape shape = specs.front().spec.shape; // of the weight's own global factor
        if (scheme.calibrated)
            specs.insert(specs.begin(), {StoredPart::kInput, {base + suffix, DType::kF32, shape}});
        return specs;
    };
    const StoredSpec block_scale =
        scale(".weight_scale", DType::kE4M3, {rows, columns / numerics::kNvfp4Block});
    switch (stored_format(scheme, format)) {
    case StoredFormat::kPlain:
        break;
    case StoredFormat::kFp8Block: {
        const bool hf = scheme.flavor == QuantizeFlavor::kHf;
        return {scale(hf ? ".weight_scale_inv" : ".weight_scale", DType::kBF16,
                      {blocks(rows), blocks(columns)}),
                fp8};
    }
    case StoredFormat::kFp8Channel:
        return {scale(".weight_scale", DType::kF32, {rows, 1}), fp8};
    case StoredFormat::kFp8Tensor:
        return with_input(".input_scale", {global(".weight_scale", {}), fp8});
    case StoredFormat::kNvfp4ModelOpt:
        return with_input(".input_scale",
                          {global(".weight_scale_2", {}), codes(".weight"), block_scale});
    case StoredFormat::kNvfp4Compressed:
        return with_input(".input_global_scale", {global(".weight_global_scale", {1}),
                                                  codes(".weight_packed"), block_scale});
    }
    return {};
}

} // namespace lr::model
