// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product.h: y = x W^T on the tensor cores, for every pair of formats of ops/operand.h.
// For .cu files only.
//
// The tree. K is cut into at most eight slices of whole 128s (of experts, of 512 at least: their
// many rows fill the device, and longer slices stream better). In a slice, k ascends in groups of
// 4U (U = 8 for bf16 weights, else 16), thread t of a quad holding k = 4U*group + U*t ..: one load
// of 16 bytes feeds several mma, whose k are a permutation that both operands share. With block
// scales each run of 128 is summed by itself and added times its scales. The sums of the slices are
// added in ascending order. All kernels here keep to that tree, so that a result depends on its row
// of x, its row of w and K alone: never on n, on the tile, or on which kernel ran.
#pragma once

#include "cuda/detail/launch.h"
#include "cuda/detail/mma.h"
#include "cuda/quant/codes.h"
#include "cuda/run.h"
#include "cuda/weights.h"

#include <cstdint>

namespace lr::cuda::detail {

enum class Codes { kBf16, kFp8, kNvfp4 };

inline constexpr int kScaleRun = 128; // k of one block scale
inline constexpr int kMaxSlices = 8;

struct Slices {
    int length, count;
};
inline Slices slices_of(std::int64_t k, std::int64_t least = kScaleRun) {
    const std::int64_t share =
        ((k + kMaxSlices - 1) / kMaxSlices + kScaleRun - 1) / kScaleRun * kScaleRun;
    const std::int64_t length = share > least ? share : least;
    return {static_cast<int>(length), static_cast<int>((k + length - 1) / length)};
}

struct ProductParams {
    // w: `groups` matrices of w_rows rows.
    const std::byte* w;
    std::int64_t w_stride; // bytes
    const void* w_scale;   // f32 for 2^scale_shift rows and 128 k, or e4m3 for a row and 16 k
    std::int64_t w_scale_stride;
    int scale_shift;
    const float* row_factor; // or null
    std::int64_t w_rows;
    // x: row r of the product is row row_map[r] / per_token of x, or r without a map.
    const std::byte* x;
    std::int64_t x_stride; // bytes
    const void* x_scale;   // f32 for 128 k (block scales) or for a row, or e4m3 for 16 k, or null
    std::int64_t x_scale_stride;
    float x_global;
    const std::int32_t* row_map;
    int per_token;
    // Rows of group e: [start[e], end[e]); without start one group, rows [0, n_live).
    const std::int32_t* start;
    const std::int32_t* end;
    int groups;
    const std::int32_t* n_live;
    std::int64_t rows; // capacity
    // y, or partial sums of slices [slices, rows, outputs] for a later pass.
    void* y;
    std::int64_t y_stride; // elements
    bool y_is_f32;
    float* partial;
    std::int64_t outputs; // columns of y: w_rows, half of it with a gate
    int k;
    Slices slices;
    int block_tiles; // few rows: tiles of outputs that a block takes one after the other
};

// What one (x, w) pair of formats is.
template <Codes kXCodes, Codes kWCodes, bool kBlockScales> struct Format {
    static constexpr Codes kX = kXCodes, kW = kWCodes;
    static constexpr bool kBlocks = kBlockScales;
    static constexpr bool kHalf = kX == Codes::kFp8; // products of f16, which holds every E4M3
    static constexpr int kUnit = kW == Codes::kBf16 ? 8 : 16; // U
    static constexpr int kGroup = 4 * kUnit;
    static constexpr int kPairs = kUnit / 2; // registers of a unit, two values each
};

// A unit of U values as it lies in memory. All zero bits are zeros.
struct Raw {
    uint4 low, high;     // high: bf16 x with U = 16 only
    std::uint32_t scale; // NVFP4: the E4M3 code
};

__device__ inline uint4 load_stream16(const std::byte* p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
__device__ inline uint2 load_stream8(const std::byte* p) {
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(p));
    return v;
}

// Bytes that k values of a row take.
template <Codes kCodes> __host__ __device__ constexpr int code_bytes(int k) {
    return kCodes == Codes::kBf16 ? 2 * k : kCodes == Codes::kFp8 ? k : k / 2;
}

// A unit of w at `codes`, of NVFP4 with its scale.
template <typename F>
__device__ inline Raw load_w(const std::byte* codes, const std::uint8_t* scale) {
    Raw raw{};
    if constexpr (F::kW == Codes::kNvfp4) {
        const uint2 pairs = load_stream8(codes);
        raw.low.x = pairs.x;
        raw.low.y = pairs.y;
        raw.scale = *scale;
    } else {
        raw.low = load_stream16(codes);
    }
    return raw;
}

template <typename F>
__device__ inline Raw load_x(const std::byte* codes, const std::uint8_t* scale) {
    Raw raw{};
    if constexpr (F::kX == Codes::kNvfp4) {
        const uint2 pairs = *reinterpret_cast<const uint2*>(codes);
        raw.low.x = pairs.x;
        raw.low.y = pairs.y;
        raw.scale = *scale;
    } else {
        raw.low = *reinterpret_cast<const uint4*>(codes);
        if constexpr (F::kX == Codes::kBf16 && F::kUnit == 16)
            raw.high = *reinterpret_cast<const uint4*>(codes + 16);
    }
    return raw;
}

// The same at column k of row `row` (of all groups) of w, and of a row of x.
template <typename F>
__device__ inline Raw load_w(const ProductParams& p, std::int64_t row, int k) {
    return load_w<F>(p.w + row * p.w_stride + code_bytes<F::kW>(k),
                     static_cast<const std::uint8_t*>(p.w_scale) + row * p.w_scale_stride + k / 16);
}
template <typename F>
__device__ inline Raw load_x(const ProductParams& p, std::int64_t token, int k) {
    return load_x<F>(p.x + token * p.x_stride + code_bytes<F::kX>(k),
                     static_cast<const std::uint8_t*>(p.x_scale) + token * p.x_scale_stride +
                         k / 16);
}

__device__ inline std::uint32_t multiply_pairs(std::uint32_t a, std::uint32_t b) {
    const __nv_bfloat162 product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                           *reinterpret_cast<const __nv_bfloat162*>(&b));
    return *reinterpret_cast<const std::uint32_t*>(&product);
}

