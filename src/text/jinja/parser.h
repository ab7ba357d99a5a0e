// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/parser.h: the grammar of jinja2. Variables are not resolved yet (text/jinja/scopes.h).
//
// Tags it knows: if, for (else, if, recursive), set (also as a block), macro, call, filter, with,
// print, raw, break, continue, generation. Those of template inheritance, and autoescape, are
// refused.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"
#include "text/values/arena.h"

#include <optional>

namespace lr::text::jinja {

class Parser {
  public:
    // `source` is normalised; both outlive what is made.
    Parser(std::string_view source, Arena& arena);
    Body parse();

  private:
    class Depth;
    using Ends = std::span<const std::string_view>;

    // Tokens.
    Token advance();
    const Token& look();
    bool is_operator(std::string_view text) const {
        return current_.kind == TokenKind::kOperator && current_.text == text;
    }
    bool is_name(std::string_view text) const {
        return current_.kind == TokenKind::kName && current_.text == text;
    }
    bool skip_operator(std::string_view text);
    bool skip_name(std::string_view text);
    Token expect_operator(std::string_view text);
    Token expect_name(std::string_view text);
    Token expect_any_name();
    void expect(TokenKind kind);
    [[noreturn]] void unexpected(std::string_view expected) const;

    // Statements.
    Body parse_body(Ends ends);
    Body parse_block(Ends ends);
    void end_block();
    Statement* parse_statement();
    Statement* parse_for();
    Statement* parse_if();
    Statement* parse_set();
    Statement* parse_macro();
    Statement* parse_call_block();
    Statement* parse_filter_block();
    Statement* parse_with();
    Statement* parse_generation();
    Statement* parse_print();
    void parse_signature(MacroBody& macro);
    Target* parse_target(bool with_namespace = false);
    Target* target_of(const Expr* expr) const;
    template <typename T> T* statement(StatementKind kind, std::uint32_t at);

    // Expressions, from the loosest binding to the tightest.
    Expr* parse_tuple(bool with_condition);
    Expr* parse_expression(bool with_condition = true);
    Expr* parse_or();
    Expr* parse_and();
    Expr* parse_not();
    Expr* parse_compare();
    Expr* parse_sum();
    Expr* parse_concat();
    Expr* parse_product();
    Expr* parse_power();
    Expr* parse_unary(bool with_filter);
    Expr* parse_primary();
    Expr* parse_postfix(Expr* value);
    Expr* parse_filters_and_tests(Expr* value);
    Expr* parse_filter(Expr* value);
    Expr* parse_filter_chain();
    Expr* parse_test(Expr* value);
    Expr* parse_call(Expr* callee);
    Expr* parse_subscript(Expr* object);
    Expr* parse_index(Expr* object);
    Expr* parse_string();
    Expr* parse_number();
    Expr* parse_parentheses();
    Expr* parse_list();
    Expr* parse_dict();
    CallArguments* parse_arguments(std::vector<Expr*>& items);
    std::string_view parse_dotted_name();
    bool is_tuple_end() const;

    Expr* make(ExprKind kind, std::uint32_t at, std::span<Expr* const> items);
    Expr* constant(std::uint32_t at, const Value& value);
    template <typename T> std::span<T> keep(const std::vector<T>& items);

    Arena& arena_;
    Lexer lexer_;
    Token current_;
    std::optional<Token> ahead_;
    int depth_ = 0;
};

} // namespace lr::text::jinja
