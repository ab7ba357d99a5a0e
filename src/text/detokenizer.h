// SPDX-License-Identifier: Apache-2.0
//
// text/detokenizer.h: tokens to text while they arrive. Characters come out whole: bytes that more
// bytes could complete are held back, bytes that nothing can complete become U+FFFD, one for each
// invalid sequence as in Python's decode(errors="replace"). The pieces, flush() included, put
// together are Tokenizer::decode() of all ids.
#pragma once

#include "text/tokenizer.h"

#include <cstdint>
#include <string>

namespace lr::text {

class Detokenizer {
  public:
    // The tokenizer must outlive this. skip_special: control tokens add no text.
    explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true)
        : tokenizer_(&tokenizer), skip_special_(skip_special) {}

    // The text that the token completes, often all of its own, maybe none. Valid UTF-8.
    std::string push(std::int32_t id);
    // The end: held bytes become one U+FFFD. Afterwards a next sequence may begin.
    std::string flush();

    std::size_t held_bytes() const { return held_.size(); } // 0 to 3

  private:
    const Tokenizer* tokenizer_;
    bool skip_special_;
    std::string held_; // the beginning of a character
};

} // namespace lr::text
