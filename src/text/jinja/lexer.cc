// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/lexer.h"

#include "text/values/characters.h"

#include <algorithm>

namespace lr::text::jinja {

namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool is_digit_of(char c, int base) {
    if (c >= '0' && c <= '9')
        return c - '0' < base;
    const char lower = static_cast<char>(c | 0x20);
    return base == 16 && lower >= 'a' && lower <= 'f';
}

bool is_name_character(char c) {
    return is_digit_of(c, 10) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

// "-", "+" or nothing behind the opening of a tag.
char sign_at(std::string_view source, std::size_t at) {
    return at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : '\0';
}

// Digits with single underscores between them, from `at` on; `at` when there are none.
std::size_t digits_end(std::string_view text, std::size_t at, int base) {
    if (at >= text.size() || !is_digit_of(text[at], base))
        return at;
    while (at < text.size()) {
        const bool joins =
            text[at] == '_' && at + 1 < text.size() && is_digit_of(text[at + 1], base);
        if (!joins && !is_digit_of(text[at], base))
            break;
        at += joins ? 2 : 1;
    }
    return at;
}

} // namespace

std::string normalized_source(std::string_view source) {
    std::string text;
    text.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            text += source[i];
            continue;
        }
        text += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n')
            ++i;
    }
    if (text.ends_with('\n'))
        text.pop_back();
    return text;
}

Token Lexer::next() {
    for (;;) {
        if (!ready_.empty()) {
            const Token token = ready_.front();
            ready_.pop_front();
            return token;
        }
        if (state_ != State::kText)
            return read_token();
        if (at_ == source_.size())
            return {TokenKind::kEnd, static_cast<std::uint32_t>(at_), {}};
        read_text();
    }
}

std::size_t Lexer::skip_space(std::size_t at) const {
    while (at < source_.size()) {
        const Character c = character_at(source_, at);
        if (!is_space(c.code))
            break;
        at += static_cast<std::size_t>(c.length);
    }
    return at;
}

Token Lexer::take(TokenKind kind, std::size_t end) {
    const Token token{kind, static_cast<std::uint32_t>(at_), source_.substr(at_, end - at_)};
    at_ = end;
    return token;
}

void Lexer::read_text() {
    std::size_t tag = source_.find('{', at_);
    while (tag != kNowhere && !has(tag, "{{") && !has(tag, "{%") && !has(tag, "{#"))
        tag = source_.find('{', tag + 1);
    if (tag == kNowhere) {
        ready_.push_back(take(TokenKind::kData, source_.size()));
        return;
    }
    if (has(tag, "{%") && read_raw(tag))
        return;
    add_data(tag, sign_at(source_, tag + 2), !has(tag, "{{"));
    begin_tag(tag);
}

// The text from here to `end`, without the white space that the tag behind it takes away.
void Lexer::add_data(std::size_t end, char sign, bool strips_line) {
    std::string_view text = source_.substr(at_, end - at_);
    if (sign == '-') {
        text = text.substr(0, stripped(text, false, true).end);
    } else if (sign != '+' && strips_line) {
        const std::size_t line_end = text.rfind('\n');
        const std::size_t line = line_end == kNowhere ? 0 : line_end + 1;
        const bool from_line_start = line > 0 || line_starting_;
        if (from_line_start && stripped(text.substr(line), false, true).end == 0)
            text = text.substr(0, line);
    }
    if (!text.empty())
        ready_.push_back({TokenKind::kData, static_cast<std::uint32_t>(at_), text});
    at_ = end;
}

void Lexer::begin_tag(std::size_t tag) {
    if (source_[tag + 1] == '#')
        return skip_comment(tag);
    const bool variable = source_[tag + 1] == '{';
    ready_.push_back(take(variable ? TokenKind::kVariableBegin : TokenKind::kBlockBegin,
                          tag + (sign_at(source_, tag + 2) != '\0' ? 3 : 2)));
    state_ = variable ? State::kVariable : State::kBlock;
}

void Lexer::skip_comment(std::size_t tag) {
    const std::size_t begin = tag + (sign_at(source_, tag + 2) != '\0' ? 3 : 2);
    const std::size_t end = source_.find("#}", begin);
    if (begin == source_.size()) { // jinja2 takes no offence
        at_ = begin;
        return;
    }
    if (end == kNowhere)
        throw_syntax(static_cast<std::uint32_t>(tag), "expected '#}}' behind a comment, got none");
    const char sign = end > begin ? source_[end - 1] : '\0';
    at_ = end + 2;
    if (sign == '-')
        at_ = skip_space(at_);
    else if (sign != '+' && has(at_, "\n"))
        ++at_;
    line_starting_ = source_[at_ - 1] == '\n';
}

// A tag "{% raw %}" at `tag`, with all the text it makes ordinary.
bool Lexer::read_raw(std::size_t tag) {
    const char sign = sign_at(source_, tag + 2);
    std::size_t at = skip_space(tag + (sign != '\0' ? 3 : 2));
    if (!has(at, "raw"))
        return false;
    at = skip_space(at + 3);
    if (has(at, "-%}"))
        at = skip_space(at + 3);
    else if (has(at, "%}"))
        at += 2;
    else
        return false;
    add_data(tag, sign, true);
    line_starting_ = source_[at - 1] == '\n';
    at_ = at;
    end_raw(tag);
    return true;
}

