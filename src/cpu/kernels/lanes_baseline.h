// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/lanes_baseline.h: the 16 lanes of cpu/kernels/kernels.h on plain x86-64-v2, where a
// fused multiply-add is put together from doubles: correct everywhere, fast nowhere.
#pragma once

#include "cpu/decode.h"
#include "cpu/kernels/kernels.h"
#include "numerics/bf16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#define LR_KERNEL
#define LR_TARGET

namespace lr::cpu {
namespace {

// a * b + c with one rounding. The product is exact in double; the sum is rounded to odd, so that
// rounding it once more to float is as good as rounding the exact sum.
inline float exact_fma(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = c;
    const double sum = product + addend;
    if (!std::isfinite(sum))
        return static_cast<float>(sum);
    const double from_addend = sum - product;
    const double error = (product - (sum - from_addend)) + (addend - from_addend);
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if (error != 0.0 && bits % 2 == 0)
        bits += (error > 0.0) == (sum > 0.0) ? 1 : static_cast<std::uint64_t>(-1);
    return static_cast<float>(std::bit_cast<double>(bits));
}

struct Lanes {
    float at[16];
};

inline Lanes zero_lanes() {
    return {};
}

inline Lanes splat(float value) {
    Lanes lanes;
    std::fill_n(lanes.at, 16, value);
    return lanes;
}

inline Lanes load_lanes(const float* from) {
    Lanes lanes;
    std::memcpy(lanes.at, from, sizeof(lanes.at));
    return lanes;
}

inline void store_lanes(float* to, const Lanes& lanes) {
    std::memcpy(to, lanes.at, sizeof(lanes.at));
}

inline Lanes fuse(const Lanes& x, const Lanes& w, Lanes sum) {
    for (int l = 0; l < 16; ++l)
        sum.at[l] = exact_fma(x.at[l], w.at[l], sum.at[l]);
    return sum;
}

inline Lanes scale_lanes(Lanes lanes, float factor) {
    for (float& value : lanes.at)
        value *= factor;
    return lanes;
}

inline float fold_lanes(Lanes lanes) {
    for (int width = 8; width > 0; width /= 2)
        for (int l = 0; l < width; ++l)
            lanes.at[l] += lanes.at[l + width];
    return lanes.at[0];
}

inline Lanes decode_lanes(DType dtype, const std::byte* from) {
    Lanes lanes;
    decode_codes(dtype, from, kLanes, lanes.at);
    return lanes;
}

inline Lanes load_bf16(const std::byte* from) {
    return decode_lanes(DType::kBF16, from);
}

inline Lanes load_f16(const std::byte* from) {
    return decode_lanes(DType::kF16, from);
}

inline Lanes load_e2m1(const std::byte* from) {
    return decode_lanes(DType::kE2M1, from);
}

// Codes as values times kE4M3Unit; NaN codes as they are.
constexpr float kE4M3Unit = 1.0f;
struct NanWatch {
    bool seen = false;
    void look(const std::byte*) {}
    bool found() const { return false; } // NaN is in the values
};
inline Lanes load_e4m3(const std::byte* from) {
    return decode_lanes(DType::kE4M3, from);
}

inline void store_bf16(std::uint16_t* to, const Lanes& lanes) {
    for (int l = 0; l < 16; ++l)
        to[l] = numerics::encode_bf16(lanes.at[l]);
}

// Rows and columns of a tile of f32 rows.
constexpr int kTileRows = 1;
constexpr int kTileColumns = 1;
using Part = Lanes;
constexpr int kParts = 1;
constexpr int kPartLanes = 16;
LR_TARGET inline Part load_part(const float* from) {
    return load_lanes(from);
}
LR_TARGET inline void store_part(float* to, Part part) {
    store_lanes(to, part);
}
// The value stays in its register.
LR_TARGET inline void keep(Part&) {}

} // namespace
} // namespace lr::cpu
