// SPDX-License-Identifier: Apache-2.0
#include "text/added_tokens.h"

#include "core/check.h"
#include "text/unicode.h"

#include <algorithm>

namespace lr::text {

namespace {

// Where the last character of text[0, end) begins; end > 0.
std::size_t last_begin(std::string_view text, std::size_t end) {
    do
        --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
    return end;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
    if (begin > 0 && is_word(step_utf8(text.substr(last_begin(text, begin))).code_point))
        return false;
    return end == text.size() || !is_word(step_utf8(text.substr(end)).code_point);
}

std::size_t white_space_begin(std::string_view text, std::size_t end) {
    while (end > 0) {
        const std::size_t begin = last_begin(text, end);
        if (!is_white_space(step_utf8(text.substr(begin)).code_point))
            break;
        end = begin;
    }
    return end;
}

std::size_t white_space_end(std::string_view text, std::size_t begin) {
    while (begin < text.size()) {
        const Utf8Step step = step_utf8(text.substr(begin));
        if (!is_white_space(step.code_point))
            break;
        begin += static_cast<std::size_t>(step.length);
    }
    return begin;
}

} // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    trie_.emplace_back();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        LR_CHECK(!tokens_[i].content.empty());
        int node = 0;
        for (char c : tokens_[i].content) {
            const auto byte = static_cast<unsigned char>(c);
            int next = child(node, byte);
            if (next < 0) {
                next = static_cast<int>(trie_.size());
                trie_[static_cast<std::size_t>(node)].next.emplace_back(byte, next);
                trie_.emplace_back();
            }
            node = next;
        }
        begins_token_[static_cast<unsigned char>(tokens_[i].content[0])] = true;
        LR_CHECK_EQ(trie_[static_cast<std::size_t>(node)].token, -1);
        trie_[static_cast<std::size_t>(node)].token = static_cast<int>(i);
    }
}

int AddedTokenMatcher::child(int node, unsigned char byte) const {
    for (const auto& [value, next] : trie_[static_cast<std::size_t>(node)].next)
        if (value == byte)
            return next;
    return -1;
}

int AddedTokenMatcher::longest_at(std::string_view text, std::size_t begin) const {
    int longest = -1;
    int node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
        node = child(node, static_cast<unsigned char>(text[at]));
        if (node < 0)
            break;
        if (trie_[static_cast<std::size_t>(node)].token >= 0)
            longest = trie_[static_cast<std::size_t>(node)].token;
    }
    return longest;
}

struct AddedTokenMatcher::Splitting {
    std::string_view text;
    bool allow_special, allow_ordinary;
    std::vector<Piece> pieces;
    std::size_t text_begin = 0; // of the text not yet in a piece
};

// The tokens between two ranges from outside.
void AddedTokenMatcher::split_stretch(ByteRange stretch, Splitting& s) const {
    const std::string_view upto = s.text.substr(0, stretch.end);
    std::size_t at = stretch.begin;
    while (at < stretch.end) {
        const int found =
            begins_token_[static_cast<unsigned char>(upto[at])] ? longest_at(upto, at) : -1;
        if (found < 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<std::size_t>(found)];
        std::size_t begin = at;
        std::size_t end = at + token.content.size();
        at = end; // a match that is not taken still keeps others from beginning inside it
        if (!(token.special ? s.allow_special : s.allow_ordinary) ||
            (token.single_word && !stands_alone(s.text, begin, end)))
            continue;
        if (token.lstrip)
            begin = std::max({white_space_begin(upto, begin), s.text_begin, stretch.begin});
        if (token.rstrip)
            end = white_space_end(upto, end);
        if (s.text_begin < begin)
            s.pieces.push_back({-1, s.text_begin, begin});
        s.pieces.push_back({token.id, begin, end});
        s.text_begin = end;
    }
}

std::vector<AddedTokenMatcher::Piece>
AddedTokenMatcher::split(std::string_view text, bool allow_special, bool allow_ordinary,
                         std::span<const ByteRange> outside) const {
    Splitting splitting{text, allow_special, allow_ordinary, {}};
    std::size_t begin = 0;
    for (const ByteRange& range : outside) {
        split_stretch({begin, range.begin}, splitting);
        begin = range.end;
    }
    split_stretch({begin, text.size()}, splitting);
    if (splitting.text_begin < text.size())
        splitting.pieces.push_back({-1, splitting.text_begin, text.size()});
    return std::move(splitting.pieces);
}

} // namespace lr::text
