// SPDX-License-Identifier: Apache-2.0
//
// text/values/characters.h: characters as Python's str methods see them (Unicode properties and
// full case mappings), and the way from character numbers to bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lr::text::jinja {

bool is_space(char32_t c); // str.isspace: White_Space and the four separators U+001C to U+001F
bool is_line_end(char32_t c);
bool is_printable(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c); // decimals, superscripts, circled digits
bool is_alnum(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_case_ignorable(char32_t c);
inline bool is_cased(char32_t c) {
    return is_lower(c) || is_upper(c) || is_title(c);
}

// One character may become up to three.
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c); // but for a final sigma, which needs its context
void append_title(std::string& out, char32_t c);

// `text` is valid UTF-8.
bool is_ascii(std::string_view text);
std::size_t count_characters(std::string_view text);
// Byte where character `number` begins; text.size() when there are not so many.
std::size_t byte_of_character(std::string_view text, std::size_t number);
// The character that begins at a byte < size(), and its length.
struct Character {
    char32_t code;
    int length;
};
Character character_at(std::string_view text, std::size_t byte);

struct Stretch {
    std::size_t begin, end;
};
// `text` without white space at its ends, or without the characters in `chars`.
Stretch stripped(std::string_view text, bool left, bool right);
Stretch stripped(std::string_view text, bool left, bool right, std::string_view chars);

} // namespace lr::text::jinja
