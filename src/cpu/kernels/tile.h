// SPDX-License-Identifier: Apache-2.0
//
// cpu/kernels/tile.h: what a tile of dots reads, whatever the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__clang__)
#define LR_UNROLL _Pragma("unroll")
#else
#define LR_UNROLL _Pragma("GCC unroll 32")
#endif

namespace lr::cpu {

// What a tile of dots reads.
template <int kRows, int kColumns> struct Tile {
    const float* x[kRows];
    const std::byte* w[kColumns];
    const std::uint8_t* scales[kColumns];
    std::int64_t ahead; // bytes from a row to the one that is wanted next
};

} // namespace lr::cpu
