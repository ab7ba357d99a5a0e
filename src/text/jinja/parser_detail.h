// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/parser_detail.h: what the two halves of the parser share: parser.cc, which reads
// statements, and parser_expressions.cc.
#pragma once

#include "text/jinja/parser.h"

#include <algorithm>

namespace lr::text::jinja {

// Deeper templates are a mistake or an attack; the parser and the interpreter call themselves.
constexpr int kMaxDepth = 200;

class Parser::Depth {
  public:
    explicit Depth(Parser& parser) : parser_(parser) {
        if (parser.depth_ == kMaxDepth)
            throw_syntax(parser.current_.at,
                         "expected at most {} nested expressions and blocks, "
                         "got more",
                         kMaxDepth);
        ++parser.depth_;
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --parser_.depth_; }

  private:
    Parser& parser_;
};

template <typename T> std::span<T> Parser::keep(const std::vector<T>& items) {
    T* copy = arena_.make_array<T>(items.size());
    std::copy(items.begin(), items.end(), copy);
    return {copy, items.size()};
}

inline bool is_literal_name(std::string_view name) {
    return name == "true" || name == "True" || name == "false" || name == "False" ||
           name == "none" || name == "None";
}

inline void check_assignable(std::string_view name, std::uint32_t at) {
    if (is_literal_name(name))
        throw_syntax(at, "expected a name to assign to, got the constant '{}'", name);
}

} // namespace lr::text::jinja
