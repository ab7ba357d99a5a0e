// SPDX-License-Identifier: Apache-2.0
//
// cpu/gdn/chunk.h: one chunk of the packed batch, one head at a time, in f32 scratch.
#pragma once

#include "core/view.h"
#include "ops/op.h"

#include <cstdint>

namespace lr::cpu::gdn {

// Rows [row, row + length) of the batch; length 0 is an unused chunk.
struct Chunk {
    std::int64_t row = 0;
    std::int64_t length = 0;
};

// Chunk c of the tables. Its length is at most 64 and its rows are inside a batch of n.
Chunk chunk_at(ConstView chunk_row, ConstView chunk_len, std::int64_t c, std::int64_t n);

// out [length, width] = columns [head*width, (head+1)*width) of the chunk's rows of x.
void load_head(ConstView x, Chunk chunk, std::int64_t head, std::int64_t width, float* out);
void store_head(View y, Chunk chunk, std::int64_t head, std::int64_t width, const float* values);

// out[i] = x[row + i, head] of an f32 tensor.
void load_scalars(ConstView x, Chunk chunk, std::int64_t head, float* out);

// kModel: every value becomes the nearest bf16. kF32: nothing happens.
void round_operand(ops::Precision precision, float* values, std::int64_t count);

// Consecutive pieces of one thread's scratch.
class ScratchPieces {
  public:
    explicit ScratchPieces(std::int64_t count);
    // The next `count` floats, uninitialised.
    float* take(std::int64_t count);

  private:
    float* next_;
    float* end_;
};

} // namespace lr::cpu::gdn
