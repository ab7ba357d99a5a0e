// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/chunk.h"

#include "cpu/rows.h"
#include "numerics/bf16.h"

namespace lr::cpu::gdn {

Chunk chunk_at(ConstView chunk_row, ConstView chunk_len, std::int64_t c, std::int64_t n) {
    const Chunk chunk = {int_at(chunk_row, c), int_at(chunk_len, c)};
    if (chunk.length == 0)
        return {};
    LR_CHECK_GE(chunk.row, 0);
    LR_CHECK_GE(chunk.length, 0);
    LR_CHECK_LE(chunk.length, ops::kGdnChunk);
    LR_CHECK_LE(chunk.row + chunk.length, n);
    return chunk;
}

void load_head(ConstView x, Chunk chunk, std::int64_t head, std::int64_t width, float* out) {
    for (std::int64_t i = 0; i < chunk.length; ++i)
        load_floats(x, chunk.row + i, head * width, width, out + i * width);
}

void store_head(View y, Chunk chunk, std::int64_t head, std::int64_t width, const float* values) {
    for (std::int64_t i = 0; i < chunk.length; ++i)
        store_floats(y, chunk.row + i, head * width, width, values + i * width);
}

void load_scalars(ConstView x, Chunk chunk, std::int64_t head, float* out) {
    for (std::int64_t i = 0; i < chunk.length; ++i)
        out[i] = x.row_as<float>(chunk.row + i)[head];
}

void round_operand(ops::Precision precision, float* values, std::int64_t count) {
    if (precision == ops::Precision::kF32)
        return;
    for (std::int64_t i = 0; i < count; ++i)
        values[i] = numerics::round_bf16(values[i]);
}

ScratchPieces::ScratchPieces(std::int64_t count)
    : next_(thread_scratch(0, count)), end_(next_ + count) {}

float* ScratchPieces::take(std::int64_t count) {
    LR_CHECK_LE(count, end_ - next_);
    float* piece = next_;
    next_ += count;
    return piece;
}

} // namespace lr::cpu::gdn