// Four E4M3 codes as f16 pairs.
__device__ inline void expand_e4m3_f16(std::uint32_t codes, std::uint32_t& low,
                                       std::uint32_t& high) {
    const auto convert = [](std::uint32_t pair) {
        const __half2_raw half =
            __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(pair), __NV_E4M3);
        return static_cast<std::uint32_t>(half.x) | static_cast<std::uint32_t>(half.y) << 16;
    };
    low = convert(codes & 0xFFFF);
    high = convert(codes >> 16);
}
// The same as bf16: the code's exponent and mantissa become those of a bf16 2^120 times smaller
// (subnormal codes are subnormal bf16 then), and a product puts that right.
__device__ inline void expand_e4m3_bf16(std::uint32_t codes, std::uint32_t& low,
                                        std::uint32_t& high) {
    constexpr std::uint32_t kLift = 0x7B80'7B80u;   // 2^120, twice
    const auto convert = [](std::uint32_t spread) { // a code in each upper byte
        const std::uint32_t bits = (spread >> 4 & 0x07F0'07F0u) | (spread & 0x8000'8000u);
        return multiply_pairs(bits, kLift);
    };
    low = convert(__byte_perm(codes, 0, 0x1404));
    high = convert(__byte_perm(codes, 0, 0x3424));
}

// Eight E2M1 codes times their block's E4M3 scale, exactly. Weights: pairs in halves of the word
// (cuda/weights.h), and 2^-7 of the value, which no bf16 overflows on the way.
__device__ inline void expand_nvfp4_w(std::uint32_t codes, std::uint32_t factor,
                                      std::uint32_t (&out)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const std::uint32_t nibbles = codes >> (4 * j);
        const std::uint32_t bits = (nibbles << 6 & 0x01C0'01C0u) | (nibbles << 12 & 0x8000'8000u);
        out[j] = multiply_pairs(bits, factor);
    }
}
__device__ inline std::uint32_t nvfp4_w_factor(std::uint32_t code) {
    const float scale = decode_e4m3(static_cast<std::uint8_t>(code)) * (0x1p126f / kNvfp4Lift);
    return pack_bf16(scale, scale);
}
// Activations: codes in the order of k, the value itself.
__device__ inline void expand_nvfp4_x(std::uint32_t codes, std::uint32_t scale,
                                      std::uint32_t (&out)[4]) {
    constexpr std::uint32_t kLift = 0x7E80'7E80u; // 2^126, twice
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const std::uint32_t byte = codes >> (8 * j) & 0xFFu;
        const std::uint32_t nibbles = (byte & 0xFu) | byte << 12;
        const std::uint32_t bits = (nibbles << 6 & 0x01C0'01C0u) | (nibbles << 12 & 0x8000'8000u);
        out[j] = multiply_pairs(multiply_pairs(bits, kLift), scale);
    }
}

template <Codes kCodes, bool kHalf>
__device__ inline void expand_fp8(const Raw& raw, std::uint32_t* out) {
    const std::uint32_t words[4] = {raw.low.x, raw.low.y, raw.low.z, raw.low.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (kHalf)
            expand_e4m3_f16(words[i], out[2 * i], out[2 * i + 1]);
        else
            expand_e4m3_bf16(words[i], out[2 * i], out[2 * i + 1]);
    }
}

