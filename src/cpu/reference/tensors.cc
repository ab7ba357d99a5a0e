// SPDX-License-Identifier: Apache-2.0
#include "cpu/reference/tensors.h"

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/f16.h"

#include <cstring>

namespace lr::cpu::reference {
namespace {

double decode(const std::byte* row, std::int64_t index, DType dtype) {
    switch (dtype) {
    case DType::kF32:
        return reinterpret_cast<const float*>(row)[index];
    case DType::kF64:
        return reinterpret_cast<const double*>(row)[index];
    case DType::kBF16:
        return numerics::decode_bf16(reinterpret_cast<const std::uint16_t*>(row)[index]);
    case DType::kF16:
        return numerics::decode_f16(reinterpret_cast<const std::uint16_t*>(row)[index]);
    case DType::kE4M3:
        return numerics::decode_e4m3(reinterpret_cast<const std::uint8_t*>(row)[index]);
    case DType::kE2M1:
        return numerics::decode_e2m1(
            numerics::unpack_e2m1(reinterpret_cast<const std::uint8_t*>(row), index));
    default:
        LR_CHECK(false);
        return 0;
    }
}

void encode(std::byte* row, std::int64_t index, DType dtype, double value) {
    const auto single = static_cast<float>(value);
    switch (dtype) {
    case DType::kF32:
        reinterpret_cast<float*>(row)[index] = single;
        return;
    case DType::kF64:
        reinterpret_cast<double*>(row)[index] = value;
        return;
    case DType::kBF16:
        reinterpret_cast<std::uint16_t*>(row)[index] = numerics::encode_bf16(single);
        return;
    case DType::kE4M3:
        reinterpret_cast<std::uint8_t*>(row)[index] = numerics::encode_e4m3(single);
        return;
    case DType::kE2M1: {
        auto& byte = reinterpret_cast<std::uint8_t*>(row)[index / 2];
        const std::uint8_t code = numerics::encode_e2m1(single);
        byte = index % 2 == 0 ? numerics::pack_e2m1(code, byte >> 4)
                              : numerics::pack_e2m1(byte & 0xF, code);
        return;
    }
    default:
        LR_CHECK(false);
    }
}

} // namespace

void Errors::open(const std::byte* base, std::int64_t bytes, DType dtype) {
    const auto count = static_cast<std::size_t>(bytes * 8 / dtype_bits(dtype));
    tensors_[base] = {bytes, dtype, std::vector<double>(count, 0.0)};
}

double* Errors::find(const std::byte* address) {
    auto next = tensors_.upper_bound(address);
    if (next == tensors_.begin())
        return nullptr;
    auto& [base, tensor] = *--next;
    if (address >= base + tensor.bytes)
        return nullptr;
    return tensor.errors.data() + (address - base) * 8 / dtype_bits(tensor.dtype);
}

In::In(ConstView view, const Errors& errors)
    : view_(view), errors_(view.empty() ? nullptr : errors.find(view.data)) {}

Counted In::at(std::int64_t row, std::int64_t column) const {
    const std::int64_t index = row * view_.row_stride + column;
    return {decode(view_.data, index, view_.dtype), errors_ ? errors_[index] : 0.0};
}

void In::load(std::int64_t row, std::int64_t first, std::int64_t count,
              std::vector<Counted>& out) const {
    out.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        out[static_cast<std::size_t>(i)] = at(row, first + i);
}

Out::Out(View view, Errors& errors) : view_(view), errors_(errors.find(view.data)) {
    LR_CHECK(errors_ != nullptr);
}

void Out::set(std::int64_t row, std::int64_t column, Counted x) {
    const std::int64_t index = row * view_.row_stride + column;
    const Counted result = stored(x, view_.dtype);
    encode(view_.data, index, view_.dtype, result.value);
    errors_[index] = result.error;
}

void Out::zero_row(std::int64_t row) {
    std::memset(view_.row(row), 0,
                static_cast<std::size_t>(dtype_bytes(view_.dtype, view_.shape.row_count())));
    for (std::int64_t i = 0; i < columns(); ++i)
        errors_[row * view_.row_stride + i] = 0.0;
}

} // namespace lr::cpu::reference
