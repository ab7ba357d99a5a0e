// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/operand_rows.h"

#include "cpu/decode.h"
#include "cpu/rows.h"
#include "numerics/quantize.h"

#include <algorithm>

namespace lr::cpu {
namespace {

using ops::ActivationFormat;
using ops::WeightFormat;

Codes codes_of(WeightFormat format, DType dtype) {
    if (format == WeightFormat::kNvfp4)
        return Codes::kNvfp4;
    switch (dtype) {
    case DType::kBF16:
        return Codes::kBF16;
    case DType::kF16:
        return Codes::kF16;
    case DType::kE4M3:
        return Codes::kE4M3;
    default:
        LR_CHECK(dtype == DType::kF32);
        return Codes::kF32;
    }
}

// values[k] *= lift * scales[0, k/128]: one rounding, since lift is a power of two.
void scale_blocks(ConstView scales, std::int64_t count, float lift, float* values) {
    constexpr std::int64_t kBlocks = 64; // at a time
    float factors[kBlocks];
    for (std::int64_t k = 0; k < count; k += kBlocks * numerics::kFp8Block) {
        const std::int64_t some = std::min(kBlocks * numerics::kFp8Block, count - k);
        const std::int64_t blocks = (some + numerics::kFp8Block - 1) / numerics::kFp8Block;
        load_floats(scales, 0, k / numerics::kFp8Block, blocks, factors);
        for (std::int64_t b = 0; b < blocks; ++b)
            factors[b] *= lift;
        kernels().scale_blocks(values + k, factors, some, values + k);
    }
}

bool is_fp8(WeightFormat format) {
    return format == WeightFormat::kFp8Block || format == WeightFormat::kFp8Channel ||
           format == WeightFormat::kFp8Tensor;
}

} // namespace

WeightRows::WeightRows(const ops::Weight& w)
    : format_(w.format), is_fp8_(is_fp8(w.format)), parts_(w.parts), rows_(w.rows()),
      columns_(w.columns()) {
    LR_CHECK(w.bound() && w.shape.rank() == 2);
}

WeightRows::WeightRows(const ops::Weight& w, std::int64_t expert)
    : format_(w.format), is_fp8_(is_fp8(w.format)), rows_(w.rows()), columns_(w.columns()) {
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

WeightRun WeightRows::run(std::int64_t j, std::int64_t count) const {
    const auto [part, row] = place(j);
    WeightRun run;
    run.codes = codes_of(format_, part->data.dtype);
    run.rows = std::min(count, part->data.rows() - row);
    run.data = part->data.row(row);
    run.stride = dtype_bytes(part->data.dtype, part->data.row_stride);
    if (format_ == WeightFormat::kNvfp4) {
        run.scales = part->scale.row_as<std::uint8_t>(row);
        run.scale_stride = part->scale.row_stride;
    }
    if (format_ == WeightFormat::kFp8Block) {
        const std::int64_t block = row / numerics::kFp8Block;
        run.rows = std::min(run.rows, (block + 1) * numerics::kFp8Block - row);
        run.block_scales = part->scale.slice_rows(block, 1);
    }
    return run;
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

bool WeightRows::exact_in_bf16() const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const ops::WeightPart& part) {
        const Codes codes = codes_of(format_, part.data.dtype);
        return codes == Codes::kBF16 || codes == Codes::kE4M3 || codes == Codes::kNvfp4;
    });
}

std::optional<Codes> WeightRows::codes() const {
    const Codes first = codes_of(format_, parts_[0].data.dtype);
    for (const ops::WeightPart& part : parts_)
        if (codes_of(format_, part.data.dtype) != first)
            return std::nullopt;
    return first;
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

void ActivationRows::decode(std::int64_t r, float lift, float* out) const {
    const std::int64_t row = source(r);
    if (format_ == ActivationFormat::kNvfp4) {
        LR_CHECK(lift == 1.0f); // meets NVFP4 weights only
        return kernels().decode(Codes::kNvfp4, x_.row(row), scale_.row_as<std::uint8_t>(row),
                                columns(), out);
    }
    decode_row(x_.dtype, x_.row(row), columns(), out);
    if (format_ == ActivationFormat::kFp8Group)
        scale_blocks(scale_.slice_rows(row, 1), columns(), lift, out);
    else if (lift != 1.0f)
        for (std::int64_t k = 0; k < columns(); ++k)
            out[k] *= lift;
}

bool ActivationRows::exact_in_bf16() const {
    return format_ != ActivationFormat::kPlain || x_.dtype == DType::kBF16;
}

void ActivationRows::pack(std::int64_t r, Codes order, std::uint16_t* packed) const {
    const std::int64_t row = source(r);
    const Bf16Kernels& bf16 = *kernels().bf16;
    if (format_ == ActivationFormat::kPlain)
        return bf16.pack(order, x_.row(row), columns(), packed);
    if (format_ != ActivationFormat::kNvfp4) {
        LR_CHECK(order == Codes::kE4M3); // FP8 meets FP8 weights only
        return bf16.expand(Codes::kE4M3, x_.row(row), nullptr, columns(), packed, nullptr);
    }
    for (std::int64_t k = 0; k < columns(); k += kDotBlock) {
        const std::int64_t some = std::min(kDotBlock, columns() - k);
        float values[kDotBlock];
        std::uint16_t exact[kDotBlock];
        kernels().decode(Codes::kNvfp4, x_.row(row) + k / 2,
                         scale_.row_as<std::uint8_t>(row) + k / 16, some, values);
        kernels().encode_bf16(values, some, exact);
        bf16.pack(order, reinterpret_cast<const std::byte*>(exact), some, packed + k);
    }
}

void ActivationRows::multiply_group_scales(std::int64_t r, std::int64_t groups,
                                           float* scales) const {
    if (!has_group_scales())
        return;
    const float* own = scale_.row_as<float>(source(r));
    for (std::int64_t b = 0; b < groups; ++b)
        scales[b] *= own[b];
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

} // namespace lr::cpu
