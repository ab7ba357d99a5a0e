// SPDX-License-Identifier: Apache-2.0
#include "core/dims.h"

#include <algorithm>

namespace lr {

void ShapeCheck::fail_once(std::string message) {
    if (status_.ok())
        status_ = Status(Code::kInvalidArgument, fmt::format("{}: {}", where_, message));
}

ShapeCheck& ShapeCheck::match(std::string_view name, ConstView view,
                              std::initializer_list<DimRef> dims,
                              std::initializer_list<DType> dtypes) {
    if (view.empty() && view.shape.count() != 0) {
        fail_once(fmt::format("{}: expected a tensor, got none", name));
        return *this;
    }
    return match_optional(name, view, dims, dtypes);
}

ShapeCheck& ShapeCheck::match_optional(std::string_view name, ConstView view,
                                       std::initializer_list<DimRef> dims,
                                       std::initializer_list<DType> dtypes) {
    if (!status_.ok() || (view.empty() && view.shape.rank() == 0))
        return *this;
    if (std::find(dtypes.begin(), dtypes.end(), view.dtype) == dtypes.end()) {
        std::string expected;
        for (DType dtype : dtypes)
            expected += fmt::format("{}{}", expected.empty() ? "" : " or ", dtype_name(dtype));
        fail_once(
            fmt::format("{}: expected dtype {}, got {}", name, expected, dtype_name(view.dtype)));
        return *this;
    }
    if (view.shape.rank() != static_cast<int>(dims.size())) {
        fail_once(fmt::format("{}: expected {} dims, got shape {}", name, dims.size(),
                              view.shape.to_string()));
        return *this;
    }
    int i = 0;
    for (const DimRef& dim : dims) {
        const std::int64_t got = view.shape[i];
        if (dim.symbol && !dim.symbol->bound())
            dim.symbol->value_ = got;
        const std::int64_t expected = dim.symbol ? dim.symbol->value_ : dim.literal;
        if (got != expected)
            fail_once(fmt::format("{} dim {}: expected {}{}, got {}", name, i,
                                  dim.symbol ? fmt::format("{}=", dim.symbol->letter_) : "",
                                  expected, got));
        ++i;
    }
    return *this;
}

ShapeCheck& ShapeCheck::require(bool condition, std::string_view message) {
    if (!condition)
        fail_once(std::string(message));
    return *this;
}

} // namespace lr
