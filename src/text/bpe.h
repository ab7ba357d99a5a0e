// SPDX-License-Identifier: Apache-2.0
//
// text/bpe.h: byte-pair merging of one word.
//
// A word begins as its bytes. While some neighbours have a merge rule, the pair whose rule ranks
// lowest, and of equal ones the leftmost, becomes one token. O(n log n) in the bytes of the word.
#pragma once

#include "text/vocabulary.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace lr::text {

struct MergeRule {
    std::int32_t left, right; // ids of neighbouring tokens
    std::int32_t result;      // id of the token with the bytes of both
};

// The rules by their pairs. Open addressing with linear probing, at most half full.
class MergeTable {
  public:
    struct Rule {
        std::uint64_t pair; // left << 32 | right
        std::uint32_t rank; // kFree: an unused slot
        std::int32_t result;
    };
    static constexpr std::uint32_t kFree = 0xFFFFFFFFu;

    explicit MergeTable(std::size_t most_rules = 0);

    // The rule that ranks behind all before it; false if its pair has one already.
    bool add(const MergeRule& rule);
    // Brings what add() and find() will read into the cache.
    void prefetch(std::int32_t left, std::int32_t right) const;
    // nullptr: none
    const Rule* find(std::int32_t left, std::int32_t right) const;

  private:
    std::size_t slot_of(std::uint64_t pair) const; // its own or the free one where it belongs

    std::vector<Rule> slots_; // a power of two
    std::uint32_t rules_ = 0;
};

class BytePairEncoder {
  public:
    // Room for one word, to be reused from word to word by one thread.
    class Scratch {
        friend class BytePairEncoder;
        struct Symbol {
            std::int32_t id;           // -1: merged into its left neighbour
            std::uint32_t rank;        // of the rule for this symbol and the next
            std::uint32_t left, right; // neighbours, kNone at the ends
        };
        std::vector<Symbol> symbols;
        std::vector<std::uint64_t> queue; // rank << 32 | symbol, a heap with the least on top
    };

    // Every byte is a searchable token of the vocabulary. ignore_merges: a word that is a token is
    // that token, whatever the rules say.
    BytePairEncoder(Vocabulary vocabulary, MergeTable merges, bool ignore_merges);

    const Vocabulary& vocabulary() const { return vocabulary_; }

    // Appends the ids of the word, which has 1 to 2^32 - 2 bytes. Safe to call from many threads.
    // `hash` is hash_bytes(word).
    void encode(std::string_view word, std::uint64_t hash, Scratch& scratch,
                std::vector<std::int32_t>& ids) const;

  private:
    // Whether the rules make of a token's bytes that one token. Found out on first use: a race
    // writes the same answer twice.
    enum class Whole : std::uint8_t { kUnknown, kYes, kNo };

    void merge(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& ids) const;
    void rank_pair(Scratch& scratch, std::uint32_t symbol) const;

    Vocabulary vocabulary_;
    bool ignore_merges_;
    std::array<std::int32_t, 256> byte_ids_{};
    MergeTable merges_;
    std::unique_ptr<std::atomic<Whole>[]> whole_; // [vocabulary size]
};

} // namespace lr::text
