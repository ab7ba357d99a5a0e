// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file_dtype.h"

#include "core/check.h"

#include <array>

namespace lr::checkpoint {
namespace {

constexpr std::array kFileDTypes = {
    FileDType{"F32", 32, DType::kF32},      FileDType{"BF16", 16, DType::kBF16},
    FileDType{"F16", 16, DType::kF16},      FileDType{"F8_E4M3", 8, DType::kE4M3},
    FileDType{"F8_E8M0", 8, DType::kUE8M0}, FileDType{"F4", 4, DType::kE2M1},
    FileDType{"U8", 8, DType::kU8},         FileDType{"I32", 32, DType::kI32},
    FileDType{"I64", 64, DType::kI64},      FileDType{"F64", 64, std::nullopt},
    FileDType{"F8_E5M2", 8, std::nullopt},  FileDType{"F6_E2M3", 6, std::nullopt},
    FileDType{"F6_E3M2", 6, std::nullopt},  FileDType{"BOOL", 8, std::nullopt},
    FileDType{"I8", 8, std::nullopt},       FileDType{"I16", 16, std::nullopt},
    FileDType{"U16", 16, std::nullopt},     FileDType{"U32", 32, std::nullopt},
    FileDType{"U64", 64, std::nullopt},     FileDType{"C64", 64, std::nullopt},
};

} // namespace

const FileDType* find_file_dtype(std::string_view name) {
    for (const FileDType& row : kFileDTypes)
        if (row.name == name)
            return &row;
    return nullptr;
}

std::string_view file_dtype_name(DType dtype) {
    for (const FileDType& row : kFileDTypes)
        if (row.dtype == dtype)
            return row.name;
    LR_CHECK_EQ(dtype_name(dtype), "a dtype of the safetensors format");
    return "";
}

} // namespace lr::checkpoint
