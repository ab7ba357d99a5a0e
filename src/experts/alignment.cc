// SPDX-License-Identifier: Apache-2.0
#include "experts/alignment.h"

#include "core/check.h"
#include "experts/endpoints.h"

#include <algorithm>

namespace lr::experts {
namespace {

constexpr std::int64_t kCountingThreads = 32;

// Calls visit(q) for every row in the order in which rows of one group are placed.
template <typename Visit> void for_each_row(std::int64_t rows, std::int64_t stride, Visit visit) {
    for (std::int64_t first = 0; first < std::min(stride, rows); ++first)
        for (std::int64_t q = first; q < rows; q += stride)
            visit(q);
}

std::vector<std::int64_t> group_counts(std::span<const std::int32_t> ids, std::int64_t local) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(local) + 1, 0);
    for (std::int32_t id : ids) {
        LR_CHECK(id >= -1 && id < local);
        ++counts[static_cast<std::size_t>(id + 1)];
    }
    return counts;
}

} // namespace

std::int64_t alignment_capacity(std::int64_t rows, std::int64_t local, std::int64_t block) {
    return rows < local + 1 ? rows * block : rows + (local + 1) * (block - 1);
}

bool small_batch_order(std::int64_t rows, std::int64_t local) {
    return rows < 1024 && local + 1 <= 64;
}

Alignment align_blocks(std::span<const std::int32_t> ids, std::int64_t local, std::int64_t block,
                       RowOrder order) {
    const auto rows = static_cast<std::int64_t>(ids.size());
    LR_CHECK(block >= 1 && local >= 0);
    LR_CHECK(order == RowOrder::kAscending || small_batch_order(rows, local));

    Alignment out{.rows = rows, .local = local, .block = block, .sorted_ids = {}, .expert_ids = {}};
    const std::int64_t capacity = alignment_capacity(rows, local, block);
    out.sorted_ids.assign(static_cast<std::size_t>(capacity), static_cast<std::int32_t>(rows));
    out.expert_ids.assign(static_cast<std::size_t>(align_up(capacity, block) / block),
                          kUnsetExpert);

    std::vector<std::int64_t> next; // list position of the next row of each group
    for (std::int64_t count : group_counts(ids, local)) {
        const auto expert = static_cast<std::int32_t>(next.size()) - 1;
        next.push_back(out.padded);
        for (std::int64_t end = out.padded + count; out.padded < end; out.padded += block)
            out.expert_ids[static_cast<std::size_t>(out.padded / block)] = expert;
    }
    const std::int64_t stride =
        order == RowOrder::kSmallBatch ? std::max(local + 1, kCountingThreads) : 1;
    for_each_row(rows, stride, [&](std::int64_t q) {
        const auto group = static_cast<std::size_t>(ids[static_cast<std::size_t>(q)] + 1);
        out.sorted_ids[static_cast<std::size_t>(next[group]++)] = static_cast<std::int32_t>(q);
    });
    return out;
}

std::vector<ListGroup> list_groups(const Alignment& alignment) {
    std::vector<ListGroup> groups;
    for (std::int64_t p = 0; p < alignment.padded; ++p) {
        const auto expert = alignment.expert_ids[static_cast<std::size_t>(p / alignment.block)];
        if (groups.empty() || groups.back().expert != expert)
            groups.push_back({.expert = expert, .first = p, .last = p, .rows = {}});
        ListGroup& group = groups.back();
        group.last = p + 1;
        // Blocks may reach beyond the list: what would stand there is padding.
        if (p < std::ssize(alignment.sorted_ids))
            if (const std::int32_t q = alignment.sorted_ids[static_cast<std::size_t>(p)];
                q != alignment.rows)
                group.rows.push_back(q);
    }
    return groups;
}

std::string describe(const Alignment& alignment) {
    const auto capacity = static_cast<std::int64_t>(alignment.sorted_ids.size());
    // 2 * expert of a position, + 1 for padding: positions of one run share it.
    const auto kind_of = [&](std::int64_t p) -> std::int64_t {
        const bool padding = alignment.sorted_ids[static_cast<std::size_t>(p)] == alignment.rows;
        if (p >= alignment.padded)
            return 2 * alignment.local + 1;
        const auto expert = alignment.expert_ids[static_cast<std::size_t>(p / alignment.block)];
        return 2 * std::int64_t{expert} + (padding ? 1 : 0);
    };
    std::string text;
    for (std::int64_t first = 0; first < capacity;) {
        const std::int64_t kind = kind_of(first);
        std::int64_t last = first + 1;
        while (last < capacity && kind_of(last) == kind)
            ++last;
        const std::int64_t expert = kind >> 1;
        const std::string range = fmt::format("[{}, {})", first, last);
        if (expert == alignment.local)
            text += fmt::format("{}  unused capacity\n", range);
        else if (kind & 1)
            text += fmt::format("{}  padding of expert {}\n", range, expert);
        else
            text += fmt::format("{}  expert {}, {} rows\n", range, expert, last - first);
        first = last;
    }
    return text;
}

} // namespace lr::experts
