// SPDX-License-Identifier: Apache-2.0
#include "text/values/format_spec.h"

#include "text/unicode.h"
#include "text/values/characters.h"
#include "text/values/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lr::text::jinja {

namespace {

constexpr Int kMostDigits = 10'000'000; // a wider or longer number is a mistake or an attack

bool is_one_of(char c, std::string_view set) {
    return set.find(c) != std::string_view::npos;
}

Int take_number(std::string_view& text) {
    Int value = 0;
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
        value = value * 10 + (text[0] - '0');
        text.remove_prefix(1);
        if (value > kMostDigits)
            throw_limit("expected a format with at most {} characters, got more", kMostDigits);
    }
    return value;
}

char take_one_of(std::string_view& text, std::string_view set) {
    if (text.empty() || !is_one_of(text[0], set))
        return 0;
    const char c = text[0];
    text.remove_prefix(1);
    return c;
}

// Fill and alignment around text of `characters` characters.
struct Padding {
    std::size_t left = 0, right = 0;
};

Padding padding(Int width, std::size_t characters, char align) {
    if (width <= static_cast<Int>(characters))
        return {};
    const std::size_t missing = static_cast<std::size_t>(width) - characters;
    switch (align) {
    case '<':
        return {0, missing};
    case '^':
        return {missing / 2, missing - missing / 2};
    default:
        return {missing, 0};
    }
}

// The digits of a non-negative whole number.
std::string digits_of(Int value, int base, bool upper) {
    std::string digits;
    do {
        digits += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        value /= base;
    } while (value > 0);
    std::reverse(digits.begin(), digits.end());
    return digits;
}

// Separators between groups of the first `whole` characters.
std::string grouped(const std::string& text, std::size_t whole, char separator, std::size_t group) {
    std::string out;
    for (std::size_t i = 0; i < whole; ++i) {
        if (i > 0 && (whole - i) % group == 0)
            out += separator;
        out += text[i];
    }
    return out + text.substr(whole);
}

struct NumberText {
    std::string sign;
    std::string prefix; // 0x and so on
    std::string digits;
};

NumberText integer_text(Int value, const FormatSpec& spec) {
    NumberText text;
    text.sign = value < 0 ? "-" : "";
    const Int magnitude = value < 0 ? -value : value;
    if (magnitude < 0)
        throw_unsupported("expected integers of at most 127 bits, got a larger one");
    const int base = spec.type == 'b'                       ? 2
                     : spec.type == 'o'                     ? 8
                     : spec.type == 'x' || spec.type == 'X' ? 16
                                                            : 10;
    text.digits = digits_of(magnitude, base, spec.type == 'X');
    if (spec.alternative && base != 10)
        text.prefix = fmt::format("0{}", spec.type);
    if (spec.grouping != 0)
        text.digits = grouped(text.digits, text.digits.size(), spec.grouping, base == 10 ? 3 : 4);
    return text;
}

void strip_zeros(std::string& text) {
    if (text.find('.') == std::string::npos)
        return;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
        text.pop_back();
}

// Without a type a float is its shortest digits, or, with a precision, something like "%g" that
// always has a point or an exponent.
std::string untyped_float(double magnitude, const FormatSpec& spec) {
    if (!spec.precision)
        return format_float(magnitude);
    const int digits = std::max(1, *spec.precision);
    const std::string scientific = print_float(magnitude, 'e', digits - 1);
    const std::size_t e = scientific.find('e');
    const int exponent = std::atoi(scientific.c_str() + e + 1);
    if (exponent < -4 || exponent + 1 > digits - 1) {
        std::string mantissa = scientific.substr(0, e);
        strip_zeros(mantissa);
        return mantissa + scientific.substr(e);
    }
    std::string text = print_float(magnitude, 'f', digits - 1 - exponent);
    strip_zeros(text);
    return text.find('.') == std::string::npos ? text + ".0" : text;
}

NumberText float_text(double value, const FormatSpec& spec) {
    NumberText text;
    text.sign = std::signbit(value) && !std::isnan(value) ? "-" : "";
    const double magnitude = std::fabs(value);
    if (!std::isfinite(value)) {
        text.digits = std::isnan(value) ? "nan" : "inf";
        if (is_one_of(spec.type, "FEG"))
            text.digits = std::isnan(value) ? "NAN" : "INF";
        text.digits += spec.type == '%' ? "%" : "";
        return text;
    }
    if (spec.type == 0)
        text.digits = untyped_float(magnitude, spec);
    else if (spec.type == '%')
        text.digits = print_float(magnitude * 100.0, 'f', spec.precision.value_or(6)) + "%";
    else
        text.digits =
            print_float(magnitude, spec.type, spec.precision.value_or(6), spec.alternative);
    if (spec.grouping != 0)
        text.digits = grouped(
            text.digits, std::min(text.digits.find_first_not_of("0123456789"), text.digits.size()),
            spec.grouping, 3);
    return text;
}

