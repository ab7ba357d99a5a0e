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
    std::string bytes;       // "" where no token has this id
    bool searchable = false; // whether find() may return it; such tokens differ in their bytes
};

class Vocabulary {
  public:
    Vocabulary() = default;
    explicit Vocabulary(const std::vector<VocabularyToken>& by_id);

    // The highest id + 1.
    std::int32_t size() const { return static_cast<std::int32_t>(begin_.size()) - 1; }
    // "" for an id without a token, also for a negative or a too large one.
    std::string_view bytes(std::int32_t id) const;
    // The searchable token with exactly these bytes, -1 if there is none.
    std::int32_t find(std::string_view bytes) const { return find(bytes, hash_bytes(bytes)); }
    std::int32_t find(std::string_view bytes, std::uint64_t hash) const;

  private:
    struct Slot {              // open addressing with linear probing, at most half full
        std::uint32_t tag = 0; // the hash's upper half
        std::int32_t id = -1;  // -1: free
    };

    std::string arena_;                    // all tokens' bytes, one after the other
    std::vector<std::uint32_t> begin_{0u}; // [size + 1] offsets into arena_
    std::vector<Slot> slots_{Slot{}};      // a power of two
};

} // namespace lr::text
