// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include "core/check.h"
#include "engine/stored_matrix.h"
#include "numerics/quantize.h"

#include <algorithm>
#include <mutex>

namespace lr::engine {

using checkpoint::StoredWeight;

class WeightBinder {
  public:
    WeightBinder(const model::OpenModel& opened, const model::Shard& shard)
        : opened_(opened), shard_(shard) {}

    Result<Weights> run() {
        LR_TRY(opened_.model().check_shard(shard_));
        LR_TRY(opened_.checkpoint->still_intact());
        const auto& entries = opened_.model().entries();
        out_.parts_.resize(entries.size());
        for (std::size_t i = 0; i < entries.size(); ++i)
            if (!entries[i].mtp)
                LR_TRY(bind_entry(entries[i], opened_.resolved.stored[i], out_.parts_[i]));
        for (Buffer& copy : matrices_.take_copies())
            out_.copies_.push_back(std::move(copy));
        LR_TRY(opened_.checkpoint->still_intact());
        return std::move(out_);
    }

  private:
    Status bind_entry(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                      std::vector<ops::WeightPart>& parts) {
        if (entry.kind != model::TensorKind::kRouted) {
            LR_TRY(bind_matrix(entry, stored, parts));
        } else {
            const std::int64_t local = entry.shape[0] / shard_.ep;
            for (std::int64_t e = shard_.ep_rank * local; e < (shard_.ep_rank + 1) * local; ++e)
                LR_TRY(entry.stored_per_expert ? bind_expert(entry, stored, e, parts)
                                               : bind_stacked_expert(entry, stored, e, parts));
        }
        for (const ops::WeightPart& part : parts)
            out_.bytes_ += part.data.bytes() + (part.scale.empty() ? 0 : part.scale.bytes());
        return {};
    }

    Status bind_matrix(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                       std::vector<ops::WeightPart>& parts) {
        for (const model::RowRange& rows : model::local_rows(entry, shard_)) {
            const StoredWeight& source = stored[static_cast<std::size_t>(rows.source)];
            LR_TRY_ASSIGN(const StoredMatrix matrix, matrices_.matrix(source));
            if (matrix.format == entry.format)
                append_parts(matrix, rows.first, rows.rows, model::local_columns(entry, shard_),
                             parts);
            else
                LR_TRY(append_widened(entry, matrix, rows, parts));
        }
        return {};
    }

    // What the step reads as one dense view, where a file quantises it. Ranks divide it at any row,
    // so what is widened begins at the FP8 block that the first row is in.
    Status append_widened(const model::Entry& entry, const StoredMatrix& matrix,
                          const model::RowRange& rows, std::vector<ops::WeightPart>& parts) {
        LR_CHECK(entry.widens() && entry.dtype == DType::kF32);
        const std::int64_t before = rows.first % numerics::kFp8Block;
        std::vector<ops::WeightPart> stored;
        append_parts(matrix, rows.first - before, before + rows.rows, {0, entry.columns()}, stored);
        LR_CHECK_EQ(stored.size(), 1u);
        LR_TRY_ASSIGN(Buffer wide, widen(matrix.format, stored.front()));
        const ConstView view{wide.data(), DType::kF32, stored.front().data.shape};
        parts.push_back({.data = view.slice_rows(before, rows.rows), .scale = {}});
        out_.copies_.push_back(std::move(wide));
        return {};
    }

    // One file tensor [E, N, K] holds all experts.
    Status bind_stacked_expert(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                               std::int64_t expert, std::vector<ops::WeightPart>& parts) {
        LR_TRY_ASSIGN(const StoredMatrix matrix, matrices_.matrix(stored.front(), expert));
        for (const model::RowRange& rows : model::local_rows(entry, shard_))
            append_parts(matrix, rows.first, rows.rows, model::local_columns(entry, shard_), parts);
        return {};
    }

    // Each expert has tensors of its own; blocks of the entry run through them in order.
    Status bind_expert(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                       std::int64_t expert, std::vector<ops::WeightPart>& parts) {
        const auto per_expert = static_cast<std::int64_t>(entry.per_expert.size());
        for (const model::RowRange& rows : model::local_rows(entry, shard_)) {
            std::int64_t first = rows.first, left = rows.rows;
            for (std::int64_t t = 0; t < per_expert && left > 0; ++t) {
                const StoredWeight& source =
                    stored[static_cast<std::size_t>(expert * per_expert + t)];
                const std::int64_t height = source.shape[0];
                if (first >= height) {
                    first -= height;
                    continue;
                }
                const std::int64_t count = std::min(left, height - first);
                LR_TRY_ASSIGN(const StoredMatrix matrix, matrices_.matrix(source));
                append_parts(matrix, first, count, model::local_columns(entry, shard_), parts);
                left -= count;
                first = 0;
            }
            LR_CHECK_EQ(left, 0);
        }
        return {};
    }

    const model::OpenModel& opened_;
    model::Shard shard_;
    StoredMatrices matrices_;
    Weights out_;
};

Result<Weights> Weights::bind(const model::OpenModel& opened, const model::Shard& shard) {
    return WeightBinder(opened, shard).run();
}

// One task an entry's weight: scales of one are few megabytes at most, those of all are a sixteenth
// of an NVFP4 file.
Result<checkpoint::ScaleCounts> check_scales(const model::OpenModel& opened, ThreadPool& pool) {
    LR_TRY(opened.checkpoint->still_intact());
    std::vector<const StoredWeight*> weights;
    for (const auto& stored : opened.resolved.stored)
        for (const StoredWeight& weight : stored)
            if (weight.format != checkpoint::StoredFormat::kPlain)
                weights.push_back(&weight);
    checkpoint::ScaleCounts total;
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, Status>> failures;
    pool.parallel_for(std::ssize(weights), 1, [&](std::int64_t begin, std::int64_t end) {
        checkpoint::ScaleCounts counts;
        std::vector<std::pair<std::int64_t, Status>> failed;
        for (std::int64_t i = begin; i < end; ++i)
            if (Status status =
                    checkpoint::check_scales(*weights[static_cast<std::size_t>(i)], counts);
                !status.ok())
                failed.emplace_back(i, std::move(status));
        const std::lock_guard lock(mutex);
        total.scales += counts.scales;
        total.zeros += counts.zeros;
        total.bytes += counts.bytes;
        for (auto& failure : failed)
            failures.push_back(std::move(failure));
    });
    LR_TRY(opened.checkpoint->still_intact());
    if (failures.empty())
        return total;
    const auto first = std::min_element(failures.begin(), failures.end(),
                                        [](auto& a, auto& b) { return a.first < b.first; });
    return fail(first->second.with_context(opened.folder));
}

} // namespace lr::engine
