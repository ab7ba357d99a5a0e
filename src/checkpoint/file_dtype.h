// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/file_dtype.h: the dtype names of the safetensors format.
#pragma once

#include "core/dtype.h"

#include <optional>
#include <string_view>

namespace lr::checkpoint {

struct FileDType {
    std::string_view name; // as in the file: "BF16"
    int bits;
    std::optional<DType> dtype; // nothing: the format knows it, this engine does not compute on it
};

// All names of the format; nullptr for any other.
const FileDType* find_file_dtype(std::string_view name);

// The name under which a dtype is written.
std::string_view file_dtype_name(DType dtype);

} // namespace lr::checkpoint
