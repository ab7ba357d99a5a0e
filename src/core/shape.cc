// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

namespace lr {

std::string Shape::to_string() const {
    std::string text = "[";
    for (int i = 0; i < rank_; ++i)
        text += fmt::format("{}{}", i ? ", " : "", (*this)[i]);
    return text + "]";
}

} // namespace lr
