// SPDX-License-Identifier: Apache-2.0
//
// engine/batch.h: from sequences to the device data of one step.
//
// Rows are packed in the order of the pieces; what is left of the bucket is padding: n_live rows
// are live, slots, KV slots, row sequences and logit rows beyond are -1, unused sequences repeat
// the last offset, unused chunks have length 0.
#pragma once

#include "engine/piece.h"
#include "graph/step.h"

#include <cstddef>
#include <span>
#include <vector>

namespace lr::engine {

// A piece that has passed its check, and where its sequence stands.
struct BatchPiece {
    const Piece& piece;
    std::int64_t position = 0; // of the first token: tokens already in the state
    std::int32_t slot = -1;
    std::span<const std::int32_t> pages; // cover position + rows
};

// Rows of the logits output that belong to a piece: [first, first + count).
struct LogitRange {
    std::int64_t first = 0, count = 0;
};

// One step's inputs in one block of memory, laid out by the step.
class InputBlock {
  public:
    explicit InputBlock(const graph::Step& step);

    std::int64_t bytes() const { return bytes_; }
    std::int64_t offset(graph::Input which) const {
        return offset_[static_cast<std::size_t>(which)];
    }

    // Writes `bytes()` bytes at `block` (8-byte aligned). The pieces fit the step (checked). The
    // token drawn last, where a piece has none of its own, is left 0.
    std::vector<LogitRange> fill(std::byte* block, std::span<const BatchPiece> pieces) const;

  private:
    class Writer;
    const graph::Step& step_;
    std::array<std::int64_t, static_cast<std::size_t>(graph::Input::kCount)> offset_{};
    std::int64_t bytes_ = 0;
};

} // namespace lr::engine
