// SPDX-License-Identifier: Apache-2.0
//
// text/vocabulary.h: token ids and their bytes, in both directions. Immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lr::text {

std::uint64_t hash_bytes(std::string_view bytes);

struct VocabularyToken {
    std::string_view bytes;  // "" where no token has this id
    bool searchable = false; // whether find() may return it
};

class Vocabulary {
  public:
    Vocabulary() = default;
    // The bytes are copied. Searchable tokens must differ in them: see repeated().
    explicit Vocabulary(const std::vector<VocabularyToken>& by_id);

    // A searchable token that has the bytes of one before it; -1: none, as it must be.
    std::int32_t repeated() const { return repeated_; }

    // The highest id + 1.
    std::int32_t size() const { return static_cast<std::int32_t>(begin_.size()) - 1; }
    // "" for an id without a token, also for a negative or a too large one.
    std::string_view bytes(std::int32_t id) const;
    // The searchable token with exactly these bytes, -1 if there is none.
    std::int32_t find(std::string_view bytes) const { return find(bytes, hash_bytes(bytes)); }
    std::int32_t find(std::string_view bytes, std::uint64_t hash) const;
    // Brings what find() will read first into the cache.
    void prefetch(std::uint64_t hash) const {
        __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    }

  private:
    struct Slot {              // open addressing with linear probing, at most half full
        std::uint32_t tag = 0; // the hash's upper half
        std::int32_t id = -1;  // -1: free
    };

    void index(std::int32_t id, std::uint64_t hash);

    std::string arena_;                    // all tokens' bytes, one after the other
    std::vector<std::uint32_t> begin_{0u}; // [size + 1] offsets into arena_
    std::vector<Slot> slots_{Slot{}};      // a power of two
    std::int32_t repeated_ = -1;
};

} // namespace lr::text
