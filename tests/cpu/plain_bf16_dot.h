// SPDX-License-Identifier: Apache-2.0
//
// The definition of a dot of rows that are exact in bf16 (cpu/kernels/bf16_dot.h), one step at a
// time.
#pragma once

#include "cpu/kernels/bf16_dot.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lr {

inline float flush_subnormal(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

inline float flushing_fma(float x, float y, float z) {
    return flush_subnormal(std::fma(flush_subnormal(x), flush_subnormal(y), flush_subnormal(z)));
}

// scales: one for each 128 numbers, or (kNvfp4) one for each 16, or none.
inline float plain_bf16_dot(cpu::Codes order, const float* x, const float* w, std::int64_t count,
                            std::span<const float> scales) {
    const auto packed = static_cast<std::size_t>((count + 127) / 128 * 128);
    std::vector<float> a(packed), b(packed);
    for (std::int64_t k = 0; k < count; ++k) {
        const auto at = static_cast<std::size_t>(k / 128 * 128 + cpu::dot_position(order, k % 128));
        a[at] = x[k];
        b[at] = w[k];
    }
    std::array<float, 16> total{};
    for (std::size_t block = 0; block < packed; block += 128) {
        std::array<float, 16> sum{};
        if (scales.empty())
            sum = total;
        for (std::size_t p = block; p < block + 128; p += 2) {
            float& lane = sum[p / 2 % 16];
            lane = flushing_fma(a[p], b[p], flushing_fma(a[p + 1], b[p + 1], lane));
        }
        for (std::size_t lane = 0; lane < 16; ++lane) {
            const std::size_t run =
                order == cpu::Codes::kNvfp4 ? block / 16 + lane / 2 : block / 128;
            const float scale = scales.empty() ? 0 : run < scales.size() ? scales[run] : 0;
            total[lane] = scales.empty() ? sum[lane] : std::fma(scale, sum[lane], total[lane]);
        }
    }
    for (std::size_t width = 8; width > 0; width /= 2)
        for (std::size_t lane = 0; lane < width; ++lane)
            total[lane] += total[lane + width];
    return total[0];
}

} // namespace lr
