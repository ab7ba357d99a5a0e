// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/lexer.h: the text of a template cut into tokens, with the white space rules of
// trim_blocks and lstrip_blocks, which Hugging Face turns on, and of the signs '-' and '+'.
#pragma once

#include "text/values/error.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lr::text::jinja {

enum class TokenKind {
    kData, // text between tags
    kVariableBegin,
    kVariableEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString, // with its quotes
    kInteger,
    kFloat,
    kOperator,
    kEnd,
};

struct Token {
    TokenKind kind;
    std::uint32_t at; // byte of the source
    std::string_view text;
};

// A mistake of the template itself, at a byte of its source.
template <typename... Ts>
[[noreturn]] void throw_syntax(std::uint32_t at, fmt::format_string<Ts...> format, Ts&&... args) {
    throw TemplateError{Code::kInvalidFile, fmt::format(format, std::forward<Ts>(args)...), false,
                        at};
}

// Line ends become "\n", and one at the end of the text goes.
std::string normalized_source(std::string_view source);

class Lexer {
  public:
    // `source` is normalised and outlives the tokens.
    explicit Lexer(std::string_view source) : source_(source) {}
    // kEnd at the end, again and again. Throws the syntax error of what cannot be a token.
    Token next();

  private:
    enum class State { kText, kVariable, kBlock };

    void read_text();
    void add_data(std::size_t end, char sign, bool strips_line);
    void begin_tag(std::size_t tag);
    void skip_comment(std::size_t tag);
    bool read_raw(std::size_t tag);
    void end_raw(std::size_t begin);
    bool read_end(Token& token);
    Token read_token();
    std::size_t number_end(TokenKind& kind) const;
    std::size_t string_end() const;
    Token read_operator();
    std::size_t skip_space(std::size_t at) const;
    bool has(std::size_t at, std::string_view text) const {
        return source_.substr(at).starts_with(text);
    }
    Token take(TokenKind kind, std::size_t end);

    std::string_view source_;
    std::size_t at_ = 0;
    State state_ = State::kText;
    bool line_starting_ = true; // what was read last ended a line
    std::vector<char> brackets_;
    std::deque<Token> ready_;
};

} // namespace lr::text::jinja
