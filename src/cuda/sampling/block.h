// SPDX-License-Identifier: Apache-2.0
//
// cuda/sampling/block.h: one block over one row of logits. For .cu files only.
#pragma once

#include "cuda/detail/math.h"

#include <cstdint>

namespace lr::cuda::detail {

inline constexpr int kRowThreads = 1024;
inline constexpr int kRowWarps = kRowThreads / kWarp;

// Grows in rank: larger z first, of equal z (-0 equals 0) the lower id.
__device__ inline std::uint64_t rank_key(float z, std::int64_t id) {
    const std::uint32_t bits = __float_as_uint(z + 0.0f);
    const std::uint32_t ordered = bits >> 31 ? ~bits : bits | 0x8000'0000u;
    return std::uint64_t{ordered} << 32 | static_cast<std::uint32_t>(~id);
}
__device__ inline std::int32_t id_of(std::uint64_t key) {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(key));
}

// Combines one value of each thread; every thread gets the result. `scratch` has kRowWarps entries.
// The order is fixed, so f64 sums are too.
template <typename T, typename Combine>
__device__ inline T combine_block(T value, T* scratch, Combine combine) {
    for (int step = kWarp / 2; step > 0; step /= 2)
        value = combine(value, __shfl_xor_sync(kFullMask, value, step));
    __syncthreads(); // scratch may still be read
    if (threadIdx.x % kWarp == 0)
        scratch[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < kRowWarps; ++warp)
        value = combine(value, scratch[warp]);
    return value;
}

struct Sum {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Largest {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

} // namespace lr::cuda::detail
