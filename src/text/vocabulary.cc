// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace lr::text {

namespace {

std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32);
}

} // namespace

// Eight bytes a step, multiplied by an odd constant (2^64 over the golden ratio) and folded.
std::uint64_t hash_bytes(std::string_view bytes) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;
    std::uint64_t hash = bytes.size() * kFactor;
    const auto mix = [&](std::uint64_t chunk) {
        hash = (hash ^ chunk) * kFactor;
        hash ^= hash >> 29;
    };
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
        std::uint64_t chunk;
        std::memcpy(&chunk, bytes.data() + at, 8);
        mix(chunk);
    }
    if (at < bytes.size()) {
        std::uint64_t chunk = 0;
        std::memcpy(&chunk, bytes.data() + at, bytes.size() - at);
        mix(chunk);
    }
    return hash ^ hash >> 32;
}

Vocabulary::Vocabulary(const std::vector<VocabularyToken>& by_id) {
    LR_CHECK_LT(by_id.size(), std::size_t{std::numeric_limits<std::int32_t>::max()});
    std::size_t arena_bytes = 0;
    std::size_t searchable = 0;
    for (const VocabularyToken& token : by_id) {
        arena_bytes += token.bytes.size();
        searchable += token.searchable;
    }
    LR_CHECK_LE(arena_bytes, std::numeric_limits<std::uint32_t>::max());
    arena_.reserve(arena_bytes);
    begin_.reserve(by_id.size() + 1);
    slots_.assign(std::bit_ceil(2 * searchable + 1), Slot{});
    for (const VocabularyToken& token : by_id) {
        arena_ += token.bytes;
        begin_.push_back(static_cast<std::uint32_t>(arena_.size()));
    }
    // Block by block: the table is larger than the caches, so each block's slots are fetched ahead.
    constexpr std::size_t kBlock = 32;
    std::array<std::uint64_t, kBlock> hashes;
    for (std::size_t first = 0; first < by_id.size(); first += kBlock) {
        const std::size_t count = std::min(kBlock, by_id.size() - first);
        for (std::size_t i = 0; i < count; ++i) {
            hashes[i] = hash_bytes(by_id[first + i].bytes);
            prefetch(hashes[i]);
        }
        for (std::size_t i = 0; i < count; ++i)
            if (by_id[first + i].searchable)
                index(static_cast<std::int32_t>(first + i), hashes[i]);
    }
}

void Vocabulary::index(std::int32_t id, std::uint64_t hash) {
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot].id >= 0; slot = (slot + 1) & (slots_.size() - 1))
        if (slots_[slot].tag == tag_of(hash) && bytes(slots_[slot].id) == bytes(id))
            repeated_ = id;
    slots_[slot] = {tag_of(hash), id};
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
    if (id < 0 || id >= size())
        return {};
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(arena_).substr(begin_[i], begin_[i + 1] - begin_[i]);
}

std::int32_t Vocabulary::find(std::string_view wanted, std::uint64_t hash) const {
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot].id >= 0; slot = (slot + 1) & (slots_.size() - 1))
        if (slots_[slot].tag == tag_of(hash) && bytes(slots_[slot].id) == wanted)
            return slots_[slot].id;
    return -1;
}

} // namespace lr::text
