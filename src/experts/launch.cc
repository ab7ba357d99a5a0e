// SPDX-License-Identifier: Apache-2.0
#include "experts/launch.h"

#include "experts/endpoints.h"
#include "experts/tiles.h"

#include <algorithm>

namespace lr::experts {
namespace {

std::int32_t rows_in(const Alignment& list, std::int64_t first) {
    const std::int64_t end = std::min(first + list.block, std::ssize(list.sorted_ids));
    return static_cast<std::int32_t>(std::count_if(list.sorted_ids.begin() + first,
                                                   list.sorted_ids.begin() + end,
                                                   [&](std::int32_t q) { return q != list.rows; }));
}

void add_list_blocks(const Alignment& list, Launch& launch) {
    std::int32_t row = 0;
    for (std::size_t b = 0; b < list.expert_ids.size(); ++b) {
        RowBlock block{.first = static_cast<std::int64_t>(b) * list.block};
        if (block.first < list.padded) { // the expert id of a block behind it is not written
            block.expert = list.expert_ids[b];
            row = b > 0 && list.expert_ids[b - 1] == block.expert ? row : 0;
            block.row = row;
            block.live = rows_in(list, block.first);
            block.action = block.expert < 0 ? Action::kZero : Action::kCompute;
            row += block.live;
        }
        launch.blocks.push_back(block);
    }
}

void scan(const Problem& p, const std::vector<std::int32_t>& counts, Launch& launch) {
    launch.start.resize(counts.size());
    launch.end.resize(counts.size());
    scan_endpoints(counts.data(), static_cast<std::int32_t>(counts.size()),
                   static_cast<std::int32_t>(p.alignment), launch.start.data(), launch.end.data());
}

void add_endpoint_blocks(const Problem& p, Launch& launch) {
    const std::vector<std::int32_t> counts = count_rows(p.routing);
    scan(p, counts, launch);
    const auto local = static_cast<std::int32_t>(counts.size());
    const auto rows = static_cast<std::int32_t>(p.tiling.rows);
    std::vector<std::int32_t> first(counts.size() + 1);
    const std::int32_t live = scan_blocks(counts.data(), local, rows, first.data());
    const std::int64_t most =
        rows_capacity(p.capacity, p.routing.per_token, local, p.tiling.rows) / p.tiling.rows;
    for (std::int32_t b = 0; b < most; ++b) {
        if (b >= live) {
            launch.blocks.push_back({.first = launch.positions});
            continue;
        }
        const Tile tile = tile_at(counts.data(), first.data(), local, rows, 1, b);
        launch.blocks.push_back(
            {.first = launch.start[static_cast<std::size_t>(tile.expert)] + tile.row,
             .expert = tile.expert,
             .row = tile.row,
             .live = tile.rows,
             .action = Action::kCompute});
    }
}

void add_aligned_blocks(const Problem& p, Launch& launch) {
    const std::vector<std::int32_t> counts = count_rows(p.routing);
    scan(p, counts, launch);
    const RowMap map = place(p);
    for (std::int64_t first = 0; first < map.rows; first += p.tiling.rows) {
        RowBlock block{.first = first, .action = Action::kZero};
        block.expert = map.expert[static_cast<std::size_t>(first)]; // the first row's label decides
        if (block.expert >= 0) {
            const auto e = static_cast<std::size_t>(block.expert);
            block.action = Action::kCompute;
            block.row = static_cast<std::int32_t>(first) - launch.start[e];
            block.live = static_cast<std::int32_t>(
                std::clamp<std::int64_t>(launch.end[e] - first, 0, p.tiling.rows));
        }
        launch.blocks.push_back(block);
    }
}

} // namespace

const char* action_name(Action action) {
    return action == Action::kCompute ? "computes" : action == Action::kZero ? "zeroes" : "exits";
}

Launch plan_launch(const Problem& p, std::int64_t columns) {
    Launch launch{.block = p.tiling.rows,
                  .column_blocks = block_count(columns, p.tiling.columns),
                  .positions = allocated_rows(p)};
    if (uses_index_list(p.layout)) {
        launch.list = align_blocks(listed_ids(p), p.local(), p.tiling.rows, p.order);
        launch.positions = std::ssize(launch.list->sorted_ids);
        add_list_blocks(*launch.list, launch);
    } else if (p.layout == Layout::kEndpoints) {
        add_endpoint_blocks(p, launch);
    } else {
        add_aligned_blocks(p, launch);
    }
    return launch;
}

std::int64_t program_of(const Launch& launch, const Tiling& tiling, std::int64_t m,
                        std::int64_t n) {
    return program_at({static_cast<std::int32_t>(m), static_cast<std::int32_t>(n)},
                      static_cast<std::int32_t>(launch.blocks.size()),
                      static_cast<std::int32_t>(launch.column_blocks),
                      static_cast<std::int32_t>(tiling.group));
}

Programs count_programs(const Launch& launch) {
    Programs programs;
    for (const RowBlock& block : launch.blocks) {
        programs.launched += launch.column_blocks;
        (block.action == Action::kCompute ? programs.computing
         : block.action == Action::kZero  ? programs.zeroing
                                          : programs.exiting) += launch.column_blocks;
    }
    return programs;
}

BlockFill row_fill(const Launch& launch) {
    BlockFill fill;
    for (const RowBlock& block : launch.blocks)
        if (block.action == Action::kCompute) {
            fill.live_rows += block.live;
            ++fill.blocks;
            fill.covered_rows += launch.block;
        }
    return fill;
}

BlockFill count_blocks(std::span<const std::int32_t> counts, std::int64_t block) {
    BlockFill fill;
    for (std::int32_t count : counts) {
        fill.live_rows += count;
        fill.blocks += block_count(count, block);
    }
    fill.covered_rows = fill.blocks * block;
    return fill;
}

double BlockFill::fill() const {
    return covered_rows == 0 ? 0.0
                             : static_cast<double>(live_rows) / static_cast<double>(covered_rows);
}

std::int64_t metadata_bytes(const Launch& launch, Layout layout) {
    constexpr std::int64_t kInt = sizeof(std::int32_t);
    if (launch.list)
        return kInt * (launch.positions + std::ssize(launch.list->expert_ids) + 1);
    return kInt * (layout == Layout::kEndpoints ? std::ssize(launch.end) : launch.positions);
}

} // namespace lr::experts
