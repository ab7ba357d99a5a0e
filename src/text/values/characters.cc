// SPDX-License-Identifier: Apache-2.0
#include "text/values/characters.h"

#include "text/unicode.h"
#include "text/values/character_tables.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

namespace lr::text::jinja {

namespace {

utf8proc_category_t category(char32_t c) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_in(std::span<const CodeRange> ranges, char32_t c) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](CodeRange range) { return range.first <= c && c <= range.last; });
}

const FullMapping* full_mapping(char32_t c) {
    const FullMapping* end = std::end(kFullMappings);
    const FullMapping* found = std::partition_point(std::begin(kFullMappings), end,
                                                    [&](const FullMapping& m) { return m.c < c; });
    return found != end && found->c == c ? found : nullptr;
}

void append_all(std::string& out, const char32_t (&parts)[3]) {
    for (char32_t part : parts)
        if (part != 0)
            append_utf8(out, part);
}

} // namespace

bool is_space(char32_t c) {
    return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

bool is_line_end(char32_t c) {
    return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

bool is_printable(char32_t c) {
    if (c < 0x80)
        return c >= 0x20 && c != 0x7F;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

bool is_alpha(char32_t c) {
    const utf8proc_category_t kind = category(c);
    return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) {
    return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
    return is_decimal(c) || is_in(kOtherDigit, c);
}

bool is_alnum(char32_t c) {
    // Python adds what has a numeric value, which is Nd, Nl, No and some ideographs (letters).
    const utf8proc_category_t kind = category(c);
    return is_alpha(c) || (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

bool is_lower(char32_t c) {
    return c < 0x80 ? c >= 'a' && c <= 'z'
                    : category(c) == UTF8PROC_CATEGORY_LL || is_in(kOtherLower, c);
}

bool is_upper(char32_t c) {
    return c < 0x80 ? c >= 'A' && c <= 'Z'
                    : category(c) == UTF8PROC_CATEGORY_LU || is_in(kOtherUpper, c);
}

bool is_title(char32_t c) {
    return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(char32_t c) {
    constexpr char32_t kInWords[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,
                                     0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                     0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return std::find(std::begin(kInWords), std::end(kInWords), c) != std::end(kInWords);
    }
}

void append_upper(std::string& out, char32_t c) {
    if (const FullMapping* full = c < 0x80 ? nullptr : full_mapping(c))
        append_all(out, full->upper);
    else
        append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_lower(std::string& out, char32_t c) {
    if (c == 0x130)
        out += "i\xCC\x87"; // the only character with a full mapping: i and a dot above
    else
        append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string& out, char32_t c) {
    const FullMapping* full = c < 0x80 ? nullptr : full_mapping(c);
    if (full != nullptr && full->title[0] != 0)
        append_all(out, full->title);
    else
        append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

bool is_ascii(std::string_view text) {
    constexpr std::uint64_t kHighBits = 0x8080808080808080;
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + i, 8);
        if ((word & kHighBits) != 0)
            return false;
    }
    for (; i < text.size(); ++i)
        if (static_cast<unsigned char>(text[i]) >= 0x80)
            return false;
    return true;
}

std::size_t count_characters(std::string_view text) {
    if (is_ascii(text))
        return text.size();
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

std::size_t byte_of_character(std::string_view text, std::size_t number) {
    if (number >= text.size())
        return text.size();
    if (is_ascii(text.substr(0, number)))
        return number;
    std::size_t byte = 0;
    for (; number > 0 && byte < text.size(); --number)
        byte += static_cast<std::size_t>(character_at(text, byte).length);
    return byte;
}

Character character_at(std::string_view text, std::size_t byte) {
    const auto first = static_cast<unsigned char>(text[byte]);
    if (first < 0x80)
        return {first, 1};
    const Utf8Step step = step_utf8(text.substr(byte, 4));
    return {step.code_point, step.length};
}

namespace {

template <typename Strips>
Stretch strip_while(std::string_view text, bool left, bool right, Strips strips) {
    Stretch rest{0, text.size()};
    while (left && rest.begin < rest.end) {
        const Character c = character_at(text, rest.begin);
        if (!strips(c.code))
            break;
        rest.begin += static_cast<std::size_t>(c.length);
    }
    while (right && rest.begin < rest.end) {
        std::size_t last = rest.end - 1;
        while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80)
            --last;
        if (!strips(character_at(text, last).code))
            break;
        rest.end = last;
    }
    return rest;
}

} // namespace

Stretch stripped(std::string_view text, bool left, bool right) {
    return strip_while(text, left, right, is_space);
}

Stretch stripped(std::string_view text, bool left, bool right, std::string_view chars) {
    std::vector<char32_t> set;
    for (std::size_t at = 0; at < chars.size();) {
        const Character c = character_at(chars, at);
        set.push_back(c.code);
        at += static_cast<std::size_t>(c.length);
    }
    std::sort(set.begin(), set.end());
    return strip_while(text, left, right,
                       [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

} // namespace lr::text::jinja