void Lexer::end_raw(std::size_t begin) {
    for (std::size_t tag = source_.find("{%", at_); tag != kNowhere;
         tag = source_.find("{%", tag + 1)) {
        const char sign = sign_at(source_, tag + 2);
        std::size_t at = skip_space(tag + (sign != '\0' ? 3 : 2));
        if (!has(at, "endraw"))
            continue;
        at = skip_space(at + 6);
        const std::size_t close = has(at, "-%}") || has(at, "+%}") ? 3 : 2;
        if (close == 2 && !has(at, "%}"))
            continue;
        add_data(tag, sign, true);
        at_ = at + close;
        if (close == 3 && source_[at] == '-')
            at_ = skip_space(at_);
        else if (close == 2 && has(at_, "\n"))
            ++at_;
        line_starting_ = source_[at_ - 1] == '\n';
        return;
    }
    if (at_ < source_.size())
        throw_syntax(static_cast<std::uint32_t>(begin), "expected '{{% endraw %}}', got none");
}

// The end of the tag, which no bracket may be open before.
bool Lexer::read_end(Token& token) {
    if (!brackets_.empty())
        return false;
    const bool variable = state_ == State::kVariable;
    const std::string_view close = variable ? "}}" : "%}";
    const char sign = sign_at(source_, at_);
    const bool with_sign = sign != '\0' && !(variable && sign == '+') && has(at_ + 1, close);
    if (!with_sign && !has(at_, close))
        return false;
    std::size_t end = at_ + (with_sign ? 3 : 2);
    if (with_sign && sign == '-')
        end = skip_space(end);
    else if (!with_sign && !variable && has(end, "\n"))
        ++end;
    token = take(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, end);
    line_starting_ = token.text.ends_with('\n');
    state_ = State::kText;
    return true;
}

Token Lexer::read_token() {
    Token token{};
    for (;;) { // white space may stand before the end of a tag, and be part of that end
        if (read_end(token))
            return token;
        const std::size_t behind = skip_space(at_);
        if (behind == at_)
            break;
        at_ = behind;
    }
    if (at_ == source_.size())
        return {TokenKind::kEnd, static_cast<std::uint32_t>(at_), {}};
    const char c = source_[at_];
    if (is_digit_of(c, 10)) {
        TokenKind kind = TokenKind::kInteger;
        const std::size_t end = number_end(kind);
        return take(kind, end);
    }
    if (is_name_character(c)) {
        std::size_t end = at_;
        while (end < source_.size() && is_name_character(source_[end]))
            ++end;
        return take(TokenKind::kName, end);
    }
    if (c == '\'' || c == '"') {
        const std::size_t end = string_end();
        return take(TokenKind::kString, end);
    }
    return read_operator();
}

std::size_t Lexer::number_end(TokenKind& kind) const {
    const std::size_t whole = digits_end(source_, at_, 10);
    std::size_t end = whole;
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.'; // "a.0.1" has no float
    if (!behind_dot && end < source_.size() && source_[end] == '.') {
        const std::size_t fraction = digits_end(source_, end + 1, 10);
        end = fraction > end + 1 ? fraction : end;
    }
    if (!behind_dot && end < source_.size() && (source_[end] | 0x20) == 'e') {
        const std::size_t digits = end + 1 + (sign_at(source_, end + 1) != '\0' ? 1 : 0);
        const std::size_t exponent = digits_end(source_, digits, 10);
        end = exponent > digits ? exponent : end;
    }
    if (end > whole) {
        kind = TokenKind::kFloat;
        return end;
    }
    if (source_[at_] != '0')
        return whole;
    if (at_ + 1 < source_.size()) { // 0x and so on; an underscore may stand before the digits
        const char letter = static_cast<char>(source_[at_ + 1] | 0x20);
        const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
        const std::size_t first =
            at_ + 2 + (at_ + 2 < source_.size() && source_[at_ + 2] == '_' ? 1 : 0);
        const std::size_t prefixed = base == 0 ? first : digits_end(source_, first, base);
        if (prefixed > first)
            return prefixed;
    }
    return digits_end(source_, at_, 1); // zeros alone: "007" is 00 and 7
}

std::size_t Lexer::string_end() const {
    for (std::size_t at = at_ + 1; at < source_.size(); ++at) {
        if (source_[at] == source_[at_])
            return at + 1;
        at += source_[at] == '\\' ? 1 : 0;
    }
    throw_syntax(static_cast<std::uint32_t>(at_), "expected the end of a string, got none");
}

Token Lexer::read_operator() {
    constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                               "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                               ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                    [&](std::string_view text) { return has(at_, text); });
    if (found == std::end(kOperators)) {
        const auto length = static_cast<std::size_t>(character_at(source_, at_).length);
        throw_syntax(static_cast<std::uint32_t>(at_), "unexpected character '{}'",
                     source_.substr(at_, length));
    }
    const Token token = take(TokenKind::kOperator, at_ + found->size());
    const char c = token.text[0];
    if (c == '(' || c == '[' || c == '{')
        brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
        if (brackets_.empty())
            throw_syntax(token.at, "unexpected '{}'", c);
        if (brackets_.back() != c)
            throw_syntax(token.at, "expected '{}', got '{}'", brackets_.back(), c);
        brackets_.pop_back();
    }
    return token;
}

} // namespace lr::text::jinja
