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

    // `merges` in order of rank, each (left, right) once; every byte is a searchable token of the
    // vocabulary. ignore_merges: a word that is a token is that token, whatever the rules say.
    BytePairEncoder(Vocabulary vocabulary, const std::vector<MergeRule>& merges,
                    bool ignore_merges);

    const Vocabulary& vocabulary() const { return vocabulary_; }

    // Appends the ids of the word, which has 1 to 2^32 - 2 bytes. Safe to call from many threads.
    // `hash` is hash_bytes(word).
    void encode(std::string_view word, std::uint64_t hash, Scratch& scratch,
                std::vector<std::int32_t>& ids) const;

  private:
    struct Slot {           // open addressing with linear probing, at most half full
        std::uint64_t pair; // left << 32 | right
        std::uint32_t rank; // kNone: free
        std::int32_t result;
    };
    // Whether the rules make of a token's bytes that one token. Found out on first use: a race
    // writes the same answer twice.
    enum class Whole : std::uint8_t { kUnknown, kYes, kNo };

    const Slot* find_rule(std::int32_t left, std::int32_t right) const;
    void merge(std::string_view word, Scratch& scratch, std::vector<std::int32_t>& ids) const;
    void rank_pair(Scratch& scratch, std::uint32_t symbol) const;

    Vocabulary vocabulary_;
    bool ignore_merges_;
    std::array<std::int32_t, 256> byte_ids_{};
    std::vector<Slot> slots_;                     // a power of two
    std::unique_ptr<std::atomic<Whole>[]> whole_; // [vocabulary size]
};

} // namespace lr::text
