// SPDX-License-Identifier: Apache-2.0
#include "engine/batch.h"

#include "core/check.h"

#include <algorithm>
#include <cstring>

namespace lr::engine {

using graph::Input;

InputBlock::InputBlock(const graph::Step& step) : step_(step) {
    offset_.fill(-1);
    for (std::size_t i = 0; i < offset_.size(); ++i) {
        const graph::TensorId id = step.inputs[i];
        if (id < 0)
            continue;
        offset_[i] = bytes_;
        bytes_ += (step.tensors[static_cast<std::size_t>(id)].bytes() + 63) / 64 * 64;
    }
}

// Fills one block, piece by piece.
class InputBlock::Writer {
  public:
    Writer(const InputBlock& layout, std::byte* block) : layout_(layout), block_(block) {
        std::memset(block, 0, static_cast<std::size_t>(layout.bytes_));
        for (Input which : {Input::kSlot, Input::kRowSequence, Input::kLogitRows})
            fill_minus_one<std::int32_t>(which);
        fill_minus_one<std::int64_t>(Input::kKvSlot);
        prefill_ = layout.step_.shape.phase == graph::Phase::kPrefill;
    }

    LogitRange add(const BatchPiece& piece) {
        LR_CHECK(!piece.tokens.empty() && (prefill_ || piece.tokens.size() == 1));
        LR_CHECK_LT(sequence_, layout_.step_.shape.sequences);
        const std::int64_t first_row = row_;
        for (std::int32_t token : piece.tokens)
            add_row(piece, token, piece.position + row_ - first_row);
        const std::int64_t table = layout_.step_.shape.pages_per_sequence();
        const auto pages = std::min<std::int64_t>(table, std::ssize(piece.pages));
        for (std::int64_t i = 0; i < pages; ++i)
            put<std::int32_t>(Input::kPageTable, sequence_ * table + i,
                              piece.pages[static_cast<std::size_t>(i)]);
        put<std::int32_t>(Input::kSlot, sequence_, piece.slot);
        if (prefill_)
            add_chunks(piece, first_row);
        ++sequence_;
        return add_logits(piece, first_row);
    }

    void close() {
        put<std::int32_t>(Input::kLiveRows, 0, static_cast<std::int32_t>(row_));
        put<std::int32_t>(Input::kLiveLogits, 0, static_cast<std::int32_t>(logit_));
        if (!prefill_)
            return;
        for (std::int64_t s = sequence_; s <= layout_.step_.shape.sequences; ++s) {
            put<std::int32_t>(Input::kCuSeqlens, s, static_cast<std::int32_t>(row_));
            put<std::int32_t>(Input::kSeqChunk, s, static_cast<std::int32_t>(chunk_));
        }
    }

  private:
    template <typename T> T* at(Input which) {
        const std::int64_t offset = layout_.offset(which);
        return offset < 0 ? nullptr : reinterpret_cast<T*>(block_ + offset);
    }
    std::int64_t count(Input which) const {
        return layout_.step_.tensors[static_cast<std::size_t>(layout_.step_.input(which))]
            .shape.count();
    }
    template <typename T> void put(Input which, std::int64_t index, T value) {
        if (T* data = at<T>(which)) {
            LR_CHECK_LT(index, count(which));
            data[index] = value;
        }
    }
    template <typename T> void fill_minus_one(Input which) {
        if (T* data = at<T>(which))
            std::fill_n(data, count(which), T{-1});
    }

    void add_row(const BatchPiece& piece, std::int32_t token, std::int64_t position) {
        const auto page = static_cast<std::size_t>(position / ops::kKvPage);
        LR_CHECK_LT(page, piece.pages.size());
        put<std::int32_t>(Input::kTokenIds, row_, token);
        put<std::int32_t>(Input::kPositions, row_, static_cast<std::int32_t>(position));
        put<std::int32_t>(Input::kRowSequence, row_, static_cast<std::int32_t>(sequence_));
        put<std::int64_t>(Input::kKvSlot, row_,
                          piece.pages[page] * ops::kKvPage + position % ops::kKvPage);
        ++row_;
    }

    void add_chunks(const BatchPiece& piece, std::int64_t first_row) {
        put<std::int32_t>(Input::kCuSeqlens, sequence_, static_cast<std::int32_t>(first_row));
        put<std::int32_t>(Input::kSeqChunk, sequence_, static_cast<std::int32_t>(chunk_));
        put<std::int32_t>(Input::kPrefixLen, sequence_, static_cast<std::int32_t>(piece.position));
        for (std::int64_t row = first_row; row < row_; row += ops::kGdnChunk) {
            put<std::int32_t>(Input::kChunkRow, chunk_, static_cast<std::int32_t>(row));
            put<std::int32_t>(Input::kChunkLen, chunk_,
                              static_cast<std::int32_t>(std::min(ops::kGdnChunk, row_ - row)));
            ++chunk_;
        }
    }

    LogitRange add_logits(const BatchPiece& piece, std::int64_t first_row) {
        const LogitRange range{logit_, piece.logits == Logits::kNone   ? 0
                                       : piece.logits == Logits::kLast ? 1
                                                                       : row_ - first_row};
        for (std::int64_t i = 0; i < range.count; ++i) {
            const std::int64_t row = row_ - range.count + i;
            put<std::int32_t>(Input::kLogitRows, logit_, static_cast<std::int32_t>(row));
            put<float>(Input::kTemperature, logit_, piece.temperature);
            put<std::int64_t>(Input::kSeed, logit_, static_cast<std::int64_t>(piece.seed));
            // The token drawn from row r of a sequence takes the position after it.
            put<std::int32_t>(Input::kDrawPosition, logit_,
                              static_cast<std::int32_t>(piece.position + row - first_row + 1));
            ++logit_;
        }
        return range;
    }

    const InputBlock& layout_;
    std::byte* block_;
    bool prefill_ = false;
    std::int64_t row_ = 0, sequence_ = 0, chunk_ = 0, logit_ = 0;
};

std::vector<LogitRange> InputBlock::fill(std::byte* block,
                                         std::span<const BatchPiece> pieces) const {
    Writer writer(*this, block);
    std::vector<LogitRange> ranges;
    ranges.reserve(pieces.size());
    for (const BatchPiece& piece : pieces)
        ranges.push_back(writer.add(piece));
    writer.close();
    return ranges;
}

} // namespace lr::engine