void check_number_spec(const Value& value, const FormatSpec& spec) {
    const bool whole = is_one_of(spec.type, "bcdoxX");
    const bool untyped = spec.type == 0;
    if (value.is(Kind::kFloat) && whole)
        throw_error("format type '{}' does not fit a float", spec.type);
    if (!untyped && !whole && !is_one_of(spec.type, "eEfFgG%"))
        throw_error("format type '{}' does not fit a number", spec.type);
    const bool integral = whole || (untyped && !value.is(Kind::kFloat));
    if (integral && spec.precision)
        throw_error("expected no precision in the format of an int");
    if (spec.grouping == ',' && is_one_of(spec.type, "bcoxX"))
        throw_error("format type '{}' does not go with ','", spec.type);
    if (spec.grouping != 0 && spec.align == '=' && spec.fill == "0" && spec.width > 0)
        throw_unsupported("zeros before a number with '{}'", spec.grouping);
}

} // namespace

FormatSpec parse_format_spec(Str given) {
    const std::string_view whole = given.view();
    std::string_view text = whole;
    FormatSpec spec;
    spec.fill_outside = given.any_outside();
    if (!text.empty()) {
        const auto first = static_cast<std::size_t>(character_at(text, 0).length);
        if (text.size() > first && is_one_of(text[first], "<>=^")) {
            spec.fill = text.substr(0, first);
            spec.align = text[first];
            text.remove_prefix(first + 1);
        } else {
            spec.align = take_one_of(text, "<>=^");
        }
    }
    if (const char sign = take_one_of(text, "+- "))
        spec.sign = sign;
    spec.alternative = take_one_of(text, "#") != 0;
    if (take_one_of(text, "0") != 0 && spec.align == 0) {
        spec.fill = "0";
        spec.align = '0'; // '=' for a number, nothing for text
    }
    spec.width = take_number(text);
    spec.grouping = take_one_of(text, ",_");
    if (take_one_of(text, ".") != 0) {
        if (text.empty() || text[0] < '0' || text[0] > '9')
            throw_error("expected digits behind the point of a format, got '{}'", whole);
        spec.precision = static_cast<int>(take_number(text));
    }
    if (!text.empty()) {
        spec.type = text[0];
        text.remove_prefix(1);
    }
    if (!text.empty() || spec.type == 'n')
        throw_unsupported("the format '{}'", whole);
    return spec;
}

void write_text(Context& context, Builder& builder, Str text, const FormatSpec& spec) {
    context.scan(text.size());
    if (spec.precision)
        text =
            text.sub(0, byte_of_character(text.view(), static_cast<std::size_t>(*spec.precision)));
    const char align = spec.align == 0 || spec.align == '0' ? '<' : spec.align;
    const Padding pad = padding(spec.width, count_characters(text.view()), align);
    builder.repeat(spec.fill, pad.left, spec.fill_outside);
    builder.add(text);
    builder.repeat(spec.fill, pad.right, spec.fill_outside);
}

void write_number(Context& context, Builder& builder, const Value& value, const FormatSpec& given) {
    FormatSpec spec = given;
    spec.align = spec.align == '0' ? '=' : spec.align;
    check_number_spec(value, spec);
    if (spec.type == 'c') {
        const Int code = value.integer();
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            throw_error("expected the number of a character, got {}", code);
        std::string character;
        append_utf8(character, static_cast<char32_t>(code));
        return write_text(context, builder, make_str(context, character, value.outside()), spec);
    }
    const bool integral = value.is_integer() && (spec.type == 0 || is_one_of(spec.type, "bdoxX"));
    NumberText text =
        integral ? integer_text(value.integer(), spec)
                 : float_text(value.is(Kind::kFloat) ? value.real()
                                                     : static_cast<double>(value.integer()),
                              spec);
    if (text.sign.empty() && spec.sign != '-')
        text.sign = spec.sign;
    const std::string head = text.sign + text.prefix;
    const Padding pad = padding(spec.width, head.size() + text.digits.size(), spec.align);
    const bool inner = spec.align == '=';
    builder.repeat(spec.fill, inner ? 0 : pad.left, spec.fill_outside);
    builder.add(head, value.outside());
    builder.repeat(spec.fill, inner ? pad.left : 0, spec.fill_outside);
    builder.add(text.digits, value.outside());
    builder.repeat(spec.fill, pad.right, spec.fill_outside);
}

} // namespace lr::text::jinja
