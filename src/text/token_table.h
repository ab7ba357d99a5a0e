// SPDX-License-Identifier: Apache-2.0
//
// text/token_table.h: the two large parts of tokenizer.json, model.vocab and model.merges,
// collected entry by entry while the file is parsed: quarter of a million each, so no JSON values
// are built of them. What is wrong with an entry is kept and told when the part is asked for.
#pragma once

#include "core/json.h"
#include "core/status.h"
#include "text/bpe.h"
#include "text/vocabulary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace lr::text {

class TokenTable {
  public:
    // Ids index tables, so a hostile file must not choose their size freely.
    static constexpr std::int64_t kMaxId = (1 << 22) - 1;

    // `where` names the file, which has that many bytes.
    TokenTable(std::string_view where, std::size_t file_bytes);

    void take_vocab(std::string_view token, const Json& id);
    void take_merge(const Json& rule);

    // The first error in the vocabulary: no id, an id or a token twice.
    Status vocab_status() const { return vocab_status_; }
    // The ids of the tokens that are written like the contents; nullopt where there is none.
    std::vector<std::optional<std::int32_t>>
    ids_of(const std::vector<std::string_view>& contents) const;

    // A token of that id and content, which is added to the vocabulary (the id must be free, else
    // an error message is returned) or replaces what the id stands for.
    std::string add(std::int32_t id, std::string_view content);
    void replace(std::int32_t id, std::string_view content, bool special);

    // Tokens with a character outside the byte alphabet are not searchable: no text becomes them.
    Result<Vocabulary> vocabulary() const;
    // The rules in order of rank, each of two searchable tokens that make a third.
    Result<MergeTable> merges(const Vocabulary& vocabulary) const;

  private:
    struct Merge { // the bytes of two tokens, one behind the other
        const char* begin;
        std::uint32_t left_bytes, right_bytes;

        std::string_view left() const { return {begin, left_bytes}; }
        std::string_view right() const { return {begin + left_bytes, right_bytes}; }
        std::string_view both() const { return {begin, std::size_t{left_bytes} + right_bytes}; }
    };

    bool is_token(std::int32_t id, std::string_view bytes) const;
    std::string_view keep(std::string_view text);
    std::string_view keep_bytes(std::string_view token, bool& is_ordinary);
    void fail_vocab(std::string_view token, const Json& id, std::string_view message);
    Failure merge_failure(std::size_t rule, std::string_view message) const;

    std::string where_;
    std::string arena_;                   // never grows beyond what it reserved: views into it stay
    std::vector<VocabularyToken> tokens_; // by id
    std::unordered_set<std::string_view> foreign_; // tokens outside the byte alphabet
    Status vocab_status_;
    std::vector<Merge> merges_;
    Status merge_status_; // of the rule behind the last of merges_
};

} // namespace lr::text
