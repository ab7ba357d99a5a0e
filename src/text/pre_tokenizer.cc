// SPDX-License-Identifier: Apache-2.0
//
// The alternatives of the pattern are tried in its order; each function is one of them. None needs
// to back up further than one character, as its comment explains.
#include "text/pre_tokenizer.h"

#include "core/check.h"
#include "core/json.h"
#include "text/unicode.h"

#include <array>

namespace lr::text {

namespace {

// The classes that the pattern distinguishes. CR and LF are white space too.
enum class Kind : std::uint8_t { kEnd, kLetter, kMark, kNumber, kNewline, kSpace, kOther };

struct Character {
    Kind kind; // kEnd behind the last character
    std::size_t end;
    char32_t code_point;
};

Kind kind_of(char32_t code_point) {
    if (code_point == '\r' || code_point == '\n')
        return Kind::kNewline;
    if (is_white_space(code_point))
        return Kind::kSpace;
    switch (char_class(code_point)) {
    case CharClass::kLetter:
        return Kind::kLetter;
    case CharClass::kMark:
        return Kind::kMark;
    case CharClass::kNumber:
        return Kind::kNumber;
    case CharClass::kOther:
        break;
    }
    return Kind::kOther;
}

constexpr std::array<Kind, 128> ascii_kinds() {
    std::array<Kind, 128> kinds{};
    for (int c = 0; c < 128; ++c) {
        Kind kind = Kind::kOther;
        if (c == '\r' || c == '\n')
            kind = Kind::kNewline;
        else if (c == ' ' || (c >= 0x09 && c <= 0x0D))
            kind = Kind::kSpace;
        else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
            kind = Kind::kLetter;
        else if (c >= '0' && c <= '9')
            kind = Kind::kNumber;
        kinds[static_cast<std::size_t>(c)] = kind;
    }
    return kinds;
}
constexpr std::array<Kind, 128> kAsciiKinds = ascii_kinds();

Character character_at(std::string_view text, std::size_t at) {
    if (at >= text.size())
        return {Kind::kEnd, at, 0};
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80)
        return {kAsciiKinds[byte], at + 1, byte};
    const Utf8Step step = step_utf8(text.substr(at));
    return {kind_of(step.code_point), at + static_cast<std::size_t>(step.length), step.code_point};
}

bool is_word_part(Kind kind) {
    return kind == Kind::kLetter || kind == Kind::kMark;
}

bool is_space(Kind kind) {
    return kind == Kind::kSpace || kind == Kind::kNewline;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)    0 when it does not match. Ignoring case, U+017F is an s too.
std::size_t contraction_end(std::string_view text, std::size_t begin) {
    if (text[begin] != '\'')
        return 0;
    const auto letter = [&](std::size_t at) {
        const char c = at < text.size() ? text[at] : '\0';
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char first = letter(begin + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return begin + 2;
    const char second = letter(begin + 2);
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
        (first == 'l' && second == 'l'))
        return begin + 3;
    if (text.substr(begin + 1, 2) == "\xC5\xBF")
        return begin + 3;
    return 0;
}

std::size_t word_run_end(std::string_view text, std::size_t begin) {
    std::size_t end = begin;
    for (Character c = character_at(text, end); is_word_part(c.kind); c = character_at(text, end))
        end = c.end;
    return end;
}

// [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+    The optional character may itself be a mark; the run then
// begins one later or at the mark, with the same end.
std::size_t word_end(std::string_view text, const Character& first, std::size_t begin) {
    if (is_word_part(first.kind))
        return word_run_end(text, begin);
    if (first.kind != Kind::kSpace && first.kind != Kind::kOther)
        return 0;
    const std::size_t end = word_run_end(text, first.end);
    return end == first.end ? 0 : end;
}

//  ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*
std::size_t punctuation_end(std::string_view text, const Character& first, std::size_t begin) {
    std::size_t end = first.code_point == ' ' ? first.end : begin;
    Character c = character_at(text, end);
    if (c.kind != Kind::kOther)
        return 0;
    for (; c.kind == Kind::kOther; c = character_at(text, end))
        end = c.end;
    for (; c.kind == Kind::kNewline; c = character_at(text, end))
        end = c.end;
    return end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+    On a run of white space: up to its last line end, if it has one; else
// the whole run at the end of the text; else all but its last character, if that leaves any.
std::size_t space_end(std::string_view text, std::size_t begin) {
    std::size_t newline_end = begin;
    std::size_t last_begin = begin;
    std::size_t end = begin;
    for (Character c = character_at(text, end); is_space(c.kind); c = character_at(text, end)) {
        last_begin = end;
        end = c.end;
        if (c.kind == Kind::kNewline)
            newline_end = end;
    }
    if (newline_end > begin)
        return newline_end;
    if (end == text.size() || last_begin == begin)
        return end;
    return last_begin;
}

} // namespace

Result<SplitPattern> recognise_pattern(std::string_view regex) {
    if (regex == kQwen35Pattern)
        return SplitPattern::kQwen35;
    return fail(Code::kUnsupported, "expected the Qwen3.5 split pattern {}, got {}",
                json_quote(kQwen35Pattern), json_quote(regex));
}

std::size_t piece_end(SplitPattern pattern, std::string_view text, std::size_t begin) {
    LR_DCHECK(pattern == SplitPattern::kQwen35 && begin < text.size());
    static_cast<void>(pattern);
    const Character first = character_at(text, begin);
    if (const std::size_t end = contraction_end(text, begin))
        return end;
    if (const std::size_t end = word_end(text, first, begin))
        return end;
    if (first.kind == Kind::kNumber)
        return first.end;
    if (const std::size_t end = punctuation_end(text, first, begin))
        return end;
    return space_end(text, begin);
}

} // namespace lr::text
