// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include "core/check.h"

#include <cstring>

namespace lr::engine {

using checkpoint::StoredWeight;
using checkpoint::TensorInfo;

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
        return std::move(out_);
    }

  private:
    Status bind_entry(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                      std::vector<ops::WeightPart>& parts) {
        if (entry.kind != model::TensorKind::kRouted)
            return bind_matrix(entry, stored, parts);
        const std::int64_t local = entry.shape[0] / shard_.ep;
        for (std::int64_t e = shard_.ep_rank * local; e < (shard_.ep_rank + 1) * local; ++e)
            LR_TRY(entry.stored_per_expert ? bind_expert(entry, stored, e, parts)
                                           : bind_stacked_expert(entry, stored, e, parts));
        return {};
    }

    Status bind_matrix(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                       std::vector<ops::WeightPart>& parts) {
        for (const model::RowRange& rows : model::local_rows(entry, shard_)) {
            const StoredWeight& source = stored[static_cast<std::size_t>(rows.source)];
            LR_TRY_ASSIGN(const ConstView whole, matrix_of(source));
            LR_TRY(add_part(entry, source, whole, rows.first, rows.rows, parts));
        }
        return {};
    }

    // One file tensor [E, N, K] holds all experts.
    Status bind_stacked_expert(const model::Entry& entry, const std::vector<StoredWeight>& stored,
                               std::int64_t expert, std::vector<ops::WeightPart>& parts) {
        const StoredWeight& source = stored.front();
        LR_TRY_ASSIGN(const ConstView stack, aligned_view(*source.weight));
        const ConstView matrix{stack.row(expert), stack.dtype, {stack.shape[1], stack.shape[2]}};
        for (const model::RowRange& rows : model::local_rows(entry, shard_))
            LR_TRY(add_part(entry, source, matrix, rows.first, rows.rows, parts));
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
                LR_TRY_ASSIGN(const ConstView whole, matrix_of(source));
                LR_TRY(add_part(entry, source, whole, first, count, parts));
                left -= count;
                first = 0;
            }
            LR_CHECK_EQ(left, 0);
        }
        return {};
    }

    Status add_part(const model::Entry& entry, const StoredWeight& source, ConstView whole,
                    std::int64_t first, std::int64_t rows, std::vector<ops::WeightPart>& parts) {
        const model::ColumnRange columns = model::local_columns(entry, shard_);
        ops::WeightPart part;
        part.data = whole.slice_rows(first, rows);
        if (part.data.shape.rank() == 2)
            part.data = part.data.slice_columns(columns.first, columns.count);
        if (source.scale) {
            LR_CHECK(entry.format == ops::WeightFormat::kFp8Block);
            LR_TRY_ASSIGN(const ConstView grid, aligned_view(*source.scale));
            part.scale = grid.slice_rows(first / 128, (rows + 127) / 128)
                             .slice_columns(columns.first / 128, (columns.count + 127) / 128);
            out_.bytes_ += part.scale.bytes();
        }
        out_.bytes_ += part.data.bytes();
        parts.push_back(part);
        return {};
    }

    // [N], [N, K] as stored; a convolution [C, 1, 4] as [C, 4].
    Result<ConstView> matrix_of(const StoredWeight& source) {
        LR_TRY_ASSIGN(ConstView view, aligned_view(*source.weight));
        if (view.shape.rank() == 3 && view.shape[1] == 1)
            view = {view.data, view.dtype, {view.shape[0], view.shape[2]}};
        return view;
    }

    // The tensor in place, or a copy where the file puts it at an odd address.
    Result<ConstView> aligned_view(const TensorInfo& tensor) {
        LR_TRY_ASSIGN(ConstView view, tensor.view());
        if (tensor.aligned())
            return view;
        for (const auto& [data, copy] : copied_)
            if (data == tensor.data)
                return ConstView{copy, view.dtype, view.shape};
        LR_TRY_ASSIGN(Buffer copy, Buffer::allocate(tensor.bytes, tensor.name));
        std::memcpy(copy.data(), tensor.data, static_cast<std::size_t>(tensor.bytes));
        LR_TRY(opened_.checkpoint->still_intact());
        copied_.emplace_back(tensor.data, copy.data());
        view.data = copy.data();
        out_.copies_.push_back(std::move(copy));
        return view;
    }

    const model::OpenModel& opened_;
    model::Shard shard_;
    Weights out_;
    std::vector<std::pair<const std::byte*, const std::byte*>> copied_;
};

Result<Weights> Weights::bind(const model::OpenModel& opened, const model::Shard& shard) {
    return WeightBinder(opened, shard).run();
}

} // namespace lr::engine
