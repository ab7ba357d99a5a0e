// SPDX-License-Identifier: Apache-2.0
//
// cuda/detail/operand.h: views as kernels take them, and the conditions that launchers put on
// dtypes and alignment. For .cu files only.
#pragma once

#include "core/status.h"
#include "core/view.h"
#include "ops/op.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace lr::cuda::detail {

inline constexpr std::int64_t kVectorBytes = 16; // of the loads and stores of most kernels

// Rows of a view; trivially copyable, for kernel parameters.
template <typename T> struct Rows {
    T* data = nullptr;
    std::int64_t stride = 0; // elements

    __device__ T* operator[](std::int64_t row) const { return data + row * stride; }
    __host__ __device__ explicit operator bool() const { return data != nullptr; }
};
template <typename T, typename Byte> Rows<T> rows(const BasicView<Byte>& view) {
    return {reinterpret_cast<T*>(view.data), view.row_stride};
}
template <typename T, typename Byte> T* values(const BasicView<Byte>& view) {
    return reinterpret_cast<T*>(view.data);
}

// A float tensor of any dtype that a kernel reads a few elements of.
struct AnyFloats {
    const std::byte* data = nullptr;
    DType dtype = DType::kF32;
};
inline AnyFloats any_floats(ConstView view) {
    return {view.data, view.dtype};
}

struct Named {
    const char* name;
    ConstView view;
};

// Each present view has this dtype: kUnsupported with the tensor's name otherwise.
inline Status require_dtype(std::string_view op, DType dtype, std::initializer_list<Named> views) {
    for (const Named& named : views)
        if (!named.view.empty() && named.view.dtype != dtype)
            return fail(Code::kUnsupported, "cuda: {}: expected {} {}, got {}", op,
                        dtype_name(dtype), named.name, dtype_name(named.view.dtype));
    return {};
}

// Rows of each present view begin on a 16-byte boundary and `unit` elements at a time fill whole
// vectors.
inline Status require_vectors(std::string_view op, std::initializer_list<Named> views) {
    for (const Named& named : views) {
        if (named.view.empty())
            continue;
        const std::int64_t stride = dtype_bytes(named.view.dtype, named.view.row_stride);
        const std::int64_t width = dtype_bytes(named.view.dtype, named.view.shape.row_count());
        if (reinterpret_cast<std::uintptr_t>(named.view.data) % kVectorBytes != 0 ||
            (named.view.rows() > 1 && stride % kVectorBytes != 0) || width % kVectorBytes != 0)
            return fail(Code::kUnsupported,
                        "cuda: {}: expected rows of {} in whole 16-byte vectors, got {} bytes, {} "
                        "bytes apart",
                        op, named.name, width, stride);
    }
    return {};
}

// kernels compute with the model's roundings alone.
template <typename Args> Status require_model_precision(std::string_view op, const Args& args) {
    if (args.precision != ops::Precision::kModel)
        return fail(Code::kUnsupported,
                    "cuda: {}: expected the model's precision, got f32 (the CPU has it)", op);
    return {};
}

inline unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
    return static_cast<unsigned>((items + per_block - 1) / per_block);
}

} // namespace lr::cuda::detail
