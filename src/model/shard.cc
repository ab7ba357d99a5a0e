// SPDX-License-Identifier: Apache-2.0
//
// How ranks divide a weight (model/tensor_table.h).
#include "core/check.h"
#include "model/tensor_table.h"

#include <algorithm>

namespace lr::model {
namespace {

// The shared expert is divided among all ranks: with expert parallelism too it counts once.
Shard effective(const Entry& entry, const Shard& shard) {
    if (entry.kind != TensorKind::kShared)
        return shard;
    return {.tp = shard.tp * shard.ep, .tp_rank = shard.ep_rank * shard.tp + shard.tp_rank};
}

RowRange block_rows(const RowBlock& block, const Shard& shard) {
    switch (block.rule) {
    case RowRule::kReplicated:
        break;
    case RowRule::kSplit: {
        const std::int64_t rows = block.rows / shard.tp;
        return {block.source, block.first + shard.tp_rank * rows, rows};
    }
    case RowRule::kKvHeads: {
        const std::int64_t head_rows = block.rows / block.heads;
        const std::int64_t heads = std::max<std::int64_t>(1, block.heads / shard.tp);
        const std::int64_t first = shard.tp_rank * block.heads / shard.tp;
        return {block.source, block.first + first * head_rows, heads * head_rows};
    }
    }
    return {block.source, block.first, block.rows};
}

// FP8 blocks and NVFP4 groups must not straddle two ranks.
Status check_granule(const Entry& entry, const Shard& shard) {
    const auto granule = [&](std::int64_t value, std::int64_t unit, const char* what) -> Status {
        if (value % unit == 0)
            return {};
        return fail(Code::kInvalidArgument,
                    "{}: tp={}: {} per rank is {}, and {} weights divide only at multiples of {}",
                    entry.name, shard.tp, what, value, numerics::weight_format_name(entry.format),
                    unit);
    };
    if (effective(entry, shard).tp == 1)
        return {};
    const bool fp8_block = entry.format == WeightFormat::kFp8Block;
    if (fp8_block)
        for (const RowBlock& block : entry.blocks)
            if (block.rule != RowRule::kReplicated) {
                LR_TRY(granule(block_rows(block, effective(entry, shard)).rows, 128, "rows"));
            }
    if (entry.split_columns && entry.format != WeightFormat::kPlain) {
        const std::int64_t columns = local_columns(entry, shard).count;
        if (fp8_block)
            return granule(columns, 128, "columns");
        if (entry.format == WeightFormat::kNvfp4)
            return granule(columns, 16, "columns");
    }
    return {};
}

} // namespace

std::vector<RowRange> local_rows(const Entry& entry, const Shard& shard) {
    std::vector<RowRange> ranges;
    for (const RowBlock& block : entry.blocks) {
        const RowRange range = block_rows(block, effective(entry, shard));
        if (!ranges.empty() && ranges.back().source == range.source &&
            ranges.back().first + ranges.back().rows == range.first)
            ranges.back().rows += range.rows;
        else
            ranges.push_back(range);
    }
    return ranges;
}

ColumnRange local_columns(const Entry& entry, const Shard& shard) {
    if (!entry.split_columns)
        return {0, entry.columns()};
    const Shard place = effective(entry, shard);
    const std::int64_t count = entry.columns() / place.tp;
    return {place.tp_rank * count, count};
}

Shape local_shape(const Entry& entry, const Shard& shard) {
    std::int64_t rows = 0;
    for (const RowRange& range : local_rows(entry, shard))
        rows += range.rows;
    if (entry.shape.rank() == 1)
        return {rows};
    const std::int64_t columns = local_columns(entry, shard).count;
    if (entry.shape.rank() == 2)
        return {rows, columns};
    return {entry.shape[0] / shard.ep, rows, columns};
}

Status Model::check_shard(const Shard& shard) const {
    const auto divides = [](std::int64_t value, std::int64_t parts, const char* what,
                            const char* flag) -> Status {
        if (value % parts == 0)
            return {};
        return fail(Code::kInvalidArgument, "{}={}: {}={} cannot be divided evenly", flag, parts,
                    what, value);
    };
    if (shard.tp < 1 || shard.ep < 1 || shard.tp_rank < 0 || shard.tp_rank >= shard.tp ||
        shard.ep_rank < 0 || shard.ep_rank >= shard.ep)
        return fail(Code::kInvalidArgument,
                    "shard: expected tp, ep >= 1 and ranks below them, got tp={} rank {}, ep={} "
                    "rank {}",
                    shard.tp, shard.tp_rank, shard.ep, shard.ep_rank);
    LR_TRY(divides(config_.vocab_size, shard.tp, "vocabulary", "tp"));
    LR_TRY(divides(config_.q_heads, shard.tp, "query heads", "tp"));
    LR_TRY(divides(config_.k_heads, shard.tp, "GDN key heads", "tp"));
    LR_TRY(divides(config_.v_heads, shard.tp, "GDN value heads", "tp"));
    if (config_.kv_heads % shard.tp != 0 && shard.tp % config_.kv_heads != 0)
        return fail(Code::kInvalidArgument,
                    "tp={}: expected a divisor or a multiple of the {} key/value heads", shard.tp,
                    config_.kv_heads);
    if (config_.moe()) {
        LR_TRY(divides(config_.experts, shard.ep, "experts", "ep"));
        LR_TRY(divides(config_.expert_width, shard.tp, "expert width", "tp"));
        LR_TRY(divides(config_.shared_expert_width, shard.tp * shard.ep, "shared expert width",
                       "tp*ep"));
    } else {
        if (shard.ep != 1)
            return fail(Code::kInvalidArgument, "ep={}: expected 1, a dense model has no experts",
                        shard.ep);
        LR_TRY(divides(config_.ffn_width, shard.tp, "FFN width", "tp"));
    }
    for (const Entry& entry : entries_)
        LR_TRY(check_granule(entry, shard));
    return {};
}

} // namespace lr::model
