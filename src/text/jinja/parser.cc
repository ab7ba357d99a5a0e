// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parser.h"

#include "text/jinja/parser_detail.h"

#include <algorithm>
#include <array>

namespace lr::text::jinja {

namespace {

std::string_view describe(const Token& token) {
    switch (token.kind) {
    case TokenKind::kData:
        return "text";
    case TokenKind::kVariableBegin:
        return "{{";
    case TokenKind::kVariableEnd:
        return "}}";
    case TokenKind::kBlockBegin:
        return "{%";
    case TokenKind::kBlockEnd:
        return "%}";
    case TokenKind::kEnd:
        return "the end of the template";
    default:
        return token.text;
    }
}

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

Parser::Parser(std::string_view source, Arena& arena) : arena_(arena), lexer_(source) {
    current_ = lexer_.next();
}

Token Parser::advance() {
    const Token token = current_;
    current_ = ahead_ ? *ahead_ : lexer_.next();
    ahead_.reset();
    return token;
}

const Token& Parser::look() {
    if (!ahead_)
        ahead_ = lexer_.next();
    return *ahead_;
}

void Parser::unexpected(std::string_view expected) const {
    throw_syntax(current_.at, "expected {}, got '{}'", expected, describe(current_));
}

bool Parser::skip_operator(std::string_view text) {
    const bool found = is_operator(text);
    if (found)
        advance();
    return found;
}

bool Parser::skip_name(std::string_view text) {
    const bool found = is_name(text);
    if (found)
        advance();
    return found;
}

Token Parser::expect_operator(std::string_view text) {
    if (!is_operator(text))
        unexpected(fmt::format("'{}'", text));
    return advance();
}

Token Parser::expect_name(std::string_view text) {
    if (!is_name(text))
        unexpected(fmt::format("'{}'", text));
    return advance();
}

Token Parser::expect_any_name() {
    if (current_.kind != TokenKind::kName)
        unexpected("a name");
    return advance();
}

void Parser::expect(TokenKind kind) {
    if (current_.kind != kind)
        unexpected(describe({kind, 0, {}}));
    advance();
}

template <typename T> T* Parser::statement(StatementKind kind, std::uint32_t at) {
    T* made = arena_.make<T>();
    made->kind = kind;
    made->at = at;
    return made;
}

Body Parser::parse() {
    return parse_body({});
}

// Statements up to a tag that begins with one of `ends` (its name is then the current token), or to
// the end of the template when there are none.
Body Parser::parse_body(Ends ends) {
    const Depth depth(*this);
    std::vector<Statement*> body;
    std::vector<Expr*> output;
    const auto end_output = [&] {
        if (output.empty())
            return;
        auto* made = statement<Output>(StatementKind::kOutput, output[0]->at);
        made->items = keep(output);
        body.push_back(made);
        output.clear();
    };
    while (current_.kind != TokenKind::kEnd) {
        if (current_.kind == TokenKind::kData) {
            const Token text = advance();
            output.push_back(constant(text.at, Value::of(borrow_str(arena_, text.text))));
        } else if (current_.kind == TokenKind::kVariableBegin) {
            advance();
            output.push_back(parse_tuple(true));
            expect(TokenKind::kVariableEnd);
        } else {
            end_output();
            expect(TokenKind::kBlockBegin);
            if (current_.kind == TokenKind::kName && is_one_of(current_.text, ends))
                return keep(body);
            body.push_back(parse_statement());
            expect(TokenKind::kBlockEnd);
        }
    }
    end_output();
    if (!ends.empty())
        unexpected(fmt::format("'{{% {} %}}'", fmt::join(ends, " %}' or '{% ")));
    return keep(body);
}

// The body behind a tag, whose end is the current token; a colon may stand before it.
Body Parser::parse_block(Ends ends) {
    skip_operator(":");
    expect(TokenKind::kBlockEnd);
    return parse_body(ends);
}

Statement* Parser::parse_statement() {
    constexpr std::array<std::string_view, 8> kUnsupported{
        "block", "extends", "include", "import", "from", "autoescape", "do", "trans"};
    if (current_.kind != TokenKind::kName)
        unexpected("the name of a tag");
    const std::string_view name = current_.text;
    if (name == "for")
        return parse_for();
    if (name == "if")
        return parse_if();
    if (name == "set")
        return parse_set();
    if (name == "macro")
        return parse_macro();
    if (name == "call")
        return parse_call_block();
    if (name == "filter")
        return parse_filter_block();
    if (name == "with")
        return parse_with();
    if (name == "generation")
        return parse_generation();
    if (name == "print")
        return parse_print();
    if (name == "break")
        return statement<Statement>(StatementKind::kBreak, advance().at);
    if (name == "continue")
        return statement<Statement>(StatementKind::kContinue, advance().at);
    if (is_one_of(name, kUnsupported))
        throw TemplateError{Code::kUnsupported, fmt::format("the tag '{}' is not supported", name),
                            false, current_.at};
    throw_syntax(current_.at, "unknown tag '{}'", name);
}

Statement* Parser::parse_for() {
    constexpr std::array<std::string_view, 2> kEnds{"endfor", "else"};
    auto* made = statement<For>(StatementKind::kFor, advance().at);
    made->target = parse_target();
    expect_name("in");
    made->items = parse_tuple(false);
    if (skip_name("if"))
        made->test = parse_expression();
    made->recursive = skip_name("recursive");
    made->body = parse_block(kEnds);
    if (advance().text == "else") {
        made->otherwise = parse_block(Ends(kEnds).first(1));
        advance();
    }
    return made;
}

Statement* Parser::parse_if() {
    constexpr std::array<std::string_view, 3> kEnds{"endif", "elif", "else"};
    auto* made = statement<If>(StatementKind::kIf, current_.at);
    std::vector<Branch> branches;
    do {
        advance();
        Expr* test = parse_tuple(false);
        branches.push_back({test, parse_block(kEnds)});
    } while (is_name("elif"));
    made->branches = keep(branches);
    if (advance().text == "else") {
        made->otherwise = parse_block(Ends(kEnds).first(1));
        advance();
    }
    return made;
}

Statement* Parser::parse_set() {
    constexpr std::array<std::string_view, 1> kEnds{"endset"};
    const std::uint32_t at = advance().at;
    Target* target = parse_target(true);
    if (skip_operator("=")) {
        auto* made = statement<Set>(StatementKind::kSet, at);
        made->target = target;
        made->value = parse_tuple(true);
        return made;
    }
    auto* made = statement<SetBlock>(StatementKind::kSetBlock, at);
    made->target = target;
    made->filter = is_operator("|") ? parse_filter_chain() : nullptr;
    made->body = parse_block(kEnds);
    advance();
    return made;
}

void Parser::parse_signature(MacroBody& macro) {
    std::vector<Parameter> parameters;
    expect_operator("(");
    while (!is_operator(")")) {
        if (!parameters.empty())
            expect_operator(",");
        const Token name = expect_any_name();
        check_assignable(name.text, name.at);
        Expr* fallback = skip_operator("=") ? parse_expression() : nullptr;
        if (fallback == nullptr && !parameters.empty() && parameters.back().fallback != nullptr)
            unexpected("'=' behind a parameter that follows one with a default");
        for (const Parameter& other : parameters)
            if (other.name == name.text)
                throw_syntax(name.at, "expected every parameter once, got '{}' twice", name.text);
        parameters.push_back({name.text, name.at, fallback, 0});
    }
    expect_operator(")");
    macro.parameters = keep(parameters);
}

Statement* Parser::parse_macro() {
    constexpr std::array<std::string_view, 1> kEnds{"endmacro"};
    auto* made = statement<MacroStatement>(StatementKind::kMacro, advance().at);
    const Token name = expect_any_name();
    check_assignable(name.text, name.at);
    made->macro.name = name.text;
    parse_signature(made->macro);
    made->macro.body = parse_block(kEnds);
    advance();
    return made;
}

Statement* Parser::parse_call_block() {
    constexpr std::array<std::string_view, 1> kEnds{"endcall"};
    auto* made = statement<CallBlock>(StatementKind::kCallBlock, advance().at);
    if (is_operator("("))
        parse_signature(made->macro);
    made->call = parse_expression();
    if (made->call->kind != ExprKind::kCall)
        throw_syntax(made->at, "expected a call behind 'call', got another expression");
    made->macro.body = parse_block(kEnds);
    advance();
    return made;
}

Statement* Parser::parse_filter_block() {
    constexpr std::array<std::string_view, 1> kEnds{"endfilter"};
    auto* made = statement<FilterBlock>(StatementKind::kFilterBlock, advance().at);
    made->filter = parse_filter(nullptr);
    while (skip_operator("|"))
        made->filter = parse_filter(made->filter);
    made->body = parse_block(kEnds);
    advance();
    return made;
}

Statement* Parser::parse_with() {
    constexpr std::array<std::string_view, 1> kEnds{"endwith"};
    auto* made = statement<With>(StatementKind::kWith, advance().at);
    std::vector<Target*> targets;
    std::vector<Expr*> values;
    while (current_.kind != TokenKind::kBlockEnd) {
        if (!targets.empty())
            expect_operator(",");
        targets.push_back(parse_target());
        expect_operator("=");
        values.push_back(parse_expression());
    }
    made->targets = keep(targets);
    made->values = keep(values);
    made->body = parse_block(kEnds);
    advance();
    return made;
}

Statement* Parser::parse_generation() {
    constexpr std::array<std::string_view, 1> kEnds{"endgeneration"};
    auto* made = statement<Generation>(StatementKind::kGeneration, advance().at);
    made->macro.body = parse_block(kEnds);
    advance();
    return made;
}

Statement* Parser::parse_print() {
    auto* made = statement<Output>(StatementKind::kOutput, advance().at);
    std::vector<Expr*> items;
    while (current_.kind != TokenKind::kBlockEnd) {
        if (!items.empty())
            expect_operator(",");
        items.push_back(parse_expression());
    }
    made->items = keep(items);
    return made;
}

// A name or several with commas, and with_namespace also attributes.
Target* Parser::parse_target(bool with_namespace) {
    const Depth depth(*this);
    std::vector<Target*> targets;
    const std::uint32_t at = current_.at;
    bool tuple = false;
    for (;;) {
        if (is_tuple_end() && tuple)
            break;
        if (with_namespace && current_.kind == TokenKind::kName && look().text == ".") {
            const Token name = advance();
            advance();
            const Token attribute = expect_any_name();
            targets.push_back(
                arena_.make<Target>(Target::Kind::kAttribute, name.at, name.text, attribute.text));
        } else {
            targets.push_back(target_of(parse_primary()));
        }
        if (!is_operator(","))
            break;
        advance();
        tuple = true;
    }
    if (!tuple)
        return targets[0];
    return arena_.make<Target>(Target::Kind::kTuple, at, std::string_view(), std::string_view(),
                               Variable(), std::span<Target* const>(keep(targets)));
}

Target* Parser::target_of(const Expr* expr) const {
    if (expr->kind == ExprKind::kName) {
        check_assignable(expr->name, expr->at);
        return arena_.make<Target>(Target::Kind::kName, expr->at, expr->name);
    }
    if (expr->kind != ExprKind::kTuple)
        throw_syntax(expr->at, "expected a name to assign to, got another expression");
    Target** targets = arena_.make_array<Target*>(expr->items.size());
    for (std::size_t i = 0; i < expr->items.size(); ++i)
        targets[i] = target_of(expr->items[i]);
    return arena_.make<Target>(Target::Kind::kTuple, expr->at, std::string_view(),
                               std::string_view(), Variable(),
                               std::span<Target* const>(targets, expr->items.size()));
}

} // namespace lr::text::jinja
