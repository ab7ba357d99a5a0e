// SPDX-License-Identifier: Apache-2.0
//
// core/view.h: a typed window on memory that somebody else owns.
//
// A view is row-major; dims 1.. are dense, and consecutive entries of dim 0 ("rows") are
// `row_stride` elements apart, so that a column range of a matrix is a view too. Trivially
// copyable; never owns; says nothing about which device the memory is on (the folder that uses it
// knows).
#pragma once

#include "core/check.h"
#include "core/dtype.h"
#include "core/shape.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lr {

template <typename Byte> struct BasicView {
    Byte* data = nullptr;
    DType dtype = DType::kF32;
    Shape shape;
    std::int64_t row_stride = 0; // elements between entries of dim 0

    BasicView() = default;
    BasicView(Byte* data_in, DType dtype_in, Shape shape_in)
        : data(data_in), dtype(dtype_in), shape(shape_in), row_stride(shape_in.row_count()) {}
    BasicView(Byte* data_in, DType dtype_in, Shape shape_in, std::int64_t row_stride_in)
        : data(data_in), dtype(dtype_in), shape(shape_in), row_stride(row_stride_in) {}

    // View converts to ConstView.
    operator BasicView<const std::byte>() const { return {data, dtype, shape, row_stride}; }

    bool empty() const { return data == nullptr; }
    std::int64_t rows() const { return shape.rank() ? shape[0] : 1; }
    bool dense() const { return row_stride == shape.row_count(); }
    std::int64_t bytes() const { return dtype_bytes(dtype, shape.count()); }

    // Byte address of row i.
    Byte* row(std::int64_t i) const { return data + dtype_bytes(dtype, i * row_stride); }

    // Rows [first, first + count) as a view of the same rank.
    BasicView slice_rows(std::int64_t first, std::int64_t count) const {
        BasicView part = *this;
        part.data = row(first);
        part.shape[0] = count;
        return part;
    }

    // Columns [first, first + count) of a rank-2 view.
    BasicView slice_columns(std::int64_t first, std::int64_t count) const {
        LR_DCHECK(shape.rank() == 2 && first + count <= shape[1]);
        return {data + dtype_bytes(dtype, first), dtype, {shape[0], count}, row_stride};
    }

    // Typed pointers. T must be the element type (std::uint16_t for bf16/f16, std::uint8_t for
    // codes).
    template <typename T> auto* as() const {
        using Out = std::conditional_t<std::is_const_v<Byte>, const T, T>;
        LR_DCHECK(dtype_bits(dtype) == 8 * static_cast<int>(sizeof(T)) ||
                  (dtype == DType::kE2M1 && sizeof(T) == 1));
        return reinterpret_cast<Out*>(data);
    }
    template <typename T> auto* row_as(std::int64_t i) const {
        using Out = std::conditional_t<std::is_const_v<Byte>, const T, T>;
        return reinterpret_cast<Out*>(row(i));
    }
};

using View = BasicView<std::byte>;
using ConstView = BasicView<const std::byte>;

} // namespace lr
