// SPDX-License-Identifier: Apache-2.0
//
// The definition of a dot (cpu/kernels/kernels.h), one step at a time.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace lr {

inline float plain_dot(const float* x, const float* w, std::int64_t count) {
    std::array<float, 16> lanes{};
    for (std::int64_t k = 0; k < count; ++k) {
        float& lane = lanes[static_cast<std::size_t>(k % 16)];
        lane = std::fma(x[k], w[k], lane);
    }
    for (std::size_t width = 8; width > 0; width /= 2)
        for (std::size_t lane = 0; lane < width; ++lane)
            lanes[lane] += lanes[lane + width];
    return lanes[0];
}

} // namespace lr
