// SPDX-License-Identifier: Apache-2.0
#include "ops/weight.h"

namespace lr::ops {

std::int64_t weight_bytes_per_expert(const Weight& weight) {
    if (!weight.present())
        return 0;
    return numerics::weight_format_bytes(weight.format, weight.dtype, weight.rows(),
                                         weight.columns());
}

std::int64_t weight_bytes(const Weight& weight) {
    const std::int64_t stack = weight.shape.rank() == 3 ? weight.shape[0] : 1;
    return stack * weight_bytes_per_expert(weight);
}

} // namespace lr::ops
