// SPDX-License-Identifier: Apache-2.0
#include "experts/problem.h"

#include "experts/endpoints.h"
#include "experts/tiles.h"

#include <algorithm>
#include <limits>

namespace lr::experts {
namespace {

constexpr std::int64_t kMaxRows = std::numeric_limits<std::int32_t>::max();

Status expect_range(const char* what, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high)
        return {};
    return fail(Code::kInvalidArgument, "{}: expected {} to {}, got {}", what, low, high, value);
}

Status check_sizes(const Problem& p) {
    constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;
    LR_TRY(expect_range("experts", p.local(), 1, 8191)); // what the traced list kernel can count
    LR_TRY(expect_range("choices of a token", p.routing.per_token, 1, 8191));
    LR_TRY(expect_range("capacity", p.capacity, 1, kMaxRows));
    LR_TRY(expect_range("ranks", p.ranks, 1, 4096));
    LR_TRY(expect_range("alignment", p.alignment, 1, 65536));
    LR_TRY(expect_range("hidden", p.hidden, 1, kMaxWidth));
    LR_TRY(expect_range("width", p.width, 1, kMaxWidth));
    LR_TRY(expect_range("tile rows (BM)", p.tiling.rows, 1, 65536));
    LR_TRY(expect_range("tile columns (BN)", p.tiling.columns, 1, 65536));
    LR_TRY(expect_range("tile depth (BK)", p.tiling.depth, 1, 65536));
    LR_TRY(expect_range("grouped row blocks", p.tiling.group, 1, 65536));
    LR_TRY(expect_range("CTAs", p.ctas, 1, 1 << 20));
    return {};
}

// Rows of W*C in which each source rank's tokens must fit.
Status check_ranks(const Problem& p) {
    const std::int64_t per_rank = block_count(p.routing.tokens(), p.ranks);
    if (p.layout != Layout::kRankMajor || per_rank <= p.rank_capacity())
        return {};
    return fail(Code::kInvalidArgument,
                "rank-major: expected at least {} rows for each of {} source ranks, got capacity "
                "{} for all of them",
                per_rank, p.ranks, p.capacity);
}

// A block's first row says whose weights the whole block meets.
Status check_starts(const Problem& p) {
    if (p.layout != Layout::kAlignedEnd || p.alignment % p.tiling.rows == 0)
        return {};
    return fail(Code::kInvalidArgument,
                "aligned-end: expected an alignment that is a multiple of BM {}, got {}",
                p.tiling.rows, p.alignment);
}

Status check_extent(const Problem& p) {
    // Two factors below 2^31 and 2^13 do not overflow.
    const std::int64_t slots = p.local() * p.capacity;
    const std::int64_t rows = p.layout == Layout::kExpertMajor ? slots : allocated_rows(p);
    const std::int64_t named = p.layout == Layout::kRankMajor ? rows * p.routing.per_token : rows;
    const std::int64_t list = alignment_capacity(named, p.local(), p.tiling.rows);
    const std::int64_t most = uses_index_list(p.layout) ? std::max(named, list) : rows;
    const std::int64_t columns = std::max(2 * p.width, p.hidden);
    const std::int64_t programs = // below 2^31 blocks and 2^21 columns
        block_count(uses_index_list(p.layout) ? list : rows, p.tiling.rows) *
        block_count(columns, p.tiling.columns);
    if (most <= kMaxDescribed && programs > kMaxPrograms)
        return fail(Code::kInvalidArgument,
                    "tiles: expected at most {} programs of a GEMM to describe, got {} (BM {}, BN "
                    "{})",
                    kMaxPrograms, programs, p.tiling.rows, p.tiling.columns);
    if (most <= kMaxDescribed)
        return {};
    return fail(Code::kInvalidArgument,
                "{}: expected at most {} rows or list positions to describe, got {} (experts {}, "
                "capacity {}, BM {})",
                layout_name(p.layout), kMaxDescribed, most, p.local(), p.capacity, p.tiling.rows);
}

} // namespace

std::int64_t Problem::rank_capacity() const {
    return block_count(capacity, ranks);
}

