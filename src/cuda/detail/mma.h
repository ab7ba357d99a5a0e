// SPDX-License-Identifier: Apache-2.0
//
// cuda/detail/mma.h: tensor-core products of operands in shared memory. For .cu files only.
//
// Fragments are those of mma.m16n8k16: with g = lane / 4 and t = lane % 4, an accumulator holds
// (row g, columns 2t and 2t+1) and (row g + 8, the same columns). A row of the result depends on
// its own row of A alone.
#pragma once

#include "cuda/detail/math.h"

#include <cstdint>

namespace lr::cuda::detail {

// Elements behind each row of a tile in shared memory: with them, eight rows lie in eight different
// groups of banks wherever a row is a multiple of 64 elements.
inline constexpr int kPad = 8;

__device__ inline unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ inline void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void mma_f16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                               std::uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A bf16 tile in shared memory.
struct Tile {
    Bf16* data;
    int stride; // elements

    __device__ Bf16* row(int i) const { return data + i * stride; }
};

// How the right operand B [k, n] lies: kByColumn: a row of the tile is a column of B (its k are
// neighbours); kByRow: a row of the tile is a row of B.
enum class Right { kByColumn, kByRow };

// Adds rows [row, row + 16) of A times columns [column, column + 16) of B, k in ascending steps of
// 16, to two accumulators side by side. One warp; k % 16 == 0.
template <Right kRight>
__device__ inline void multiply16(float (&c)[2][4], Tile a, int row, Tile b, int column, int k) {
    const int lane = threadIdx.x % kWarp;
    const Bf16* const left = a.row(row + lane % 16) + lane / 16 * 8;
    const Bf16* const right = kRight == Right::kByColumn
                                  ? b.row(column + lane / 16 * 8 + lane % 8) + lane / 8 % 2 * 8
                                  : b.row(lane / 8 % 2 * 8 + lane % 8) + column + lane / 16 * 8;
    const int step = kRight == Right::kByColumn ? 16 : 16 * b.stride;
    for (int i = 0; i < k / 16; ++i) {
        std::uint32_t x[4], y[4];
        load_matrices(x, left + i * 16);
        if constexpr (kRight == Right::kByColumn)
            load_matrices(y, right + i * step);
        else
            load_matrices_transposed(y, right + i * step);
        mma_bf16(c[0], x, y[0], y[1]);
        mma_bf16(c[1], x, y[2], y[3]);
    }
}

// Calls emit(row, column, low, high) for the 16 x 16 results, two neighbouring columns at a time.
template <typename Emit>
__device__ inline void for_results(const float (&c)[2][4], int row, int column, Emit emit) {
    const int g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            emit(row + g + half * 8, column + tile * 8 + 2 * t, c[tile][2 * half],
                 c[tile][2 * half + 1]);
}

__device__ inline void copy_async16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(shared_address(to)), "l"(from)
                 : "memory");
}
__device__ inline void commit_copies() {
    asm volatile("cp.async.commit_group;" : : : "memory");
}
// Waits until at most `left` of the committed groups are under way.
template <int left> __device__ inline void wait_copies() {
    asm volatile("cp.async.wait_group %0;" : : "n"(left) : "memory");
}

} // namespace lr::cuda::detail
