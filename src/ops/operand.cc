// SPDX-License-Identifier: Apache-2.0
#include "ops/operand.h"

#include "numerics/quantize.h"

#include <cmath>

namespace lr::ops {
namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

void check_plain_part(ShapeCheck& check, const std::string& name, const WeightPart& part, Dim& rows,
                      Dim& k) {
    check.match(name, part.data, {rows, k}, {DType::kBF16, DType::kF16, DType::kF32});
    check.require(part.scale.empty(), name + ": a plain weight has no scale");
}

void check_fp8_part(ShapeCheck& check, const std::string& name, WeightFormat format,
                    const WeightPart& part, Dim& rows, Dim& k) {
    check.match(name, part.data, {rows, k}, {DType::kE4M3});
    if (!check.status().ok())
        return;
    const std::string scale = name + " scale";
    if (format == WeightFormat::kFp8Block)
        check.match(
            scale, part.scale,
            {ceil_div(rows.value(), numerics::kFp8Block), ceil_div(k.value(), numerics::kFp8Block)},
            {DType::kBF16, DType::kF32});
    else if (format == WeightFormat::kFp8Channel)
        check.match(scale, part.scale, {rows}, {DType::kBF16, DType::kF32});
    else
        check.require(part.scale.empty(), scale + ": an fp8-tensor weight has `global` alone");
}

void check_nvfp4_part(ShapeCheck& check, const std::string& name, const WeightPart& part, Dim& rows,
                      Dim& k) {
    check.match(name, part.data, {rows, k}, {DType::kE2M1});
    if (!check.status().ok())
        return;
    check.require(k.value() % numerics::kNvfp4Block == 0,
                  fmt::format("{} dim 1: expected a multiple of 16, got {}", name, k.value()));
    check.match(name + " scale", part.scale, {rows, k.value() / numerics::kNvfp4Block},
                {DType::kE4M3});
}

// Rows of one part, which add up to the rows of its weight (or of its expert).
std::int64_t check_part(ShapeCheck& check, const Weight& w, std::size_t index, Dim& k) {
    const WeightPart& part = w.parts[index];
    const std::string name = fmt::format("w part {}", index);
    Dim rows("rows");
    switch (w.format) {
    case WeightFormat::kPlain:
        check_plain_part(check, name, part, rows, k);
        break;
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
    case WeightFormat::kFp8Tensor:
        check_fp8_part(check, name, w.format, part, rows, k);
        break;
    case WeightFormat::kNvfp4:
        check_nvfp4_part(check, name, part, rows, k);
        break;
    }
    return rows.bound() ? rows.value() : 0;
}

} // namespace

std::string_view activation_format_name(ActivationFormat format) {
    switch (format) {
    case ActivationFormat::kPlain:
        return "plain";
    case ActivationFormat::kFp8Token:
        return "fp8-token";
    case ActivationFormat::kFp8Group:
        return "fp8-group";
    case ActivationFormat::kFp8Static:
        return "fp8-static";
    case ActivationFormat::kNvfp4:
        return "nvfp4";
    }
    return "unknown";
}

ActivationFormat activation_format(ConstView x, ConstView scale) {
    if (x.dtype == DType::kE2M1)
        return ActivationFormat::kNvfp4;
    if (x.dtype != DType::kE4M3)
        return ActivationFormat::kPlain;
    if (scale.shape.rank() == 0)
        return ActivationFormat::kFp8Static;
    return scale.shape.rank() == 1 ? ActivationFormat::kFp8Token : ActivationFormat::kFp8Group;
}

bool product_supported(ActivationFormat x, WeightFormat w) {
    switch (x) {
    case ActivationFormat::kPlain:
        return true;
    case ActivationFormat::kFp8Token:
    case ActivationFormat::kFp8Static:
        return w == WeightFormat::kFp8Channel || w == WeightFormat::kFp8Tensor;
    case ActivationFormat::kFp8Group:
        return w == WeightFormat::kFp8Block;
    case ActivationFormat::kNvfp4:
        return w == WeightFormat::kNvfp4;
    }
    return false;
}

