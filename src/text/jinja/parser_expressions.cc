// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parser_detail.h"
#include "text/unicode.h"
#include "text/values/characters.h"
#include "text/values/numbers.h"

#include <array>

namespace lr::text::jinja {

namespace {

constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
    {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
    {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
    {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual},
};

} // namespace

Expr* Parser::make(ExprKind kind, std::uint32_t at, std::span<Expr* const> items) {
    Expr** copy = arena_.make_array<Expr*>(items.size());
    std::copy(items.begin(), items.end(), copy);
    int height = 1;
    for (const Expr* item : items)
        height = std::max(height, 1 + (item == nullptr ? 0 : item->height));
    if (height > kMaxDepth)
        throw_syntax(at, "expected at most {} nested expressions, got more", kMaxDepth);
    Expr* made = arena_.make<Expr>(kind);
    made->at = at;
    made->height = static_cast<std::uint16_t>(height);
    made->items = {copy, items.size()};
    return made;
}

Expr* Parser::constant(std::uint32_t at, const Value& value) {
    Expr* made = make(ExprKind::kConstant, at, {});
    made->constant = arena_.make<Value>(value);
    return made;
}

bool Parser::is_tuple_end() const {
    return current_.kind == TokenKind::kVariableEnd || current_.kind == TokenKind::kBlockEnd ||
           is_operator(")");
}

// One expression, or a tuple where commas follow.
Expr* Parser::parse_tuple(bool with_condition) {
    const std::uint32_t at = current_.at;
    std::vector<Expr*> items;
    bool tuple = false;
    while (!is_tuple_end()) {
        items.push_back(parse_expression(with_condition));
        if (!skip_operator(","))
            break;
        tuple = true;
    }
    if (items.empty())
        unexpected("an expression");
    return tuple ? make(ExprKind::kTuple, at, items) : items[0];
}

Expr* Parser::parse_expression(bool with_condition) {
    const Depth depth(*this);
    Expr* value = parse_or();
    while (with_condition && is_name("if")) {
        const std::uint32_t at = advance().at;
        std::vector<Expr*> parts{parse_or(), value};
        if (skip_name("else"))
            parts.push_back(parse_expression());
        value = make(ExprKind::kConditional, at, parts);
    }
    return value;
}

Expr* Parser::parse_or() {
    Expr* left = parse_and();
    while (is_name("or")) {
        const std::uint32_t at = advance().at;
        left = make(ExprKind::kOr, at, std::array{left, parse_and()});
    }
    return left;
}

Expr* Parser::parse_and() {
    Expr* left = parse_not();
    while (is_name("and")) {
        const std::uint32_t at = advance().at;
        left = make(ExprKind::kAnd, at, std::array{left, parse_not()});
    }
    return left;
}

Expr* Parser::parse_not() {
    const Depth depth(*this);
    if (!is_name("not"))
        return parse_compare();
    const std::uint32_t at = advance().at;
    return make(ExprKind::kNot, at, std::array{parse_not()});
}

Expr* Parser::parse_compare() {
    std::vector<Expr*> operands{parse_sum()};
    std::vector<Comparison> comparisons;
    const std::uint32_t at = current_.at;
    for (;;) {
        const auto* found = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                         [&](const auto& each) { return is_operator(each.first); });
        if (found != std::end(kComparisons)) {
            advance();
            comparisons.push_back(found->second);
        } else if (skip_name("in")) {
            comparisons.push_back(Comparison::kIn);
        } else if (is_name("not") && look().kind == TokenKind::kName && look().text == "in") {
            advance();
            advance();
            comparisons.push_back(Comparison::kNotIn);
        } else {
            break;
        }
        operands.push_back(parse_sum());
    }
    if (comparisons.empty())
        return operands[0];
    Expr* made = make(ExprKind::kCompare, at, operands);
    made->comparisons = keep(comparisons).data();
    return made;
}

namespace {

struct Binary {
    std::string_view text;
    Arithmetic operation;
};
constexpr Binary kSums[] = {{"+", Arithmetic::kAdd}, {"-", Arithmetic::kSubtract}};
constexpr Binary kProducts[] = {{"*", Arithmetic::kMultiply},
                                {"/", Arithmetic::kDivide},
                                {"//", Arithmetic::kFloorDivide},
                                {"%", Arithmetic::kModulo}};

const Binary* find_binary(std::span<const Binary> table, const Token& token) {
    if (token.kind == TokenKind::kOperator)
        for (const Binary& each : table)
            if (each.text == token.text)
                return &each;
    return nullptr;
}

} // namespace

Expr* Parser::parse_sum() {
    Expr* left = parse_concat();
    while (const Binary* binary = find_binary(kSums, current_)) {
        const std::uint32_t at = advance().at;
        left = make(ExprKind::kArithmetic, at, std::array{left, parse_concat()});
        left->op = static_cast<std::uint8_t>(binary->operation);
    }
    return left;
}

Expr* Parser::parse_concat() {
    std::vector<Expr*> items{parse_product()};
    const std::uint32_t at = current_.at;
    while (skip_operator("~"))
        items.push_back(parse_product());
    return items.size() == 1 ? items[0] : make(ExprKind::kConcat, at, items);
}

Expr* Parser::parse_product() {
    Expr* left = parse_power();
    while (const Binary* binary = find_binary(kProducts, current_)) {
        const std::uint32_t at = advance().at;
        left = make(ExprKind::kArithmetic, at, std::array{left, parse_power()});
        left->op = static_cast<std::uint8_t>(binary->operation);
    }
    return left;
}

Expr* Parser::parse_power() {
    Expr* left = parse_unary(true);
    while (is_operator("**")) {
        const std::uint32_t at = advance().at;
        left = make(ExprKind::kArithmetic, at, std::array{left, parse_unary(true)});
        left->op = static_cast<std::uint8_t>(Arithmetic::kPower);
    }
    return left;
}

Expr* Parser::parse_unary(bool with_filter) {
    const Depth depth(*this);
    Expr* value = nullptr;
    if (is_operator("-") || is_operator("+")) {
        const Token sign = advance();
        value = make(ExprKind::kSign, sign.at, std::array{parse_unary(false)});
        value->op = static_cast<std::uint8_t>(sign.text == "-" ? Sign::kMinus : Sign::kPlus);
    } else {
        value = parse_primary();
    }
    value = parse_postfix(value);
    return with_filter ? parse_filters_and_tests(value) : value;
}

Expr* Parser::parse_primary() {
    const Token token = current_;
    switch (token.kind) {
    case TokenKind::kName: {
        advance();
        if (token.text == "none" || token.text == "None")
            return constant(token.at, Value::none());
        if (is_literal_name(token.text))
            return constant(token.at, Value::of(token.text == "true" || token.text == "True"));
        Expr* name = make(ExprKind::kName, token.at, {});
        name->name = token.text;
        return name;
    }
    case TokenKind::kString:
        return parse_string();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
        return parse_number();
    default:
        break;
    }
    if (is_operator("("))
        return parse_parentheses();
    if (is_operator("["))
        return parse_list();
    if (is_operator("{"))
        return parse_dict();
    unexpected("an expression");
}

Expr* Parser::parse_number() {
    const Token token = advance();
    try {
        if (token.kind == TokenKind::kInteger)
            return constant(token.at, Value::of(*parse_integer(token.text, 0)));
        return constant(token.at, Value::of(*parse_float(token.text)));
    } catch (TemplateError& error) {
        error.at = token.at;
        throw;
    }
}

namespace {

// What a string's escapes stand for, as Python reads them.
class Unescaper {
  public:
    Unescaper(std::string_view text, std::uint32_t at) : text_(text), begin_(at) {}

