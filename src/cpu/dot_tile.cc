// SPDX-License-Identifier: Apache-2.0
#include "cpu/dot_tile.h"

#include "cpu/kernels/kernels.h"

namespace lr::cpu {

void dot_tile(const float* x, std::int64_t x_stride, std::int64_t rows, const float* w,
              std::int64_t w_stride, std::int64_t columns, std::int64_t count, float* out,
              std::int64_t out_stride) {
    DotArgs args;
    args.x = x;
    args.x_stride = x_stride;
    args.rows = rows;
    args.w = reinterpret_cast<const std::byte*>(w);
    args.w_stride = w_stride * static_cast<std::int64_t>(sizeof(float));
    args.columns = columns;
    args.count = count;
    args.out = out;
    args.out_stride = out_stride;
    kernels().dot(Codes::kF32, args);
}

float dot_one(const float* x, const float* w, std::int64_t count) {
    float out = 0;
    dot_tile(x, 0, 1, w, 0, 1, count, &out, 1);
    return out;
}

} // namespace lr::cpu
