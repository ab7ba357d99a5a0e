// SPDX-License-Identifier: Apache-2.0
//
// cuda/detail/math.h: device arithmetic that several kernels share. For .cu files only.
//
// The CUDA code is compiled with -fmad=false, as the CPU's is with -ffp-contract=off: a product and
// a sum are two roundings unless a kernel says fmaf, so elementwise results have the bits of the
// CPU reference wherever exp and its kin agree.
#pragma once

#include "cuda/detail/operand.h"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace lr::cuda::detail {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullMask = 0xFFFF'FFFFu;

using Bf16 = __nv_bfloat16;

__device__ inline float to_float(Bf16 x) {
    return __bfloat162float(x);
}
__device__ inline Bf16 to_bf16(float x) {
    return __float2bfloat16_rn(x);
}
__device__ inline float round_bf16(float x) {
    return to_float(to_bf16(x));
}
__device__ inline float bf16_low(std::uint32_t pair) {
    return __uint_as_float(pair << 16);
}
__device__ inline float bf16_high(std::uint32_t pair) {
    return __uint_as_float(pair & 0xFFFF'0000u);
}
__device__ inline std::uint32_t pack_bf16(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Eight consecutive elements, 16-byte aligned.
struct Vec8 {
    float v[8];
};
__device__ inline Vec8 unpack8(uint4 raw) {
    return {{bf16_low(raw.x), bf16_high(raw.x), bf16_low(raw.y), bf16_high(raw.y), bf16_low(raw.z),
             bf16_high(raw.z), bf16_low(raw.w), bf16_high(raw.w)}};
}
__device__ inline uint4 pack8(const Vec8& x) {
    return {pack_bf16(x.v[0], x.v[1]), pack_bf16(x.v[2], x.v[3]), pack_bf16(x.v[4], x.v[5]),
            pack_bf16(x.v[6], x.v[7])};
}
__device__ inline Vec8 load8(const Bf16* p) {
    return unpack8(*reinterpret_cast<const uint4*>(p));
}
__device__ inline void store8(Bf16* p, const Vec8& x) {
    *reinterpret_cast<uint4*>(p) = pack8(x);
}

__device__ inline float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
__device__ inline float silu(float x) {
    return x / (1.0f + expf(-x));
}
// log(1 + exp(x)); above 20 the two are the same f32.
__device__ inline float softplus(float x) {
    return x > 20.0f ? x : log1pf(expf(x));
}
// Gated DeltaNet's log decay (<= 0) and write strength, as cpu/gdn/gates.h in kModel.
__device__ inline float log_decay(float a, float a_log, float dt_bias) {
    return -expf(a_log) * softplus(a + dt_bias);
}
__device__ inline float write_strength(float b) {
    return round_bf16(sigmoid(b));
}

// Butterfly sum over `width` neighbouring lanes, a power of two: the same bits in each of them.
template <int width = kWarp> __device__ inline float warp_sum(float x) {
#pragma unroll
    for (int step = width / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(kFullMask, x, step);
    return x;
}
template <int width = kWarp> __device__ inline float warp_max(float x) {
#pragma unroll
    for (int step = width / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(kFullMask, x, step));
    return x;
}
template <int width = kWarp> __device__ inline std::uint32_t warp_max(std::uint32_t x) {
#pragma unroll
    for (int step = width / 2; step > 0; step /= 2)
        x = max(x, __shfl_xor_sync(kFullMask, x, step));
    return x;
}

// Sum over a block of kThreads threads, the same bits in each of them; `scratch` has a float for
// each warp and is free again after the caller's next __syncthreads().
template <int kThreads> __device__ inline float block_sum(float x, float* scratch) {
    constexpr int kWarps = kThreads / kWarp;
    x = warp_sum(x);
    if (threadIdx.x % kWarp == 0)
        scratch[threadIdx.x / kWarp] = x;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp)
        sum += scratch[warp];
    return sum;
}

// Whether a row is live; no scalar means that all are.
__device__ inline bool is_live(std::int64_t row, const std::int32_t* n_live) {
    return !n_live || row < *n_live;
}

// Element i of a tensor that may be bf16, f16 or f32.
__device__ inline float at(const AnyFloats& x, std::int64_t i) {
    if (x.dtype == DType::kF32)
        return reinterpret_cast<const float*>(x.data)[i];
    if (x.dtype == DType::kBF16)
        return to_float(reinterpret_cast<const Bf16*>(x.data)[i]);
    return __half2float(reinterpret_cast<const __half*>(x.data)[i]);
}

__device__ inline std::uint8_t encode_e4m3(float x) {
    return static_cast<std::uint8_t>(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3));
}
__device__ inline float decode_e4m3(std::uint8_t code) {
    const __half_raw half = __nv_cvt_fp8_to_halfraw(code, __NV_E4M3);
    return __half2float(__half(half));
}

} // namespace lr::cuda::detail
