// SPDX-License-Identifier: Apache-2.0
//
// cuda/gdn/chunk.h: what the chunk kernels of prefill share: one block of four warps a chunk and
// head, 16 rows of the chunk a warp. For .cu files only.
#pragma once

#include "cuda/detail/launch.h"
#include "cuda/detail/mma.h"
#include "ops/op.h"

#include <cstdint>

namespace lr::cuda::detail {

inline constexpr int kChunk = ops::kGdnChunk;
inline constexpr int kChunkThreads = 128;
inline constexpr int kChunkTile = kChunk + kPad; // stride of a [64, 64] tile

struct Chunk {
    std::int64_t row;
    int length; // 0: unused
};
__device__ inline Chunk chunk_at(const std::int32_t* row, const std::int32_t* length,
                                 std::int64_t c) {
    return {row[c], length[c]};
}

// Rows of one head as a tile [64, width], zero from `length` on.
template <typename Map> __device__ inline void load_rows(Tile tile, Rows<const Bf16> x, Chunk chunk,
                                                         std::int64_t first, int width, Map map) {
    const int vectors = width / 8;
    for (int i = threadIdx.x; i < kChunk * vectors; i += kChunkThreads) {
        const int r = i / vectors, c = i % vectors * 8;
        Vec8 values{};
        if (r < chunk.length)
            values = map(r, load8(x[chunk.row + r] + first + c));
        store8(tile.row(r) + c, values);
    }
}
__device__ inline void load_rows(Tile tile, Rows<const Bf16> x, Chunk chunk, std::int64_t first,
                                 int width) {
    load_rows(tile, x, chunk, first, width, [](int, const Vec8& values) { return values; });
}

// One float of each row and head, zero from `length` on.
__device__ inline void load_scalars(float* out, Rows<const float> x, Chunk chunk, int head) {
    if (threadIdx.x < kChunk)
        out[threadIdx.x] =
            static_cast<int>(threadIdx.x) < chunk.length ? x[chunk.row + threadIdx.x][head] : 0.0f;
}

// A block's dynamic shared memory, piece by piece.
struct Pieces {
    std::byte* next;

    template <typename T> __device__ T* take(int count) {
        T* piece = reinterpret_cast<T*>(next);
        next += (count * static_cast<int>(sizeof(T)) + 15) / 16 * 16;
        return piece;
    }
    __device__ Tile tile(int rows, int width) {
        return {take<Bf16>(rows * (width + kPad)), width + kPad};
    }
};
inline std::size_t tile_bytes(std::int64_t rows, std::int64_t width) {
    return static_cast<std::size_t>(rows * (width + kPad)) * sizeof(Bf16);
}

// Zeroes rows [live, n) of one head: the work of the block behind the last chunk.
__device__ inline void zero_tail(Rows<Bf16> y, const std::int32_t* n_live, std::int64_t n,
                                 std::int64_t first, int width) {
    const std::int64_t live = n_live ? min(n, std::int64_t{*n_live}) : n;
    const int vectors = width / 8;
    for (std::int64_t i = threadIdx.x; i < (n - live) * vectors; i += kChunkThreads)
        store8(y[live + i / vectors] + first + i % vectors * 8, Vec8{});
}

} // namespace lr::cuda::detail
