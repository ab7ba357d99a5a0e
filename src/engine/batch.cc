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

    LogitRange add(const BatchPiece& in) {
        const std::int64_t rows = in.piece.rows(), first_row = row_;
        LR_CHECK(prefill_ ? !in.piece.tokens.empty() : rows == 1);
        LR_CHECK_LT(sequence_, layout_.step_.shape.sequences);
        for (std::int64_t i = 0; i < rows; ++i)
            add_row(in, i);
        const std::int64_t table = layout_.step_.shape.pages_per_sequence();
        const auto pages = std::min<std::int64_t>(table, std::ssize(in.pages));
        for (std::int64_t i = 0; i < pages; ++i)
            put<std::int32_t>(Input::kPageTable, sequence_ * table + i,
                              in.pages[static_cast<std::size_t>(i)]);
        put<std::int32_t>(Input::kSlot, sequence_, in.slot);
        if (prefill_)
            add_chunks(in, first_row);
        ++sequence_;
        return add_logits(in, first_row);
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

    void add_row(const BatchPiece& in, std::int64_t index) {
        const std::int64_t position = in.position + index;
        const auto page = static_cast<std::size_t>(position / ops::kKvPage);
        LR_CHECK_LT(page, in.pages.size());
        const auto& tokens = in.piece.tokens;
        if (!tokens.empty())
            put<std::int32_t>(Input::kTokenIds, row_, tokens[static_cast<std::size_t>(index)]);
        const std::int64_t rows = in.piece.rows();
        const std::int64_t generated = in.piece.generated_tokens.value_or(prefill_ ? 0 : rows);
        put<std::int32_t>(Input::kGenerated, row_, index >= rows - generated ? 1 : 0);
        put<std::int32_t>(Input::kPositions, row_, static_cast<std::int32_t>(position));
        put<std::int32_t>(Input::kRowSequence, row_, static_cast<std::int32_t>(sequence_));
        put<std::int64_t>(Input::kKvSlot, row_,
                          in.pages[page] * ops::kKvPage + position % ops::kKvPage);
        ++row_;
    }

    void add_chunks(const BatchPiece& in, std::int64_t first_row) {
        put<std::int32_t>(Input::kCuSeqlens, sequence_, static_cast<std::int32_t>(first_row));
        put<std::int32_t>(Input::kSeqChunk, sequence_, static_cast<std::int32_t>(chunk_));
        put<std::int32_t>(Input::kPrefixLen, sequence_, static_cast<std::int32_t>(in.position));
        for (std::int64_t row = first_row; row < row_; row += ops::kGdnChunk) {
            put<std::int32_t>(Input::kChunkRow, chunk_, static_cast<std::int32_t>(row));
            put<std::int32_t>(Input::kChunkLen, chunk_,
                              static_cast<std::int32_t>(std::min(ops::kGdnChunk, row_ - row)));
            ++chunk_;
        }
    }

    // The rows with logits, in order; the choices beyond the first repeat the last.
    LogitRange add_logits(const BatchPiece& in, std::int64_t first_row) {
        const Piece& piece = in.piece;
        const LogitRange range{logit_, piece.logit_rows()};
        if (range.count == 0)
            return range;
        const std::int32_t first_bias = bias_;
        add_biases(piece.sampling.bias);
        const std::int64_t rows = range.count - (piece.choices - 1);
        for (std::int64_t i = 0; i < range.count; ++i) {
            const std::int64_t row = row_ - rows + std::min(i, rows - 1);
            const std::int64_t choice = std::max<std::int64_t>(0, i - (rows - 1));
            put<std::int32_t>(Input::kLogitRows, logit_, static_cast<std::int32_t>(row));
            // The token drawn from row r of a sequence takes the position after it.
            put<std::int32_t>(Input::kDrawPosition, logit_,
                              static_cast<std::int32_t>(in.position + row - first_row + 1));
            put<std::int32_t>(Input::kCountSlot, logit_, row == row_ - 1 ? in.slot : -1);
            put<std::int32_t>(Input::kBiasRange, 2 * logit_, first_bias);
            put<std::int32_t>(Input::kBiasRange, 2 * logit_ + 1, bias_);
            add_sampling(piece.sampling, static_cast<std::int32_t>(choice));
            add_logprobs(piece.logprobs, static_cast<std::size_t>(i));
            ++logit_;
        }
        return range;
    }

    void add_biases(const std::vector<LogitBias>& biases) {
        for (const LogitBias& entry : biases) {
            put<std::int32_t>(Input::kBiasId, bias_, entry.id);
            put<float>(Input::kBiasValue, bias_, entry.bias);
            ++bias_;
        }
    }

    void add_sampling(const Sampling& sampling, std::int32_t choice) {
        put<float>(Input::kTemperature, logit_, sampling.temperature);
        put<std::int32_t>(Input::kTopK, logit_, sampling.top_k);
        put<float>(Input::kTopP, logit_, sampling.top_p);
        put<float>(Input::kMinP, logit_, sampling.min_p);
        put<float>(Input::kRepetition, logit_, sampling.repetition);
        put<float>(Input::kFrequency, logit_, sampling.frequency);
        put<float>(Input::kPresence, logit_, sampling.presence);
        put<std::int64_t>(Input::kSeed, logit_, static_cast<std::int64_t>(sampling.seed));
        put<std::int32_t>(Input::kStream, logit_, sampling.stream + choice);
    }

    void add_logprobs(const LogprobWish& wish, std::size_t index) {
        put<std::int32_t>(Input::kLogprobWanted, logit_, wish.top);
        put<std::int32_t>(Input::kLogprobTarget, logit_,
                          wish.targets.empty() ? -1 : wish.targets[index]);
    }

    const InputBlock& layout_;
    std::byte* block_;
    bool prefill_ = false;
    std::int64_t row_ = 0, sequence_ = 0, chunk_ = 0, logit_ = 0;
    std::int32_t bias_ = 0;
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
