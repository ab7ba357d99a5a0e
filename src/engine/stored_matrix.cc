// SPDX-License-Identifier: Apache-2.0
#include "engine/stored_matrix.h"

#include "core/check.h"
#include "numerics/convert.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <cstring>

namespace lr::engine {
namespace {

using checkpoint::StoredWeight;
using checkpoint::TensorInfo;
using ops::WeightFormat;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// The part of a scale that belongs to these rows and columns.
ConstView cut_scale(const StoredMatrix& matrix, std::int64_t first, std::int64_t rows,
                    model::ColumnRange columns) {
    const auto cut = [&](std::int64_t unit_rows, std::int64_t unit_columns) {
        LR_CHECK(first % unit_rows == 0 && columns.first % unit_columns == 0);
        return matrix.scale.slice_rows(first / unit_rows, ceil_div(rows, unit_rows))
            .slice_columns(columns.first / unit_columns, ceil_div(columns.count, unit_columns));
    };
    switch (matrix.format) {
    case WeightFormat::kPlain:
    case WeightFormat::kFp8Tensor:
        break;
    case WeightFormat::kFp8Block:
        return cut(numerics::kFp8Block, numerics::kFp8Block);
    case WeightFormat::kFp8Channel:
        return matrix.scale.slice_rows(first, rows);
    case WeightFormat::kNvfp4:
        return cut(1, numerics::kNvfp4Block);
    }
    return {};
}

void append_part(const StoredMatrix& matrix, std::int64_t first, std::int64_t rows,
                 model::ColumnRange columns, float global, std::vector<ops::WeightPart>& parts) {
    ops::WeightPart part;
    part.data = matrix.data.slice_rows(first, rows);
    if (part.data.shape.rank() == 2)
        part.data = part.data.slice_columns(columns.first, columns.count);
    part.scale = cut_scale(matrix, first, rows, columns);
    part.global = global;
    parts.push_back(part);
}

// values[0..count) *= scale[i / run].
void multiply_runs(ConstView scale, std::int64_t row, std::int64_t run, std::int64_t count,
                   float* values) {
    std::vector<float> scales(static_cast<std::size_t>(scale.shape.row_count()));
    numerics::decode_to_f32(scale.dtype, scale.row(row), std::ssize(scales), scales.data());
    for (std::int64_t i = 0; i < count; ++i)
        values[i] *= scales[static_cast<std::size_t>(i / run)];
}

void widen_row(WeightFormat format, const ops::WeightPart& part, std::int64_t row, float* out) {
    const std::int64_t columns = part.data.shape[1];
    numerics::decode_to_f32(part.data.dtype, part.data.row(row), columns, out);
    if (format == WeightFormat::kFp8Block)
        multiply_runs(part.scale, row / numerics::kFp8Block, numerics::kFp8Block, columns, out);
    if (format == WeightFormat::kFp8Channel)
        multiply_runs(part.scale, row, columns, columns, out);
    if (format == WeightFormat::kNvfp4)
        multiply_runs(part.scale, row, numerics::kNvfp4Block, columns, out);
    if (format == WeightFormat::kFp8Tensor || format == WeightFormat::kNvfp4)
        for (std::int64_t i = 0; i < columns; ++i)
            out[i] *= part.global;
}

// Matrix `index` of a stack; a matrix, a vector and a convolution [C, 1, 4] stay what they are.
ConstView matrix_of(ConstView view, const StoredWeight& weight, std::int64_t index) {
    if (weight.shape.rank() == 3 && weight.shape[1] == 1 &&
        weight.format == checkpoint::StoredFormat::kPlain)
        return {view.data, view.dtype, {view.shape[0], view.shape[2]}};
    if (weight.shape.rank() != 3)
        return view;
    if (view.shape.rank() == 2)
        return {view.row(index), view.dtype, {view.shape[1]}};
    return {view.row(index), view.dtype, {view.shape[1], view.shape[2]}};
}

} // namespace

void append_parts(const StoredMatrix& matrix, std::int64_t first, std::int64_t rows,
                  model::ColumnRange columns, std::vector<ops::WeightPart>& parts) {
    // Halves stay apart even where their globals agree: all experts of a stack have as many parts.
    const auto [upper, lower] = matrix.globals;
    const std::int64_t half = matrix.data.shape[0] / (matrix.halves ? 2 : 1);
    const std::int64_t above = std::clamp<std::int64_t>(half - first, 0, rows);
    if (above > 0)
        append_part(matrix, first, above, columns, upper, parts);
    if (above < rows)
        append_part(matrix, first + above, rows - above, columns, lower, parts);
}

Result<Buffer> widen(WeightFormat format, const ops::WeightPart& part) {
    const Shape& shape = part.data.shape;
    LR_CHECK(format != WeightFormat::kPlain && shape.rank() == 2);
    LR_TRY_ASSIGN(Buffer buffer,
                  Buffer::allocate(dtype_bytes(DType::kF32, shape.count()), "a widened weight"));
    auto* out = reinterpret_cast<float*>(buffer.data());
    for (std::int64_t row = 0; row < shape[0]; ++row)
        widen_row(format, part, row, out + row * shape[1]);
    return buffer;
}

Result<StoredMatrix> StoredMatrices::matrix(const StoredWeight& weight, std::int64_t index) {
    StoredMatrix matrix;
    matrix.format = checkpoint::weight_format(weight.format);
    LR_TRY_ASSIGN(ConstView data, aligned_view(*weight.weight));
    if (matrix.format == WeightFormat::kNvfp4)
        data = {data.data, DType::kE2M1, weight.shape};
    matrix.data = matrix_of(data, weight, index);
    if (weight.scale != nullptr) {
        LR_TRY_ASSIGN(ConstView scale, aligned_view(*weight.scale));
        const int rank = scale.shape.rank();
        // Channel scales are [.., N] to ops; a file may add a dimension of 1.
        if (matrix.format == WeightFormat::kFp8Channel && rank == weight.shape.rank())
            scale = {scale.data, scale.dtype,
                     rank == 3 ? Shape{scale.shape[0], scale.shape[1]} : Shape{scale.shape[0]}};
        matrix.scale = matrix_of(scale, weight, index);
    }
    matrix.halves = weight.factors_per_matrix() == 2;
    matrix.globals = {weight.decode_factor(index),
                      weight.decode_factor(index, matrix.halves ? 1 : 0)};
    return matrix;
}

// The tensor in place, or a copy.
Result<ConstView> StoredMatrices::aligned_view(const TensorInfo& tensor) {
    LR_TRY_ASSIGN(ConstView view, tensor.view());
    if (tensor.aligned())
        return view;
    for (const auto& [data, copy] : copied_)
        if (data == tensor.data)
            return ConstView{copy, view.dtype, view.shape};
    LR_TRY_ASSIGN(Buffer copy, Buffer::allocate(tensor.bytes, tensor.name));
    std::memcpy(copy.data(), tensor.data, static_cast<std::size_t>(tensor.bytes));
    copied_.emplace_back(tensor.data, copy.data());
    view.data = copy.data();
    copies_.push_back(std::move(copy));
    return view;
}

} // namespace lr::engine
