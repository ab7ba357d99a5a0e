// SPDX-License-Identifier: Apache-2.0
//
// experts/problem.h: one rank's routed-expert work, as a value: who chose what, how the rows lie
// and how the two GEMMs are cut. Everything else of this folder is derived from it.
#pragma once

#include "core/status.h"
#include "experts/alignment.h"
#include "experts/layout.h"
#include "numerics/weight_format.h"

namespace lr::experts {

// How both GEMMs are cut.
struct Tiling {
    std::int64_t rows = 64;     // BM
    std::int64_t columns = 128; // BN
    std::int64_t depth = 128;   // BK: features of one step along the sum
    std::int64_t group = 32;    // row blocks that stand together (tiles.h program_place)
    friend bool operator==(const Tiling&, const Tiling&) = default;
};

struct Problem {
    Routing routing;
    Layout layout = Layout::kExpertMajor;
    std::int64_t capacity = 0; // R: rows that one expert can have, so tokens that can arrive here
    std::int64_t ranks = 1;    // P: source ranks, which is W
    std::int64_t alignment = 128; // A, of endpoints and aligned-end
    std::int64_t hidden = 0;      // D
    std::int64_t width = 0;       // I
    Tiling tiling;
    std::int64_t ctas = 2; // programs that run at the same time, or persistent ones
    numerics::WeightFormat weights = numerics::WeightFormat::kFp8Block;
    // Row order of index lists; kSmallBatch only where small_batch_order() holds.
    RowOrder order = RowOrder::kAscending;

    std::int64_t local() const { return routing.local; }
    // Source ranks' tokens are told apart in rank-major alone: rows of each.
    std::int64_t rank_capacity() const;
};

// Rows and list positions that a description may have: it is meant to be read, and it is held in
// memory.
inline constexpr std::int64_t kMaxDescribed = std::int64_t{1} << 24;
// Programs of one GEMM that it may have.
inline constexpr std::int64_t kMaxPrograms = std::int64_t{1} << 22;

// Counts as a caller gave them: none negative, none above `capacity`, their sum an int32.
// `where` names them in errors ("--counts").
Result<std::vector<std::int32_t>> check_counts(std::span<const std::int64_t> counts,
                                               std::int64_t capacity, std::string_view where);

// kInvalidArgument: what, expected, got. What is below is asked of a checked problem only.
Status check(const Problem& problem);

// Rows that the layout's buffer allocates: L*R, W*C, n*K, or for endpoints and aligned-end the
// least that suffices whatever R tokens choose (endpoints.h rows_capacity).
std::int64_t allocated_rows(const Problem& problem);

// Where the pairs lie.
RowMap place(const Problem& problem);

// The id of each row that an index list of the layout names: of each slot of expert-major, each
// row and choice of rank-major [W*C*K], each pair of token-major; -1 for dead slots and foreign
// pairs. Requires uses_index_list(layout).
std::vector<std::int32_t> listed_ids(const Problem& problem);

} // namespace lr::experts
