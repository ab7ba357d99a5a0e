// SPDX-License-Identifier: Apache-2.0
//
// cuda/quant/codes.h: numerics/quantize.h on the device, to the last bit. For .cu files only.
#pragma once

#include "cuda/detail/math.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/quantize.h"

#include <cstdint>

namespace lr::cuda::detail {

// Which rows an op quantises: those before n_live, the others getting zeros; or, with endpoints,
// those of experts, the others being left alone.
struct LiveRows {
    const std::int32_t* n_live = nullptr;
    const std::int32_t* start = nullptr;
    const std::int32_t* end = nullptr;
    int experts = 0;

    __device__ bool live(std::int64_t row) const {
        if (!start)
            return is_live(row, n_live);
        int low = 0, high = experts; // the last expert that starts at or before the row
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            (start[middle] <= row ? low : high) = middle;
        }
        return row >= start[low] && row < end[low];
    }
    __device__ bool zeroes() const { return !start; }
};

// Magnitudes compare as integers, a NaN above infinity above every number.
__device__ inline std::uint32_t magnitude(float x) {
    return __float_as_uint(x) & 0x7FFF'FFFFu;
}
__device__ inline std::uint32_t max_magnitude(const Vec8& x) {
    std::uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        largest = max(largest, magnitude(x.v[i]));
    return largest;
}

// s = max(amax, kTiny) / 448; a NaN passes through.
__device__ inline float fp8_scale(std::uint32_t amax) {
    const float value = __uint_as_float(amax);
    return (value < numerics::kTiny ? numerics::kTiny : value) / numerics::kE4M3Max;
}

__device__ inline uint2 fp8_codes(const Vec8& x, float s) {
    std::uint32_t words[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i)
        words[i / 4] |= std::uint32_t{encode_e4m3(x.v[i] / s)} << (i % 4 * 8);
    return {words[0], words[1]};
}

__device__ inline std::uint32_t encode_e2m1(float x) {
    const float a = fabsf(x);
    if (a != a)
        return 7;
    const int m = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) +
                  (a >= 3.5f) + (a > 5.0f);
    return (__float_as_uint(x) >> 31 << 3) | static_cast<std::uint32_t>(m);
}

struct Nvfp4Block {
    std::uint32_t codes[2]; // 16, low nibble = even k
    std::uint8_t sf;
};
__device__ inline Nvfp4Block nvfp4_block(const Vec8 (&x)[2], float g) {
    const float amax = __uint_as_float(max(max_magnitude(x[0]), max_magnitude(x[1])));
    if (!(amax < INFINITY))
        return {{0x7777'7777u, 0x7777'7777u}, numerics::kE4M3NaN};
    Nvfp4Block out{{0, 0}, encode_e4m3(g * (amax / numerics::kE2M1Max))};
    const float divisor = decode_e4m3(out.sf) / g;
    if (amax == 0.0f || divisor == 0.0f)
        return out;
#pragma unroll
    for (int i = 0; i < 16; ++i)
        out.codes[i / 8] |= encode_e2m1(x[i / 8].v[i % 8] / divisor) << (i % 8 * 4);
    return out;
}

} // namespace lr::cuda::detail
