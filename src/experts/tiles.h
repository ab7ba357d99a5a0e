// SPDX-License-Identifier: Apache-2.0
//
// experts/tiles.h: the tiles of a grouped GEMM over live rows, as functions that host and device
// share. A tile is BM rows of one expert by BN columns; tiles are numbered expert by expert, row
// block by row block, column by column, and only live rows make tiles.
//
// Letters: L local experts, BM block rows, BN block columns, P programs (CTAs).
#pragma once

#include "core/host_device.h"

#include <cstdint>

namespace lr::experts {

// Blocks of `block` that cover `count` (>= 0).
LR_HD constexpr std::int64_t block_count(std::int64_t count, std::int64_t block) {
    return (count + block - 1) / block;
}

// first[e]: row blocks of the experts before e, for e in [0, L]; returns first[L], all of them.
LR_HD inline std::int32_t scan_blocks(const std::int32_t* counts, std::int32_t local,
                                      std::int32_t block, std::int32_t* first) {
    std::int32_t blocks = 0;
    for (std::int32_t e = 0; e < local; ++e) {
        first[e] = blocks;
        blocks += static_cast<std::int32_t>(block_count(counts[e], block));
    }
    first[local] = blocks;
    return blocks;
}

// The expert of row block b in [0, first[L]): the last one whose first block is not behind b. A
// search by halves, since every program does it.
LR_HD inline std::int32_t expert_of_block(const std::int32_t* first, std::int32_t local,
                                          std::int32_t b) {
    std::int32_t low = 0, high = local - 1;
    while (low < high) {
        const std::int32_t middle = low + (high - low + 1) / 2;
        if (first[middle] <= b)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

struct Tile {
    std::int32_t expert = 0;
    std::int32_t row = 0;    // of the expert's rows
    std::int32_t rows = 0;   // live ones, 1..BM
    std::int32_t column = 0; // column block
};

// Tile t in [0, first[L] * columns), where `first` is scan_blocks' and `columns` the column blocks.
LR_HD inline Tile tile_at(const std::int32_t* counts, const std::int32_t* first, std::int32_t local,
                          std::int32_t block, std::int32_t columns, std::int32_t t) {
    const std::int32_t b = t / columns;
    const std::int32_t expert = expert_of_block(first, local, b);
    const std::int32_t row = (b - first[expert]) * block;
    const std::int32_t left = counts[expert] - row;
    return {expert, row, left < block ? left : block, t % columns};
}

// What program `pid` of m * n programs computes when up to `group` row blocks stand together: all
// of them at one column block, then at the next, so that programs that run at the same time share
// weights. `group` groups programs, not experts. Each (m, n) has one pid.
struct ProgramPlace {
    std::int32_t m = 0, n = 0;
};
LR_HD constexpr ProgramPlace program_place(std::int32_t pid, std::int32_t m_blocks,
                                           std::int32_t n_blocks, std::int32_t group) {
    const std::int32_t together = group * n_blocks;
    const std::int32_t first = pid / together * group;
    const std::int32_t rows = m_blocks - first < group ? m_blocks - first : group;
    const std::int32_t inside = pid % together;
    return {first + inside % rows, inside / rows};
}

// The program of place (m, n): program_place's inverse.
LR_HD constexpr std::int32_t program_at(ProgramPlace place, std::int32_t m_blocks,
                                        std::int32_t n_blocks, std::int32_t group) {
    const std::int32_t first = place.m / group * group;
    const std::int32_t rows = m_blocks - first < group ? m_blocks - first : group;
    return first * n_blocks + place.n * rows + place.m - first;
}

// Calls visit(row) for the rows of [start, end) that program `pid` of `programs` takes: the
// grid-stride loop. All programs together visit each live row once, whatever their number.
template <typename Visit> LR_HD void for_live_rows(std::int32_t start, std::int32_t end,
                                                   std::int32_t pid, std::int32_t programs,
                                                   Visit visit) {
    for (std::int64_t row = std::int64_t{start} + pid; row < end; row += programs)
        visit(static_cast<std::int32_t>(row));
}

} // namespace lr::experts
