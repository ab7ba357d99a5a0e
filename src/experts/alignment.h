// SPDX-License-Identifier: Apache-2.0
//
// experts/alignment.h: the index-list layout of a grouped GEMM: rows stay where they are, and a
// list names them expert by expert, each group padded to blocks of BM.
//
//   sorted_ids [Q]            flat row of each list position; S where the position is padding
//   expert_ids [ceil(Q/BM)]   expert of each block; -1 for rows of no local expert
//   padded                    list positions in use; a multiple of BM
//
// Letters: S flat rows (tokens * K, or slots with K = 1), L local experts, BM block rows, BN block
// columns, Q capacity of the list.
//
// Groups come in the order -1, 0, 1, ..., L-1, so foreign rows fill the first blocks. Capacity:
//   Q = S * BM                      when S < L + 1 (every row may need a block of its own)
//   Q = S + (L + 1) * (BM - 1)      otherwise
// Entries of expert_ids behind `padded` are not written by the kernels that this describes
// (kUnsetExpert here): a reader tests position < padded first.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace lr::experts {

enum class RowOrder {
    kAscending,  // ours: rows of a group ascend, for any size
    kSmallBatch, // the traced kernel's: see small_batch_order()
};

inline constexpr std::int32_t kUnsetExpert = std::numeric_limits<std::int32_t>::min();

struct Alignment {
    std::int64_t rows = 0;  // S, also the padding sentinel in sorted_ids
    std::int64_t local = 0; // L
    std::int64_t block = 0; // BM
    std::vector<std::int32_t> sorted_ids;
    std::vector<std::int32_t> expert_ids;
    std::int64_t padded = 0;
};

// Q.
std::int64_t alignment_capacity(std::int64_t rows, std::int64_t local, std::int64_t block);

// Whether the traced kernel takes its one-block path, whose order is defined: S < 1024 and
// L + 1 <= 64. max(L + 1, 32) threads walk rows tid, tid + threads, ...; within a group, rows are
// ordered by thread, then by step. (Its large path places rows by atomics: no order is promised.)
bool small_batch_order(std::int64_t rows, std::int64_t local);

// ids[q] in [-1, L). kSmallBatch requires small_batch_order(ids.size(), local).
Alignment align_blocks(std::span<const std::int32_t> ids, std::int64_t local, std::int64_t block,
                       RowOrder order = RowOrder::kAscending);

// The blocks of one expert, or of the rows of none (-1).
struct ListGroup {
    std::int32_t expert = -1;
    std::int64_t first = 0, last = 0; // positions [first, last), padding included
    std::vector<std::int32_t> rows;   // in the order of the list
};
// Groups that have rows, in the order of the list.
std::vector<ListGroup> list_groups(const Alignment& alignment);

// One line per run of list positions:
//   "[192, 262)  expert 0, 70 rows\n[262, 320)  padding of expert 0\n..."
std::string describe(const Alignment& alignment);

} // namespace lr::experts