    std::string run() {
        while (at_ < text_.size()) {
            const std::size_t end = std::min(text_.find('\\', at_), text_.size());
            out_ += text_.substr(at_, end - at_);
            at_ = end;
            if (at_ < text_.size())
                escape();
        }
        return std::move(out_);
    }

  private:
    void escape() {
        constexpr std::string_view kLetters = "abfnrtv\\'\"";
        constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
        const char c = text_[++at_]; // the lexer ends no string behind a backslash
        ++at_;
        if (const std::size_t letter = kLetters.find(c); letter != std::string_view::npos)
            out_ += kMeanings[letter];
        else if (c == 'x')
            append(hexadecimal(2));
        else if (c == 'u')
            append(hexadecimal(4));
        else if (c == 'U')
            append(hexadecimal(8));
        else if (c >= '0' && c <= '7')
            append(octal());
        else if (c == 'N')
            throw TemplateError{Code::kUnsupported, "the escape '\\N' is not supported", false,
                                begin_};
        else if (static_cast<unsigned char>(c) >= 0x80)
            foreign();
        else if (c != '\n')
            (out_ += '\\') += c;
    }

    char32_t hexadecimal(std::size_t digits) {
        char32_t value = 0;
        for (std::size_t i = 0; i < digits; ++i, ++at_) {
            constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
            const std::size_t digit =
                at_ < text_.size() ? kDigits.find(text_[at_]) : std::string_view::npos;
            if (digit == std::string_view::npos)
                fail(fmt::format("expected {} hexadecimal digits in an escape", digits));
            value = value * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
        }
        return value;
    }

