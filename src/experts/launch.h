// SPDX-License-Identifier: Apache-2.0
//
// experts/launch.h: the programs of one GEMM launch, and what each finds to do.
//
// A launch is fixed: row blocks for the capacity times column blocks. What a row block does depends
// on the counts:
//
//   index list   blocks of the list in order; a block of foreign or dead rows writes zeros to them,
//                a block behind `padded` exits before it loads anything
//   endpoints    as many blocks as the worst routing fills; block b is the b-th of the live row
//                blocks (tiles.h), and those behind the last one exit
//   aligned-end  blocks of the rows in order; up to the aligned end they compute, padding too;
//                behind it the label is -1, and the block writes zeros without a product
#pragma once

#include "experts/problem.h"

#include <string>

namespace lr::experts {

enum class Action : std::uint8_t { kCompute, kZero, kExit };
const char* action_name(Action action); // "computes", "zeroes", "exits"

// BM positions (of the list, or rows) that share the programs of all column blocks.
struct RowBlock {
    std::int64_t first = 0;   // position; the block covers [first, first + BM)
    std::int32_t expert = -1; // whose weights; -1: none
    std::int32_t row = 0;     // of the expert's rows: the first one here
    std::int32_t live = 0;    // live rows computed, or rows zeroed
    Action action = Action::kExit;
    friend bool operator==(const RowBlock&, const RowBlock&) = default;
};

struct Launch {
    std::int64_t block = 0;               // BM
    std::int64_t column_blocks = 0;       // ceil(N / BN)
    std::vector<RowBlock> blocks;         // all that are launched, in order
    std::optional<Alignment> list;        // of layouts with an index list
    std::vector<std::int32_t> start, end; // [L], of the others: rows of each expert
    std::int64_t positions = 0;           // allocated: Q, or rows
};

// The launch whose N is `columns` (2I for gate and up, D for down).
Launch plan_launch(const Problem& problem, std::int64_t columns);

// The program that has column block n of row block m (tiles.h program_at).
std::int64_t program_of(const Launch& launch, const Tiling& tiling, std::int64_t m, std::int64_t n);

// What the programs do. Launched = row blocks * column blocks, and the rest adds up to it.
struct Programs {
    std::int64_t launched = 0;
    std::int64_t computing = 0;
    std::int64_t zeroing = 0;
    std::int64_t exiting = 0;
    friend bool operator==(const Programs&, const Programs&) = default;
};
Programs count_programs(const Launch& launch);

// Rows in use against rows that computing blocks cover.
struct BlockFill {
    std::int64_t live_rows = 0;
    std::int64_t blocks = 0;
    std::int64_t covered_rows = 0; // blocks * BM
    double fill() const;           // 0 where nothing is covered
};
BlockFill row_fill(const Launch& launch);
// Of counts alone: each expert's rows in blocks of their own.
BlockFill count_blocks(std::span<const std::int32_t> counts, std::int64_t block);

// What a producer writes to say where the rows are: an expert id for each row (aligned-end), an end
// for each expert (endpoints; starts follow), or list, block ids and length (index lists).
std::int64_t metadata_bytes(const Launch& launch, Layout layout);

} // namespace lr::experts
