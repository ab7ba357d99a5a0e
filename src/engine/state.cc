// SPDX-License-Identifier: Apache-2.0
#include "engine/state.h"

#include "core/check.h"

#include <algorithm>

namespace lr::engine {
namespace {

bool per_slot(graph::StateKind kind) {
    return kind != graph::StateKind::kKeys && kind != graph::StateKind::kValues;
}

// Descending, so that the lowest number is handed out first.
std::vector<std::int32_t> all_free(std::int64_t count) {
    std::vector<std::int32_t> numbers;
    for (std::int64_t i = count - 1; i >= 0; --i)
        numbers.push_back(static_cast<std::int32_t>(i));
    return numbers;
}

} // namespace

Result<StateStore> StateStore::allocate(const graph::Step& step) {
    return allocate(step, std::make_shared<HostMemory>());
}

Result<StateStore> StateStore::allocate(const graph::Step& step, std::shared_ptr<Memory> memory) {
    StateStore store;
    store.memory_ = std::move(memory);
    store.sizes_.slots = step.shape.slots;
    store.sizes_.kv_pages = step.shape.kv_pages;
    for (const graph::Tensor& tensor : step.tensors) {
        if (tensor.role != graph::Role::kState)
            continue;
        LR_TRY_ASSIGN(auto region, store.memory_->allocate(tensor.bytes(), tensor.name));
        LR_TRY(store.memory_->zero(region->data(), tensor.bytes()));
        const std::int64_t unit = tensor.bytes() / tensor.shape[0];
        (per_slot(tensor.state) ? store.sizes_.slot_bytes : store.sizes_.page_bytes) += unit;
        store.blocks_.push_back({tensor.layer, tensor.state, unit, std::move(region)});
    }
    store.free_slots_ = all_free(store.sizes_.slots);
    store.free_pages_ = all_free(store.sizes_.kv_pages);
    return store;
}

const StateStore::Block* StateStore::find(std::int32_t layer, graph::StateKind kind) const {
    for (const Block& block : blocks_)
        if (block.layer == layer && block.kind == kind)
            return &block;
    return nullptr;
}

std::byte* StateStore::data(std::int32_t layer, graph::StateKind kind) const {
    const Block* block = find(layer, kind);
    LR_CHECK(block != nullptr);
    return block->memory->data();
}

Result<std::vector<std::byte>> StateStore::read(std::int32_t layer, graph::StateKind kind,
                                                std::int32_t slot,
                                                std::span<const std::int32_t> pages,
                                                std::int64_t length) const {
    const Block* block = find(layer, kind);
    if (!block)
        return fail(Code::kInvalidArgument, "layer {}: it keeps no state of this kind", layer);
    const std::byte* const memory = block->memory->data();
    if (per_slot(kind)) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(block->unit_bytes));
        LR_TRY(memory_->copy_out(bytes, memory + slot * block->unit_bytes));
        return bytes;
    }
    const std::int64_t token_bytes = block->unit_bytes / ops::kKvPage;
    std::vector<std::byte> tokens(static_cast<std::size_t>(length * token_bytes));
    for (std::int64_t first = 0; first < length; first += ops::kKvPage) {
        const std::int64_t page = pages[static_cast<std::size_t>(first / ops::kKvPage)];
        const std::int64_t count = std::min(ops::kKvPage, length - first);
        LR_TRY(memory_->copy_out(
            std::span(tokens).subspan(static_cast<std::size_t>(first * token_bytes),
                                      static_cast<std::size_t>(count * token_bytes)),
            memory + page * block->unit_bytes));
    }
    return tokens;
}

Result<std::int32_t> StateStore::take_slot() {
    if (free_slots_.empty())
        return fail(Code::kResourceExhausted,
                    "sequences: all {} slots are in use; close one or load with more",
                    sizes_.slots);
    const std::int32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
}

void StateStore::give_slot(std::int32_t slot) {
    free_slots_.push_back(slot);
}

Status StateStore::zero_slot(std::int32_t slot) {
    for (const Block& block : blocks_)
        if (per_slot(block.kind))
            LR_TRY(memory_->zero(block.memory->data() + slot * block.unit_bytes, block.unit_bytes));
    return {};
}

Status StateStore::copy(std::int32_t from_slot, std::int32_t to_slot,
                        std::span<const std::int32_t> from_pages,
                        std::span<const std::int32_t> to_pages) {
    LR_CHECK_LE(to_pages.size(), from_pages.size());
    for (const Block& block : blocks_) {
        const auto copy_unit = [&](std::int64_t from, std::int64_t to) {
            return memory_->copy(block.memory->data() + to * block.unit_bytes,
                                 block.memory->data() + from * block.unit_bytes, block.unit_bytes);
        };
        if (per_slot(block.kind)) {
            LR_TRY(copy_unit(from_slot, to_slot));
            continue;
        }
        for (std::size_t i = 0; i < to_pages.size(); ++i)
            LR_TRY(copy_unit(from_pages[i], to_pages[i]));
    }
    return {};
}

Status StateStore::grow_pages(std::vector<std::int32_t>& pages, std::int64_t tokens) {
    const std::int64_t needed = (tokens + ops::kKvPage - 1) / ops::kKvPage;
    const std::int64_t more = needed - static_cast<std::int64_t>(pages.size());
    if (more > free_pages())
        return fail(Code::kResourceExhausted,
                    "KV cache: {} more pages of {} tokens are needed, {} of {} are free", more,
                    ops::kKvPage, free_pages(), sizes_.kv_pages);
    for (std::int64_t i = 0; i < more; ++i) {
        pages.push_back(free_pages_.back());
        free_pages_.pop_back();
    }
    return {};
}

void StateStore::give_pages(std::vector<std::int32_t>& pages) {
    free_pages_.insert(free_pages_.end(), pages.rbegin(), pages.rend());
    pages.clear();
}

} // namespace lr::engine
