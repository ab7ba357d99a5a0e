// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"

#include "core/check.h"

#include <array>

namespace lr {
namespace {

struct Row {
    DType dtype;
    std::string_view name;
    int bits;
};

constexpr std::array kRows = {
    Row{DType::kF32, "f32", 32},  Row{DType::kBF16, "bf16", 16}, Row{DType::kF16, "f16", 16},
    Row{DType::kE4M3, "e4m3", 8}, Row{DType::kE2M1, "e2m1", 4},  Row{DType::kUE8M0, "ue8m0", 8},
    Row{DType::kU8, "u8", 8},     Row{DType::kI32, "i32", 32},   Row{DType::kI64, "i64", 64},
    Row{DType::kU16, "u16", 16},  Row{DType::kF64, "f64", 64},
};

const Row& row(DType dtype) {
    const Row& found = kRows[static_cast<std::size_t>(dtype)];
    LR_DCHECK(found.dtype == dtype);
    return found;
}

} // namespace

int dtype_bits(DType dtype) {
    return row(dtype).bits;
}

std::string_view dtype_name(DType dtype) {
    return row(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const Row& candidate : kRows)
        if (candidate.name == name)
            return candidate.dtype;
    return std::nullopt;
}

std::int64_t dtype_bytes(DType dtype, std::int64_t count) {
    const std::int64_t bits = count * dtype_bits(dtype);
    LR_CHECK_EQ(bits % 8, 0);
    return bits / 8;
}

} // namespace lr
