// SPDX-License-Identifier: Apache-2.0
//
// text/added_tokens.h: tokens that are found in the text as they stand, before it is split into
// words: control tokens like <|im_end|> (special) and others like <think> (not special).
#pragma once

#include "text/marked_text.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::text {

struct AddedToken {
    std::int32_t id = -1;
    std::string content;      // valid UTF-8, not empty
    bool special = false;     // a control token: decoding may skip it, encoding may not know it
    bool lstrip = false;      // takes the white space before it along
    bool rstrip = false;      // and behind it
    bool normalized = false;  // looked for in the normalised text (and normalised itself)
    bool single_word = false; // only where no word character (\w) stands beside it
};

// Finds tokens in a text: from left to right, the longest that begins at a place, without overlap.
class AddedTokenMatcher {
  public:
    struct Piece {
        std::int32_t id; // -1: text between tokens
        std::size_t begin, end;
    };

    AddedTokenMatcher() = default;
    // Contents are distinct.
    explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

    // The text in pieces, empty ones left out. A match of a special token stays text unless
    // allow_special, one of another token unless allow_ordinary. No token has a byte of the ranges
    // `outside` (as in MarkedText) in it: tokens are looked for between them, as if they were ends
    // of the text, but for single_word, which looks at the character that is really there.
    std::vector<Piece> split(std::string_view text, bool allow_special, bool allow_ordinary,
                             std::span<const ByteRange> outside = {}) const;

  private:
    struct Node {
        int token = -1; // index into tokens_ of the content that ends here
        std::vector<std::pair<unsigned char, int>> next;
    };
    int child(int node, unsigned char byte) const; // -1: none
    // The longest token that begins at `begin`, -1 if none does.
    int longest_at(std::string_view text, std::size_t begin) const;
    struct Splitting; // one call of split()
    void split_stretch(ByteRange stretch, Splitting& splitting) const;

    std::vector<AddedToken> tokens_;
    std::vector<Node> trie_;
    std::array<bool, 256> begins_token_{};
};

} // namespace lr::text
