// SPDX-License-Identifier: Apache-2.0
#include "cpu/rows.h"

#include "cpu/decode.h"
#include "cpu/dot_tile.h"
#include "cpu/kernels/kernels.h"
#include "numerics/bf16.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace lr::cpu {

void load_floats(ConstView view, std::int64_t row, std::int64_t first, std::int64_t count,
                 float* out) {
    LR_CHECK(is_float(view.dtype));
    decode_row(view.dtype, view.row(row) + dtype_bytes(view.dtype, first), count, out);
}

void store_floats(View view, std::int64_t row, std::int64_t first, std::int64_t count,
                  const float* values) {
    if (view.dtype == DType::kF32) {
        std::memcpy(view.row_as<float>(row) + first, values, static_cast<std::size_t>(count) * 4);
        return;
    }
    LR_CHECK(view.dtype == DType::kBF16);
    kernels().encode_bf16(values, count, view.row_as<std::uint16_t>(row) + first);
}

float float_at(ConstView view, std::int64_t index) {
    float value = 0;
    load_floats(view, 0, index, 1, &value);
    return value;
}

void zero_rows(View view, std::int64_t first) {
    const auto row_bytes =
        static_cast<std::size_t>(dtype_bytes(view.dtype, view.shape.row_count()));
    for (std::int64_t i = first; i < view.rows(); ++i)
        std::memset(view.row(i), 0, row_bytes);
}

std::int64_t live_rows(ConstView n_live, std::int64_t n) {
    if (n_live.empty())
        return n;
    return std::clamp<std::int64_t>(int_at(n_live, 0), 0, n);
}

float dot(const float* x, const float* y, std::int64_t count) {
    return dot_one(x, y, count);
}

float sum_squares(const float* x, std::int64_t count) {
    return dot(x, x, count);
}

float* thread_scratch(int slot, std::int64_t count) {
    constexpr std::size_t kAlign = 64; // a vector load that crosses a cache line costs two
    struct Free {
        void operator()(float* memory) const { std::free(memory); }
    };
    struct Slot {
        std::unique_ptr<float, Free> memory;
        std::int64_t count = 0;
    };
    thread_local std::array<Slot, 8> slots;
    Slot& buffer = slots[static_cast<std::size_t>(slot)];
    if (buffer.count < count) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
        buffer.memory.reset(static_cast<float*>(
            std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign)));
        LR_CHECK(buffer.memory != nullptr);
        buffer.count = count;
    }
    return buffer.memory.get();
}

float round_bf16(float value) {
    return numerics::decode_bf16(numerics::encode_bf16(value));
}

} // namespace lr::cpu
