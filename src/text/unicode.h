// SPDX-License-Identifier: Apache-2.0
//
// text/unicode.h: UTF-8, the character classes that tokenizer patterns use, and NFC.
//
// Both follow Hugging Face tokenizers 0.23 to the character: classes of Unicode 16.0, NFC of
// Unicode 9.0 (some hundred rare marks that are younger stay where they are).
#pragma once

#include "text/marked_text.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lr::text {

// What the bytes begin with.
struct Utf8Step {
    enum class Kind {
        kCharacter, // one whole character of `length` 1 to 4 bytes
        kTruncated, // `length` bytes, all there are, that more bytes could complete
        kInvalid,   // `length` >= 1 bytes that one U+FFFD stands for, as in Python's "replace"
    };
    Kind kind;
    int length;
    char32_t code_point; // of a kCharacter, else U+FFFD
};

// `bytes` is not empty. Overlong forms, surrogates and values above U+10FFFF are invalid.
Utf8Step step_utf8(std::string_view bytes);

// Offset of the first byte that is not part of a whole, valid character.
std::optional<std::size_t> first_invalid_utf8(std::string_view bytes);

void append_utf8(std::string& out, char32_t code_point);

// Every invalid or truncated sequence becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);

enum class CharClass : std::uint8_t { kOther, kLetter, kMark, kNumber }; // \p{L}, \p{M}, \p{N}
CharClass char_class(char32_t code_point);
// The text up to its trailing white space.
std::string_view without_trailing_space(std::string_view text);
bool is_white_space(char32_t code_point); // \s: the Unicode property White_Space, 25 characters
bool is_word(char32_t code_point);        // \w: letters, marks, digits, connectors, joiners

// Normalisation form C of valid UTF-8, in time that is linear but for the sort of runs of marks.
std::string normalize_nfc(std::string_view text);
// The same; `ranges` of the text (as in MarkedText) become those of the result. A character of the
// result is in one if any of the characters that it may depend on was.
std::string normalize_nfc(std::string_view text, std::vector<ByteRange>& ranges);
// True only if valid UTF-8 is in NFC whatever stands beside it; false where that takes a closer
// look. Cheap, and true for most text: Latin, Cyrillic, Chinese, Japanese, Korean, punctuation,
// emoji.
bool is_surely_nfc(std::string_view text);

} // namespace lr::text
