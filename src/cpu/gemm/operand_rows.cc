// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/operand_rows.h"

#include "cpu/decode.h"
#include "cpu/rows.h"
#include "numerics/e4m3.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <array>

namespace lr::cpu {
namespace {

using ops::ActivationFormat;
using ops::WeightFormat;

// values[0..count) *= scale. Runs of a fixed length become vector code.
void scale_run(float* values, std::int64_t count, float scale) {
    constexpr std::int64_t kRun = 16;
    std::int64_t k = 0;
    for (; k + kRun <= count; k += kRun)
        for (std::int64_t i = 0; i < kRun; ++i)
            values[k + i] *= scale;
    for (; k < count; ++k)
        values[k] *= scale;
}

// NVFP4: e2m1 values times their E4M3 block scales, exact.
void scale_nvfp4(ConstView scale, std::int64_t row, std::int64_t columns, float* values) {
    const auto* codes = scale.row_as<std::uint8_t>(row);
    for (std::int64_t first = 0, b = 0; first < columns; first += numerics::kNvfp4Block, ++b)
        scale_run(values + first, numerics::kNvfp4Block, numerics::decode_e4m3(codes[b]));
}

float scale_at(ConstView scale, std::int64_t row, std::int64_t column) {
    float value = 0;
    load_floats(scale, row, column, 1, &value);
    return value;
}

} // namespace

WeightRows::WeightRows(const ops::Weight& w)
    : format_(w.format), parts_(w.parts), rows_(w.rows()), columns_(w.columns()) {
    LR_CHECK(w.bound() && w.shape.rank() == 2);
}

WeightRows::WeightRows(const ops::Weight& w, std::int64_t expert)
    : format_(w.format), rows_(w.rows()), columns_(w.columns()) {
    LR_CHECK(w.bound() && w.shape.rank() == 3 && expert >= 0 && expert < w.shape[0]);
    const std::size_t per_expert = w.parts.size() / static_cast<std::size_t>(w.shape[0]);
    parts_ = w.parts.subspan(static_cast<std::size_t>(expert) * per_expert, per_expert);
}

WeightRows::Place WeightRows::place(std::int64_t j) const {
    LR_DCHECK(j >= 0 && j < rows_);
    const ops::WeightPart* part = parts_.data();
    for (; j >= part->data.rows(); ++part)
        j -= part->data.rows();
    return {part, j};
}

void WeightRows::decode(std::int64_t j, BlockScales scales, float* out) const {
    const auto [part, row] = place(j);
    decode_row(part->data.dtype, part->data.row(row), columns_, out);
    if (format_ == WeightFormat::kNvfp4)
        scale_nvfp4(part->scale, row, columns_, out);
    if (format_ == WeightFormat::kFp8Block && scales == BlockScales::kInValues)
        for (std::int64_t k = 0, b = 0; k < columns_; k += numerics::kFp8Block, ++b)
            scale_run(out + k, std::min(numerics::kFp8Block, columns_ - k),
                      scale_at(part->scale, row / numerics::kFp8Block, b));
}

void WeightRows::decode_plain(std::int64_t j, std::int64_t first, std::int64_t count,
                              float* out) const {
    LR_DCHECK(format_ == WeightFormat::kPlain);
    const auto [part, row] = place(j);
    const DType dtype = part->data.dtype;
    decode_row(dtype, part->data.row(row) + dtype_bytes(dtype, first), count, out);
}

float WeightRows::factor(std::int64_t j) const {
    const auto [part, row] = place(j);
    switch (format_) {
    case WeightFormat::kPlain:
    case WeightFormat::kFp8Block:
        return 1.0f;
    case WeightFormat::kFp8Channel:
        return float_at(part->scale, row);
    case WeightFormat::kFp8Tensor:
    case WeightFormat::kNvfp4:
        return part->global;
    }
    return 1.0f;
}

void WeightRows::block_scales(std::int64_t j, float* out) const {
    const auto [part, row] = place(j);
    load_floats(part->scale, row / numerics::kFp8Block, 0, part->scale.shape[1], out);
}

ActivationRows::ActivationRows(ConstView x, ConstView scale, float global)
    : x_(x), scale_(scale), format_(ops::activation_format(x, scale)), global_(global) {}

ActivationRows::ActivationRows(ConstView x, ConstView scale, float global, ConstView row_map,
                               std::int32_t per_token)
    : ActivationRows(x, scale, global) {
    row_map_ = row_map;
    per_token_ = per_token;
}

std::int64_t ActivationRows::source(std::int64_t r) const {
    return row_map_.empty() ? r : int_at(row_map_, r) / per_token_;
}

BlockScales ActivationRows::scales() const {
    return format_ == ActivationFormat::kFp8Group ? BlockScales::kApart : BlockScales::kInValues;
}

void ActivationRows::decode(std::int64_t r, float* out) const {
    const std::int64_t row = source(r);
    decode_row(x_.dtype, x_.row(row), columns(), out);
    if (format_ == ActivationFormat::kNvfp4)
        scale_nvfp4(scale_, row, columns(), out);
}

float ActivationRows::factor(std::int64_t r) const {
    switch (format_) {
    case ActivationFormat::kPlain:
    case ActivationFormat::kFp8Group:
        return 1.0f;
    case ActivationFormat::kFp8Token:
        return float_at(scale_, source(r));
    case ActivationFormat::kFp8Static:
    case ActivationFormat::kNvfp4:
        return global_;
    }
    return 1.0f;
}

void ActivationRows::block_scales(std::int64_t r, float* out) const {
    load_floats(scale_, source(r), 0, scale_.shape[1], out);
}

} // namespace lr::cpu