    char32_t octal() {
        char32_t value = 0;
        --at_;
        for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
            value = value * 8 + static_cast<char32_t>(text_[at_++] - '0');
        return value;
    }

    // Python reads the backslash as one before the ASCII escape of the character.
    void foreign() {
        const Character c = character_at(text_, at_ - 1);
        const auto code = static_cast<std::uint32_t>(c.code);
        out_ += code < 0x100     ? fmt::format("\\x{:02x}", code)
                : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\U{:08x}", code);
        at_ += static_cast<std::size_t>(c.length) - 1;
    }

    void append(char32_t code) {
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            fail("expected an escape of a Unicode character, got a surrogate or a larger number");
        append_utf8(out_, code);
    }

    [[noreturn]] void fail(std::string_view message) const { throw_syntax(begin_, "{}", message); }

    std::string_view text_;
    std::uint32_t begin_;
    std::size_t at_ = 0;
    std::string out_;
};

} // namespace

Expr* Parser::parse_string() {
    const std::uint32_t at = current_.at;
    std::string text;
    while (current_.kind == TokenKind::kString) {
        const Token token = advance();
        text += Unescaper(token.text.substr(1, token.text.size() - 2), token.at).run();
    }
    char* kept = arena_.make_array<char>(text.size());
    std::copy(text.begin(), text.end(), kept);
    return constant(at, Value::of(borrow_str(arena_, {kept, text.size()})));
}

Expr* Parser::parse_parentheses() {
    const std::uint32_t at = advance().at;
    const bool empty = is_operator(")");
    Expr* value = empty ? make(ExprKind::kTuple, at, {}) : parse_tuple(true);
    expect_operator(")");
    return value;
}

Expr* Parser::parse_list() {
    const std::uint32_t at = advance().at;
    std::vector<Expr*> items;
    while (!is_operator("]")) {
        items.push_back(parse_expression());
        if (!is_operator("]"))
            expect_operator(",");
    }
    advance();
    return make(ExprKind::kList, at, items);
}

Expr* Parser::parse_dict() {
    const std::uint32_t at = advance().at;
    std::vector<Expr*> items;
    while (!is_operator("}")) {
        items.push_back(parse_expression());
        expect_operator(":");
        items.push_back(parse_expression());
        if (!is_operator("}"))
            expect_operator(",");
    }
    advance();
    return make(ExprKind::kDict, at, items);
}

Expr* Parser::parse_postfix(Expr* value) {
    for (;;) {
        if (is_operator(".") || is_operator("["))
            value = parse_subscript(value);
        else if (is_operator("("))
            value = parse_call(value);
        else
            return value;
    }
}

Expr* Parser::parse_filters_and_tests(Expr* value) {
    for (;;) {
        if (skip_operator("|"))
            value = parse_filter(value);
        else if (is_name("is"))
            value = parse_test(value);
        else if (is_operator("("))
            value = parse_call(value);
        else
            return value;
    }
}

Expr* Parser::parse_subscript(Expr* object) {
    const Token token = advance();
    if (token.text == "[")
        return parse_index(object);
    const Token name = advance();
    if (name.kind == TokenKind::kName) {
        Expr* made = make(ExprKind::kAttribute, token.at, std::array{object});
        made->name = name.text;
        return made;
    }
    if (name.kind != TokenKind::kInteger)
        throw_syntax(name.at, "expected a name or a number behind '.', got '{}'", name.text);
    Expr* index = constant(name.at, Value::of(parse_integer(name.text, 0).value_or(0)));
    return make(ExprKind::kItem, token.at, std::array{object, index});
}

// What stands behind "[": an index, a slice, or several of the former, which are a tuple.
Expr* Parser::parse_index(Expr* object) {
    const std::uint32_t at = current_.at;
    const auto bound = [&] {
        const bool none = is_operator("]") || is_operator(",") || is_operator(":");
        return none ? constant(current_.at, Value::none()) : parse_expression();
    };
    std::vector<Expr*> keys;
    while (!is_operator("]")) {
        if (!keys.empty())
            expect_operator(",");
        Expr* start = is_operator(":") ? bound() : parse_expression();
        if (!is_operator(":")) {
            keys.push_back(start);
            continue;
        }
        advance();
        Expr* stop = bound();
        Expr* step = skip_operator(":") ? bound() : constant(current_.at, Value::none());
        if (!keys.empty() || !is_operator("]"))
            throw TemplateError{Code::kUnsupported, "a slice among several keys is not supported",
                                false, at};
        advance();
        return make(ExprKind::kSlice, at, std::array{object, start, stop, step});
    }
    advance();
    Expr* key = keys.size() == 1 ? keys[0] : make(ExprKind::kTuple, at, keys);
    return make(ExprKind::kItem, at, std::array{object, key});
}

// "(a, b=c, *d, **e)": what is given by place goes behind `items`.
CallArguments* Parser::parse_arguments(std::vector<Expr*>& items) {
    auto* call = arena_.make<CallArguments>();
    std::vector<NamedExpr> named;
    const std::uint32_t at = expect_operator("(").at;
    const auto ensure = [&](bool fits) {
        if (!fits)
            throw_syntax(at, "expected arguments by place, then by name, then * and **");
    };
    while (!is_operator(")")) {
        if (is_operator("*")) {
            ensure(call->sequence == nullptr && call->mapping == nullptr);
            advance();
            call->sequence = parse_expression();
        } else if (is_operator("**")) {
            ensure(call->mapping == nullptr);
            advance();
            call->mapping = parse_expression();
        } else if (current_.kind == TokenKind::kName && look().kind == TokenKind::kOperator &&
                   look().text == "=") {
            ensure(call->mapping == nullptr);
            const Token name = advance();
            advance();
            for (const NamedExpr& other : named)
                if (other.name == name.text)
                    throw_syntax(name.at, "expected every argument once, got '{}' twice",
                                 name.text);
            named.push_back({name.text, parse_expression()});
        } else {
            ensure(call->sequence == nullptr && call->mapping == nullptr && named.empty());
            items.push_back(parse_expression());
        }
        if (!is_operator(")"))
            expect_operator(",");
    }
    advance();
    call->named = keep(named);
    return call;
}

Expr* Parser::parse_call(Expr* callee) {
    const std::uint32_t at = current_.at;
    std::vector<Expr*> items{callee};
    CallArguments* call = parse_arguments(items);
    Expr* made = make(ExprKind::kCall, at, items);
    made->call = call;
    return made;
}

std::string_view Parser::parse_dotted_name() {
    std::string name(expect_any_name().text);
    while (skip_operator("."))
        (name += '.') += expect_any_name().text;
    char* kept = arena_.make_array<char>(name.size());
    std::copy(name.begin(), name.end(), kept);
    return {kept, name.size()};
}

// A filter behind its '|'; `value` is nullptr where a block's text is filtered.
Expr* Parser::parse_filter(Expr* value) {
    const std::uint32_t at = current_.at;
    const std::string_view name = parse_dotted_name();
    std::vector<Expr*> items{value};
    CallArguments* call = is_operator("(") ? parse_arguments(items) : arena_.make<CallArguments>();
    Expr* made = make(ExprKind::kFilter, at, items);
    made->name = name;
    made->call = call;
    made->filter = find_filter(name);
    if (made->filter == nullptr && is_unsupported_filter(name))
        throw TemplateError{Code::kUnsupported,
                            fmt::format("the filter '{}' is not supported", name), false, at};
    return made;
}

// "|a|b(c)", for the text of a block.
Expr* Parser::parse_filter_chain() {
    Expr* value = nullptr;
    while (skip_operator("|"))
        value = parse_filter(value);
    return value;
}

Expr* Parser::parse_test(Expr* value) {
    const std::uint32_t at = advance().at;
    const bool negated = skip_name("not");
    const std::string_view name = parse_dotted_name();
    std::vector<Expr*> items{value};
    CallArguments* call = nullptr;
    const bool operand = current_.kind == TokenKind::kName || current_.kind == TokenKind::kString ||
                         current_.kind == TokenKind::kInteger ||
                         current_.kind == TokenKind::kFloat || is_operator("[") || is_operator("{");
    if (is_operator("(")) {
        call = parse_arguments(items);
    } else if (operand && !is_name("else") && !is_name("or") && !is_name("and")) {
        if (is_name("is"))
            unexpected("no second test");
        items.push_back(parse_postfix(parse_primary()));
    }
    Expr* made = make(ExprKind::kTest, at, items);
    made->name = name;
    made->call = call == nullptr ? arena_.make<CallArguments>() : call;
    made->test = find_test(name);
    return negated ? make(ExprKind::kNot, at, std::array{made}) : made;
}

} // namespace lr::text::jinja
