// SPDX-License-Identifier: Apache-2.0
//
// text/stop_strings.h: ends a streamed text where a stop string appears, without sending any of it.
//
// The stop string whose last byte comes first ends the text; of several that end at one byte, the
// longest. The text before it is handed out and nothing behind it. Text that may be the beginning
// of a stop string is held back until it is one or cannot be one, so where the text was cut into
// pieces makes no difference.
//
// In a chat the matcher stands behind the ReasoningSplitter and before the ToolCallParser: a stop
// string ends the answer, never the reasoning. Control tokens leave no text; a stop string that is
// one ("<|im_end|>") stops at that token (stop_token_ids).
#pragma once

#include "core/status.h"
#include "text/tokenizer.h"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::text {

// The compiled strings (an Aho-Corasick automaton). Immutable; many matchers may use one.
class StopStrings {
  public:
    StopStrings() = default; // none: nothing ever stops
    // kInvalidArgument: an empty string or one that is not UTF-8, named by its index.
    static Result<StopStrings> compile(const std::vector<std::string>& strings);

    bool empty() const { return nodes_.size() == 1; }

  private:
    friend class StopMatcher;
    struct Node {
        std::vector<std::pair<unsigned char, std::int32_t>> next; // children
        std::int32_t fallback = 0;     // the longest proper suffix that begins a string
        std::uint32_t depth = 0;       // bytes read since the beginning of the string
        std::uint32_t match_bytes = 0; // of the longest string that ends here, 0 if none does
        std::int32_t match_index = -1; // in the list given
    };
    std::int32_t child(std::int32_t node, unsigned char byte) const; // -1: none
    void add(std::string_view string, std::int32_t index);
    void link_fallbacks();

    std::vector<Node> nodes_{Node{}};
};

// The control tokens whose text is one of the strings.
std::vector<std::int32_t> stop_token_ids(const Tokenizer& tokenizer,
                                         std::span<const std::string> strings);

class StopMatcher {
  public:
    // `strings` must outlive this.
    explicit StopMatcher(const StopStrings& strings) : strings_(&strings) {}

    // The text of one more token, maybe empty: what can be handed out now. "" once stopped. Linear
    // in all the text.
    std::string push(std::string_view text);
    // The end of the text: what was held back. Nothing may be pushed afterwards.
    std::string flush();

    bool stopped() const { return matched_ >= 0; }
    std::int32_t matched() const { return matched_; } // index of the string, -1: not stopped
    // Tokens pushed, up to and with the one that completed the stop string.
    std::int64_t pushed_tokens() const { return pushed_tokens_; }
    // Those of them whose text was handed out to its last byte.
    std::int64_t released_tokens() const {
        return pushed_tokens_ - static_cast<std::int64_t>(unreleased_.size());
    }
    std::size_t held_bytes() const { return held_.size() - held_begin_; }

  private:
    std::string release(std::size_t bytes);

    const StopStrings* strings_;
    std::int32_t node_ = 0;
    std::int32_t matched_ = -1;
    std::string held_;           // what lies behind held_begin_ has not been handed out: at most
    std::size_t held_begin_ = 0; // the longest stop string
    std::int64_t pushed_tokens_ = 0;
    std::uint64_t pushed_bytes_ = 0, released_bytes_ = 0;
    std::deque<std::uint64_t> unreleased_; // ends of the texts of tokens not released
};

} // namespace lr::text
