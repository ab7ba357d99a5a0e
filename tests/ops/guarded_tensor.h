// SPDX-License-Identifier: Apache-2.0
//
// tests/ops/guarded_tensor.h: a tensor for op tests: owned, possibly row-strided, with guard bytes
// before, after and between its rows, and full of NaN (all bits set) until it is written.
//
// Elements are numbered along the dense shape; the gaps of a strided tensor have no numbers.
#pragma once

#include "core/view.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"
#include "numerics/f16.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace lr::ops {

class GuardedTensor {
  public:
    static constexpr std::size_t kGuardBytes = 64;
    static constexpr std::byte kGuard{0xA5};

    // row_stride 0: dense.
    GuardedTensor(DType dtype, Shape shape, std::int64_t row_stride = 0)
        : shape_(shape), dtype_(dtype), stride_(row_stride == 0 ? shape.row_count() : row_stride) {
        const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
        const auto inside = static_cast<std::size_t>(dtype_bytes(dtype, rows * stride_));
        bytes_.assign(inside + 2 * kGuardBytes, kGuard);
        for (std::int64_t i = 0; i < rows; ++i)
            std::memset(view().row(i), 0xFF, row_bytes());
    }

    View view() { return {bytes_.data() + kGuardBytes, dtype_, shape_, stride_}; }
    operator View() { return view(); }
    operator ConstView() { return view(); }
    std::int64_t count() const { return shape_.count(); }

    // Independent, normal with the given deviation and mean, rounded to the dtype.
    GuardedTensor& fill(const char* name, double deviation, double mean = 0) {
        const numerics::CounterRng rng(name, 7);
        for (std::int64_t i = 0; i < count(); ++i)
            set(i, rng.normal(static_cast<std::uint64_t>(i), numerics::normal_scale(deviation),
                              static_cast<float>(mean)));
        return *this;
    }

    void set(std::int64_t i, double value) {
        switch (dtype_) {
        case DType::kF32:
            return put(i, static_cast<float>(value));
        case DType::kBF16:
            return put(i, numerics::encode_bf16(static_cast<float>(value)));
        case DType::kF16:
            return put(i, numerics::encode_f16(static_cast<float>(value)));
        case DType::kI32:
            return put(i, static_cast<std::int32_t>(value));
        case DType::kI64:
            return put(i, static_cast<std::int64_t>(value));
        case DType::kU16:
            return put(i, static_cast<std::uint16_t>(value));
        case DType::kF64:
            return put(i, value);
        default:
            return put(i, static_cast<std::uint8_t>(value)); // a code
        }
    }

    GuardedTensor& set_all(const std::vector<double>& values) {
        for (std::size_t i = 0; i < values.size(); ++i)
            set(static_cast<std::int64_t>(i), values[i]);
        return *this;
    }

    double at(std::int64_t i) {
        switch (dtype_) {
        case DType::kF32:
            return get<float>(i);
        case DType::kBF16:
            return numerics::decode_bf16(get<std::uint16_t>(i));
        case DType::kF16:
            return numerics::decode_f16(get<std::uint16_t>(i));
        case DType::kI32:
            return get<std::int32_t>(i);
        case DType::kI64:
            return static_cast<double>(get<std::int64_t>(i));
        case DType::kU16:
            return get<std::uint16_t>(i);
        case DType::kF64:
            return get<double>(i);
        default:
            return get<std::uint8_t>(i); // a code
        }
    }

    // All bits of rows [first, first + rows) set: NaN as a float, 0xFF as a scale code, -1 as an
    // index.
    void poison(std::int64_t first, std::int64_t rows) {
        for (std::int64_t i = first; i < first + rows; ++i)
            std::memset(view().row(i), 0xFF, row_bytes());
    }

    std::vector<std::byte> row_bits(std::int64_t i) {
        return {view().row(i), view().row(i) + row_bytes()};
    }
    bool row_is_zero(std::int64_t i) {
        const auto bits = row_bits(i);
        return std::all_of(bits.begin(), bits.end(), [](std::byte b) { return b == std::byte{0}; });
    }

    // Every byte, guards included: equal after a run means equal results and intact guards.
    const std::vector<std::byte>& all_bytes() const { return bytes_; }

    // That nothing outside the elements changed.
    bool guards_intact() {
        std::vector<std::byte> copy = bytes_;
        for (std::int64_t i = 0; i < view().rows(); ++i)
            std::fill_n(copy.begin() + (view().row(i) - bytes_.data()), row_bytes(), kGuard);
        return std::all_of(copy.begin(), copy.end(), [](std::byte b) { return b == kGuard; });
    }

  private:
    std::size_t row_bytes() const {
        return static_cast<std::size_t>(dtype_bytes(dtype_, shape_.row_count()));
    }
    std::byte* address(std::int64_t i) {
        const std::int64_t width = shape_.row_count();
        return view().row(i / width) + dtype_bytes(dtype_, i % width);
    }
    template <typename T> void put(std::int64_t i, T value) {
        std::memcpy(address(i), &value, sizeof value);
    }
    template <typename T> T get(std::int64_t i) {
        T value;
        std::memcpy(&value, address(i), sizeof value);
        return value;
    }

    Shape shape_;
    DType dtype_;
    std::int64_t stride_;
    std::vector<std::byte> bytes_;
};

} // namespace lr::ops