template <typename F>
__device__ inline void expand_w(const Raw& raw, std::uint32_t (&out)[F::kPairs]) {
    if constexpr (F::kW == Codes::kBf16) {
        out[0] = raw.low.x;
        out[1] = raw.low.y;
        out[2] = raw.low.z;
        out[3] = raw.low.w;
    } else if constexpr (F::kW == Codes::kFp8) {
        expand_fp8<F::kW, F::kHalf>(raw, out);
    } else {
        const std::uint32_t factor = nvfp4_w_factor(raw.scale);
        std::uint32_t half[4];
        expand_nvfp4_w(raw.low.x, factor, half);
        for (int i = 0; i < 4; ++i)
            out[i] = half[i];
        expand_nvfp4_w(raw.low.y, factor, half);
        for (int i = 0; i < 4; ++i)
            out[4 + i] = half[i];
    }
}

template <typename F>
__device__ inline void expand_x(const Raw& raw, std::uint32_t (&out)[F::kPairs]) {
    if constexpr (F::kX == Codes::kBf16) {
        out[0] = raw.low.x;
        out[1] = raw.low.y;
        out[2] = raw.low.z;
        out[3] = raw.low.w;
        if constexpr (F::kUnit == 16) {
            out[4] = raw.high.x;
            out[5] = raw.high.y;
            out[6] = raw.high.z;
            out[7] = raw.high.w;
        }
    } else if constexpr (F::kX == Codes::kFp8) {
        expand_fp8<F::kX, true>(raw, out);
    } else {
        const float scale = decode_e4m3(static_cast<std::uint8_t>(raw.scale));
        const std::uint32_t factor = pack_bf16(scale, scale);
        std::uint32_t half[4];
        expand_nvfp4_x(raw.low.x, factor, half);
        for (int i = 0; i < 4; ++i)
            out[i] = half[i];
        expand_nvfp4_x(raw.low.y, factor, half);
        for (int i = 0; i < 4; ++i)
            out[4 + i] = half[i];
    }
}

// One group of the tree for 16 rows of w (g and g + 8 of this lane) and 8 rows of x (g).
template <typename F> __device__ inline void multiply_group(float (&c)[4],
                                                            const std::uint32_t (&w0)[F::kPairs],
                                                            const std::uint32_t (&w8)[F::kPairs],
                                                            const std::uint32_t (&x)[F::kPairs]) {
#pragma unroll
    for (int i = 0; i < F::kPairs; i += 2) {
        const std::uint32_t a[4] = {w0[i], w8[i], w0[i + 1], w8[i + 1]};
        if constexpr (F::kHalf)
            mma_f16(c, a, x[i], x[i + 1]);
        else
            mma_bf16(c, a, x[i], x[i + 1]);
    }
}

// Scales of a run of 128 k.
__device__ inline float block_scale_w(const ProductParams& p, std::int64_t row, int run) {
    return static_cast<const float*>(p.w_scale)[(row >> p.scale_shift) * p.w_scale_stride + run];
}
template <typename F>
__device__ inline float block_scale_x(const ProductParams& p, std::int64_t token, int run) {
    if constexpr (F::kX == Codes::kFp8)
        return static_cast<const float*>(p.x_scale)[token * p.x_scale_stride + run];
    return 1.0f;
}

// What multiplies a finished dot.
template <typename F> __device__ inline float final_factor(const ProductParams& p,
                                                           std::int64_t w_row, std::int64_t token) {
    float factor = 1.0f;
    if constexpr (!F::kBlocks) {
        if constexpr (F::kX == Codes::kFp8)
            factor = p.x_scale ? static_cast<const float*>(p.x_scale)[token * p.x_scale_stride]
                               : p.x_global;
        else if constexpr (F::kX == Codes::kNvfp4)
            factor = p.x_global;
        if (p.row_factor)
            factor *= p.row_factor[w_row];
    }
    return factor;
}

__device__ inline std::int64_t token_of(const ProductParams& p, std::int64_t row) {
    return p.row_map ? p.row_map[row] / p.per_token : row;
}

// SwiGLU as a GEMM that stores bf16 and an activation after it compute it.
__device__ inline float swiglu(float gate, float up) {
    return silu(round_bf16(gate)) * round_bf16(up);
}

__device__ inline void store_result(const ProductParams& p, std::int64_t row, std::int64_t column,
                                    float value) {
    if (p.y_is_f32)
        static_cast<float*>(p.y)[row * p.y_stride + column] = value;
    else
        static_cast<Bf16*>(p.y)[row * p.y_stride + column] = to_bf16(value);
}

// Launches for one pair of formats; gate: w holds gate rows, then up rows, and y is their SwiGLU.
// few: by streaming w through registers, for few rows of x a group. split: slices run beside one
// another and leave partial sums.
struct ProductChoice {
    bool gate = false, few = false, split = false;
    int tiles = 1;              // few: 8 rows of x each, 1 or 2
    std::int64_t row_tiles = 1; // of the grid: groups or tiles of rows
};
template <typename F>
Status launch_product(const ProductParams& params, const ProductChoice& choice, const Lane& lane);

} // namespace lr::cuda::detail
