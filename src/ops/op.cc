// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include <cmath>

namespace lr::ops {

double expected_live_experts(std::int64_t experts, std::int64_t per_token, std::int64_t n) {
    const double e = static_cast<double>(experts);
    return e * (1.0 - std::pow(1.0 - static_cast<double>(per_token) / e, static_cast<double>(n)));
}

} // namespace lr::ops
