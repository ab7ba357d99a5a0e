// SPDX-License-Identifier: Apache-2.0
#include "experts/layout.h"

#include "core/check.h"
#include "experts/endpoints.h"
#include "experts/tiles.h"

#include <algorithm>

namespace lr::experts {
namespace {

template <typename T> T& at(std::vector<T>& values, std::int64_t i) {
    return values[static_cast<std::size_t>(i)];
}

// The pairs in order, each to the next row of its expert, from start[e] on.
RowMap place_at(const Routing& routing, std::vector<std::int32_t> start, std::int64_t rows) {
    RowMap map{.rows = rows};
    map.row_of.assign(routing.ids.size(), -1);
    map.expert.assign(static_cast<std::size_t>(rows), -1);
    for (std::size_t q = 0; q < routing.ids.size(); ++q) {
        const std::int32_t id = routing.ids[q];
        if (id < 0)
            continue;
        const std::int32_t row = at(start, id)++;
        LR_CHECK_LT(row, rows);
        map.row_of[q] = row;
        at(map.expert, row) = id;
    }
    return map;
}

std::vector<std::int32_t> aligned_starts(const Routing& routing, std::int64_t alignment) {
    std::vector<std::int32_t> counts = count_rows(routing);
    std::vector<std::int32_t> start(counts.size()), end(counts.size());
    scan_endpoints(counts.data(), static_cast<std::int32_t>(counts.size()),
                   static_cast<std::int32_t>(alignment), start.data(), end.data());
    return start;
}

} // namespace

std::string_view layout_name(Layout layout) {
    switch (layout) {
    case Layout::kTokenMajor:
        return "token-major";
    case Layout::kExpertMajor:
        return "expert-major";
    case Layout::kRankMajor:
        return "rank-major";
    case Layout::kEndpoints:
        return "endpoints";
    case Layout::kAlignedEnd:
        return "aligned-end";
    }
    return "";
}

std::optional<Layout> layout_from_name(std::string_view name) {
    for (Layout layout : kLayouts)
        if (layout_name(layout) == name)
            return layout;
    return std::nullopt;
}

bool uses_index_list(Layout layout) {
    return layout != Layout::kEndpoints && layout != Layout::kAlignedEnd;
}

std::vector<std::int32_t> count_rows(const Routing& routing) {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(routing.local), 0);
    for (std::int32_t id : routing.ids) {
        LR_CHECK(id >= -1 && id < routing.local);
        if (id >= 0)
            ++at(counts, id);
    }
    return counts;
}

Routing deal_routing(std::span<const std::int32_t> counts, std::int64_t tokens,
                     std::int64_t per_token) {
    Routing routing{.local = std::ssize(counts), .per_token = per_token, .ids = {}};
    routing.ids.assign(static_cast<std::size_t>(tokens * per_token), -1);
    // Pair j goes to token j % n as its (j / n)-th: an expert has at most n pairs in a row.
    std::int64_t j = 0;
    for (std::int32_t e = 0; e < routing.local; ++e) {
        const std::int32_t count = counts[static_cast<std::size_t>(e)];
        LR_CHECK(count >= 0 && count <= tokens);
        for (std::int32_t i = 0; i < count; ++i, ++j) {
            LR_CHECK_LT(j / tokens, per_token);
            at(routing.ids, j % tokens * per_token + j / tokens) = e;
        }
    }
    return routing;
}

Routing slice_tokens(const Routing& routing, std::int64_t first, std::int64_t last) {
    LR_CHECK(0 <= first && first <= last && last <= routing.tokens());
    return {.local = routing.local,
            .per_token = routing.per_token,
            .ids = {routing.ids.begin() + first * routing.per_token,
                    routing.ids.begin() + last * routing.per_token}};
}

RowMap place_token_major(const Routing& routing) {
    RowMap map{.rows = routing.pairs()};
    map.expert = routing.ids;
    for (std::int32_t q = 0; q < routing.pairs(); ++q)
        map.row_of.push_back(at(map.expert, q) < 0 ? -1 : q);
    return map;
}

RowMap place_expert_major(const Routing& routing, std::int64_t capacity) {
    std::vector<std::int32_t> start;
    for (std::int64_t e = 0; e < routing.local; ++e)
        start.push_back(static_cast<std::int32_t>(e * capacity));
    for (std::int32_t count : count_rows(routing))
        LR_CHECK_LE(count, capacity);
    return place_at(routing, std::move(start), routing.local * capacity);
}

RowMap place_rank_major(const Routing& routing, std::int64_t ranks, std::int64_t capacity) {
    const std::int64_t per_rank = std::max<std::int64_t>(block_count(routing.tokens(), ranks), 1);
    RowMap map{.rows = ranks * capacity};
    std::vector<std::int64_t> used(static_cast<std::size_t>(ranks), 0);
    for (std::int64_t token = 0; token < routing.tokens(); ++token) {
        const auto first = routing.ids.begin() + token * routing.per_token;
        const bool here =
            std::any_of(first, first + routing.per_token, [](std::int32_t id) { return id >= 0; });
        const std::int64_t rank = token / per_rank;
        const std::int64_t row = rank * capacity + at(used, rank);
        if (here)
            LR_CHECK_LT(at(used, rank)++, capacity);
        for (std::int64_t slot = 0; slot < routing.per_token; ++slot)
            map.row_of.push_back(first[slot] < 0 ? -1 : static_cast<std::int32_t>(row));
    }
    return map;
}

RowMap place_endpoints(const Routing& routing, std::int64_t alignment, std::int64_t rows) {
    return place_at(routing, aligned_starts(routing, alignment), rows);
}

RowMap place_aligned_end(const Routing& routing, std::int64_t alignment, std::int64_t rows) {
    const std::vector<std::int32_t> start = aligned_starts(routing, alignment);
    const std::vector<std::int32_t> counts = count_rows(routing);
    RowMap map = place_at(routing, start, rows);
    for (std::size_t e = 0; e < counts.size(); ++e) {
        const std::int64_t end = start[e] + align_up(counts[e], alignment);
        LR_CHECK_LE(end, rows);
        std::fill(map.expert.begin() + start[e], map.expert.begin() + end,
                  static_cast<std::int32_t>(e));
    }
    return map;
}

std::vector<std::int32_t> gather_rows(const RowMap& from, const RowMap& to) {
    LR_CHECK_EQ(from.row_of.size(), to.row_of.size());
    std::vector<std::int32_t> gather(static_cast<std::size_t>(to.rows), -1);
    for (std::size_t q = 0; q < to.row_of.size(); ++q)
        if (to.row_of[q] >= 0)
            at(gather, to.row_of[q]) = from.row_of[q];
    return gather;
}

} // namespace lr::experts
