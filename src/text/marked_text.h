// SPDX-License-Identifier: Apache-2.0
//
// text/marked_text.h: text that remembers which of its bytes came from outside.
//
// A prompt mixes what a template says (its control tokens are meant) with what users, tools and
// earlier answers said (theirs are not). The bytes of the latter are listed in `outside`, and
// Tokenizer::encode makes no added token out of a stretch of text that touches one of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lr::text {

struct ByteRange {
    std::size_t begin = 0, end = 0; // [begin, end)
    friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct MarkedText {
    std::string text;
    std::vector<ByteRange> outside; // ascending, not empty, neither overlapping nor touching

    friend bool operator==(const MarkedText&, const MarkedText&) = default;
};

} // namespace lr::text
