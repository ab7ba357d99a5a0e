// SPDX-License-Identifier: Apache-2.0
#include "cpu/dot_tile.h"

#include <algorithm>
#include <array>

#if defined(__clang__)
#define LR_UNROLL _Pragma("unroll")
#else
#define LR_UNROLL _Pragma("GCC unroll 16")
#endif

namespace lr::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kTile = 4;

// Vectors that may lie anywhere and alias floats.
typedef float Float4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float Float8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float Float16 __attribute__((vector_size(64), aligned(4), may_alias));

#define LR_LANES_NAME lanes_baseline
#define LR_LANES_TARGET
#define LR_LANES_VECTOR Float4
#include "cpu/dot_tile_lanes.inc"
#undef LR_LANES_NAME
#undef LR_LANES_TARGET
#undef LR_LANES_VECTOR

#if defined(__x86_64__)
#define LR_LANES_NAME lanes_avx2
#define LR_LANES_TARGET __attribute__((target("avx2")))
#define LR_LANES_VECTOR Float8
#include "cpu/dot_tile_lanes.inc"
#undef LR_LANES_NAME
#undef LR_LANES_TARGET
#undef LR_LANES_VECTOR

#define LR_LANES_NAME lanes_avx512
#define LR_LANES_TARGET __attribute__((target("avx512f")))
#define LR_LANES_VECTOR Float16
#include "cpu/dot_tile_lanes.inc"
#undef LR_LANES_NAME
#undef LR_LANES_TARGET
#undef LR_LANES_VECTOR
#endif

constexpr DotKernels kBaseline = {"x86-64-v2", lanes_baseline<4, 4>, lanes_baseline<1, 4>,
                                  lanes_baseline<1, 1>};
#if defined(__x86_64__)
constexpr DotKernels kAvx2 = {"avx2", lanes_avx2<4, 4>, lanes_avx2<1, 4>, lanes_avx2<1, 1>};
constexpr DotKernels kAvx512 = {"avx512", lanes_avx512<4, 4>, lanes_avx512<1, 4>,
                                lanes_avx512<1, 1>};
#endif

struct Available {
    std::array<DotKernels, 3> kernels = {kBaseline};
    std::size_t count = 1;

    Available() {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2"))
            kernels[count++] = kAvx2;
        if (__builtin_cpu_supports("avx512f"))
            kernels[count++] = kAvx512;
#endif
    }
};

// Halves: 16 lanes to 8, 4, 2, 1.
float fold(const float* lanes) {
    const auto vector = [&](int i) { return *reinterpret_cast<const Float4*>(lanes + 4 * i); };
    const Float4 four = (vector(0) + vector(2)) + (vector(1) + vector(3));
    return (four[0] + four[2]) + (four[1] + four[3]);
}

// Adds the values behind the last whole run of 16 to lanes 0, 1, ... and folds.
float finish(float* lanes, const float* x, const float* w, std::int64_t done, std::int64_t count) {
    for (std::int64_t k = done; k < count; ++k)
        lanes[k - done] += x[k] * w[k];
    return fold(lanes);
}

} // namespace

std::span<const DotKernels> dot_kernels() {
    static const Available available;
    return {available.kernels.data(), available.count};
}

void dot_tile_with(const DotKernels& kernels, const float* x, std::int64_t x_stride,
                   std::int64_t rows, const float* w, std::int64_t w_stride, std::int64_t columns,
                   std::int64_t count, float* out, std::int64_t out_stride) {
    alignas(64) float lanes[kTile * kTile * kLanes];
    const std::int64_t steps = count / kLanes;
    const std::int64_t done = steps * kLanes;
    for (std::int64_t i = 0; i < rows;) {
        const std::int64_t tile_rows = rows - i >= kTile ? kTile : 1;
        for (std::int64_t j = 0; j < columns;) {
            const float* a = x + i * x_stride;
            const float* b = w + j * w_stride;
            const std::int64_t tile_columns = columns - j >= kTile ? kTile : 1;
            if (tile_rows == kTile && tile_columns == kTile)
                kernels.tile44(a, x_stride, b, w_stride, steps, lanes);
            else if (tile_columns == kTile)
                kernels.tile14(a, x_stride, b, w_stride, steps, lanes);
            else if (tile_rows == kTile) // the same with the roles exchanged: products commute
                kernels.tile14(b, w_stride, a, x_stride, steps, lanes);
            else
                kernels.tile11(a, x_stride, b, w_stride, steps, lanes);
            for (std::int64_t t = 0; t < tile_rows * tile_columns; ++t) {
                const std::int64_t row = t / tile_columns;
                const std::int64_t column = t % tile_columns;
                out[(i + row) * out_stride + j + column] = finish(
                    lanes + t * kLanes, a + row * x_stride, b + column * w_stride, done, count);
            }
            j += tile_columns;
        }
        i += tile_rows;
    }
}

void dot_tile(const float* x, std::int64_t x_stride, std::int64_t rows, const float* w,
              std::int64_t w_stride, std::int64_t columns, std::int64_t count, float* out,
              std::int64_t out_stride) {
    dot_tile_with(dot_kernels().back(), x, x_stride, rows, w, w_stride, columns, count, out,
                  out_stride);
}

float dot_one(const float* x, const float* w, std::int64_t count) {
    float out = 0;
    dot_tile(x, 0, 1, w, 0, 1, count, &out, 1);
    return out;
}

} // namespace lr::cpu
