// SPDX-License-Identifier: Apache-2.0
//
// experts/layout.h: where the rows of routed tokens lie, and how to go from one buffer to another
// without losing whose row is whose.
//
// A pair is one token's choice of one expert: pair q = token * K + slot. It is the identity that
// every layout keeps:
//
//   token-major   [n*K]: pair q is row q; an index list (alignment.h) names rows by expert
//   expert-major  [L,R]: expert e owns rows e*R .. e*R+R-1, its live rows first
//   rank-major    [W,C]: source rank w owns rows w*C .. ; one row for each token that chose an
//                 expert here, with its experts beside it, so pairs of one token share a row
//   endpoints     expert e owns [start[e], end[e]) of endpoints.h; gaps are never read
//   aligned-end   starts as endpoints, but the end is aligned up too: padding is computed with the
//                 expert's rows and its result ignored; behind the last end the expert is -1
//
// Within an expert, rows ascend by pair (comm/expert_layout.h fills its buffers in that order).
//
// Letters: n tokens, K experts per token, L local experts, R rows of capacity per expert, W source
// ranks, C rows of capacity per source rank, A row alignment.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lr::experts {

enum class Layout : std::uint8_t { kTokenMajor, kExpertMajor, kRankMajor, kEndpoints, kAlignedEnd };
inline constexpr Layout kLayouts[] = {Layout::kExpertMajor, Layout::kRankMajor, Layout::kEndpoints,
                                      Layout::kAlignedEnd, Layout::kTokenMajor};
std::string_view layout_name(Layout layout); // "expert-major"
std::optional<Layout> layout_from_name(std::string_view name);
// Whether the GEMM reads rows through an index list (alignment.h).
bool uses_index_list(Layout layout);

// Which local experts the tokens of a batch chose.
struct Routing {
    std::int64_t local = 0;        // L
    std::int64_t per_token = 1;    // K
    std::vector<std::int32_t> ids; // [n*K], in [-1, L); -1: another rank's expert, or none

    std::int64_t pairs() const { return std::ssize(ids); }
    std::int64_t tokens() const { return pairs() / per_token; }
};
std::vector<std::int32_t> count_rows(const Routing& routing); // [L]

// A routing with these counts: experts' rows one after the other, dealt to the tokens in turn. No
// token gets an expert twice. Requires counts[e] in [0, n] and sum <= n * min(K, L).
Routing deal_routing(std::span<const std::int32_t> counts, std::int64_t tokens,
                     std::int64_t per_token);
// Tokens [first, last) alone.
Routing slice_tokens(const Routing& routing, std::int64_t first, std::int64_t last);

// Rows of a buffer.
struct RowMap {
    std::vector<std::int32_t> row_of; // [pairs]: its row; -1: it has none
    std::vector<std::int32_t> expert; // [rows]: whose weights the row meets; -1: none. Empty for
                                      // rank-major, whose rows have several
    std::int64_t rows = 0;            // allocated
};
RowMap place_token_major(const Routing& routing);
RowMap place_expert_major(const Routing& routing, std::int64_t capacity);
// Token t comes from source rank t / ceil(n / ranks).
RowMap place_rank_major(const Routing& routing, std::int64_t ranks, std::int64_t capacity);
RowMap place_endpoints(const Routing& routing, std::int64_t alignment, std::int64_t rows);
RowMap place_aligned_end(const Routing& routing, std::int64_t alignment, std::int64_t rows);

// gather[r]: the row of `from` that row r of `to` copies; -1: none does. The maps are of one
// routing.
std::vector<std::int32_t> gather_rows(const RowMap& from, const RowMap& to);

} // namespace lr::experts
