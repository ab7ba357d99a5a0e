// SPDX-License-Identifier: Apache-2.0
//
// engine/state.h: what sequences keep between steps: GDN slots and KV pages.
//
// A slot holds, for every GDN layer, the convolution's last inputs and the matrix state, and for
// the penalties a count of each token of the vocabulary; a page holds 64 tokens of keys and values
// of every attention layer. Both are handed out as numbers; -1 is padding. A slot is zeroed before
// its first step. Pages are not: a row reads only what its sequence wrote.
#pragma once

#include "engine/memory.h"
#include "graph/step.h"

#include <memory>
#include <span>
#include <vector>

namespace lr::engine {

struct StateSizes {
    std::int64_t slots = 0;
    std::int64_t kv_pages = 0;
    std::int64_t slot_bytes = 0; // of one slot, all layers
    std::int64_t page_bytes = 0; // of one page, all layers
    std::int64_t total_bytes() const { return slots * slot_bytes + kv_pages * page_bytes; }
};

class StateStore {
  public:
    // Memory for every state tensor of the step (all steps of one engine agree on them). The second
    // form is the host's.
    static Result<StateStore> allocate(const graph::Step& step, std::shared_ptr<Memory> memory);
    static Result<StateStore> allocate(const graph::Step& step);

    // The memory of a state that the layer has (checked).
    std::byte* data(std::int32_t layer, graph::StateKind kind) const;
    const StateSizes& sizes() const { return sizes_; }

    // A slot (its memory is zeroed by zero_slot before its first step), or kResourceExhausted.
    Result<std::int32_t> take_slot();
    void give_slot(std::int32_t slot);
    // Enough pages that `pages` covers `tokens`; on an error `pages` is as before.
    Status grow_pages(std::vector<std::int32_t>& pages, std::int64_t tokens);
    void give_pages(std::vector<std::int32_t>& pages);

    std::int64_t free_slots() const { return static_cast<std::int64_t>(free_slots_.size()); }
    std::int64_t free_pages() const { return static_cast<std::int64_t>(free_pages_.size()); }

    // Zeroes a slot's memory. The owner of the memory calls it when no step that uses the slot
    // runs.
    Status zero_slot(std::int32_t slot);

    // Copies a slot and as many pages as `to_pages` has. When: as zero_slot.
    Status copy(std::int32_t from_slot, std::int32_t to_slot,
                std::span<const std::int32_t> from_pages, std::span<const std::int32_t> to_pages);

    // A copy of one layer's state: the slot's, or the tokens [0, length) that `pages` hold.
    // kInvalidArgument when the layer has no such state.
    Result<std::vector<std::byte>> read(std::int32_t layer, graph::StateKind kind,
                                        std::int32_t slot, std::span<const std::int32_t> pages,
                                        std::int64_t length) const;

  private:
    struct Block {
        std::int32_t layer;
        graph::StateKind kind;
        std::int64_t unit_bytes; // of one slot or page
        std::unique_ptr<Region> memory;
    };
    const Block* find(std::int32_t layer, graph::StateKind kind) const;

    std::shared_ptr<Memory> memory_;
    std::vector<Block> blocks_;
    StateSizes sizes_;
    std::vector<std::int32_t> free_slots_, free_pages_;
};

} // namespace lr::engine