Result<std::vector<std::int32_t>> check_counts(std::span<const std::int64_t> counts,
                                               std::int64_t capacity, std::string_view where) {
    if (counts.empty())
        return fail(Code::kInvalidArgument,
                    "{}: expected the rows of at least one expert, got none", where);
    std::vector<std::int32_t> checked;
    std::int64_t sum = 0;
    for (std::size_t e = 0; e < counts.size(); ++e) {
        if (counts[e] < 0)
            return fail(Code::kInvalidArgument, "{}: expert {}: expected 0 rows or more, got {}",
                        where, e, counts[e]);
        if (counts[e] > capacity)
            return fail(Code::kInvalidArgument,
                        "{}: expert {}: expected at most {} rows (the capacity), got {}", where, e,
                        capacity, counts[e]);
        sum += counts[e];
        if (sum > kMaxRows)
            return fail(Code::kInvalidArgument,
                        "{}: expected at most {} rows together (rows are int32), got {} by expert "
                        "{}",
                        where, kMaxRows, sum, e);
        checked.push_back(static_cast<std::int32_t>(counts[e]));
    }
    return checked;
}

Status check(const Problem& problem) {
    LR_TRY(check_sizes(problem));
    LR_TRY(check_ranks(problem));
    LR_TRY(check_starts(problem));
    LR_TRY(check_extent(problem));
    const std::vector<std::int32_t> counts = count_rows(problem.routing);
    const std::vector<std::int64_t> wide(counts.begin(), counts.end());
    if (const auto checked = check_counts(wide, problem.capacity, "counts"); !checked)
        return checked.error();
    if (problem.order == RowOrder::kSmallBatch && uses_index_list(problem.layout)) {
        const std::int64_t rows = std::ssize(listed_ids(problem));
        if (!small_batch_order(rows, problem.local()))
            return fail(Code::kInvalidArgument,
                        "small-batch order: expected fewer than 1024 rows and at most 63 experts, "
                        "got {} and {}; beyond, the traced kernel promises no order",
                        rows, problem.local());
    }
    return {};
}

std::int64_t allocated_rows(const Problem& p) {
    switch (p.layout) {
    case Layout::kTokenMajor:
        return p.routing.pairs();
    case Layout::kExpertMajor:
        return p.local() * p.capacity;
    case Layout::kRankMajor:
        return p.ranks * p.rank_capacity();
    case Layout::kEndpoints:
    case Layout::kAlignedEnd:
        return rows_capacity(p.capacity, p.routing.per_token, p.local(), p.alignment);
    }
    return 0;
}

RowMap place(const Problem& p) {
    switch (p.layout) {
    case Layout::kTokenMajor:
        return place_token_major(p.routing);
    case Layout::kExpertMajor:
        return place_expert_major(p.routing, p.capacity);
    case Layout::kRankMajor:
        return place_rank_major(p.routing, p.ranks, p.rank_capacity());
    case Layout::kEndpoints:
        return place_endpoints(p.routing, p.alignment, allocated_rows(p));
    case Layout::kAlignedEnd:
        return place_aligned_end(p.routing, p.alignment, allocated_rows(p));
    }
    return {};
}

std::vector<std::int32_t> listed_ids(const Problem& p) {
    LR_CHECK(uses_index_list(p.layout));
    if (p.layout == Layout::kTokenMajor)
        return p.routing.ids;
    const RowMap map = place(p);
    if (p.layout == Layout::kExpertMajor)
        return map.expert;
    // Rank-major: the choices of the tokens that came, row by row.
    const std::int64_t per_token = p.routing.per_token;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(map.rows * per_token), -1);
    for (std::int64_t q = 0; q < p.routing.pairs(); ++q) {
        const std::int64_t row = map.row_of[static_cast<std::size_t>(q)];
        if (row >= 0)
            ids[static_cast<std::size_t>(row * per_token + q % per_token)] =
                p.routing.ids[static_cast<std::size_t>(q)];
    }
    return ids;
}

} // namespace lr::experts