void check_activation(ShapeCheck& check, std::string_view name, ConstView x, ConstView scale,
                      Dim& rows, Dim& k) {
    check.match(name, x, {rows, k}, {DType::kBF16, DType::kF32, DType::kE4M3, DType::kE2M1});
    if (!check.status().ok())
        return;
    const std::string scale_name = fmt::format("{}_scale", name);
    switch (activation_format(x, scale)) {
    case ActivationFormat::kPlain:
        check.require(scale.shape.rank() == 0,
                      fmt::format("{}: expected none beside {} values, got shape {}", scale_name,
                                  dtype_name(x.dtype), scale.shape.to_string()));
        break;
    case ActivationFormat::kFp8Token:
        check.match(scale_name, scale, {rows}, {DType::kF32});
        break;
    case ActivationFormat::kFp8Group:
        check.match(scale_name, scale, {rows, ceil_div(k.value(), numerics::kFp8Group)},
                    {DType::kF32});
        break;
    case ActivationFormat::kFp8Static:
        break;
    case ActivationFormat::kNvfp4:
        check.require(k.value() % numerics::kNvfp4Block == 0,
                      fmt::format("{} dim 1: expected a multiple of 16, got {}", name, k.value()));
        check.match(scale_name, scale, {rows, k.value() / numerics::kNvfp4Block}, {DType::kE4M3});
        break;
    }
}

void check_weight(ShapeCheck& check, const Weight& w, std::initializer_list<DimRef> dims) {
    check.require(w.present(), "w: expected a weight, got none");
    if (!check.status().ok())
        return;
    const ConstView symbol(nullptr, w.dtype, w.shape);
    check.match_optional("w", symbol, dims, {w.dtype});
    if (!check.status().ok() || !w.bound())
        return;
    const std::size_t experts =
        w.shape.rank() == 3 && w.shape[0] > 0 ? static_cast<std::size_t>(w.shape[0]) : 1;
    check.require(w.parts.size() % experts == 0,
                  fmt::format("w: expected as many parts for each of {} experts, got {} parts",
                              experts, w.parts.size()));
    Dim k("K", w.columns());
    const std::size_t per_expert = w.parts.size() / experts;
    for (std::size_t e = 0; e < experts && check.status().ok(); ++e) {
        std::int64_t rows = 0;
        for (std::size_t p = 0; p < per_expert; ++p)
            rows += check_part(check, w, e * per_expert + p, k);
        check.require(rows == w.rows(), fmt::format("w: expected {} rows in {} parts, got {}",
                                                    w.rows(), per_expert, rows));
    }
}

void check_product(ShapeCheck& check, ActivationFormat x, WeightFormat w) {
    check.require(product_supported(x, w),
                  fmt::format("no product of {} activations with {} weights; supported: plain x "
                              "any, fp8-token or fp8-static x fp8-channel or fp8-tensor, "
                              "fp8-group x fp8-block, nvfp4 x nvfp4",
                              activation_format_name(x), weight_format_name(w)));
}

std::int64_t share_of(double part, std::int64_t whole, std::int64_t bytes) {
    if (whole == 0)
        return 0;
    return std::llround(part / static_cast<double>(whole) * static_cast<double>(bytes));
}

double ExpertLoad::live_rows(std::int64_t local, std::int64_t capacity) const {
    if (tokens == 0)
        return static_cast<double>(capacity);
    return static_cast<double>(tokens) * per_token * static_cast<double>(local) / experts;
}

double ExpertLoad::live_experts(std::int64_t local) const {
    if (tokens == 0)
        return static_cast<double>(local);
    return expected_live_experts(experts, per_token, tokens) * static_cast<double>(local) / experts;
}

} // namespace lr::ops
