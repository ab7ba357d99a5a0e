// SPDX-License-Identifier: Apache-2.0
#include "text/values/numbers.h"

#include "text/values/characters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace lr::text::jinja {

namespace {

constexpr double kIntBound = 0x1p126; // an Int holds every whole number below

[[noreturn]] void throw_too_large() {
    throw_unsupported("expected integers of at most 127 bits, got a larger one");
}

Int checked_add(Int a, Int b) {
    Int sum = 0;
    if (__builtin_add_overflow(a, b, &sum))
        throw_too_large();
    return sum;
}

Int checked_multiply(Int a, Int b) {
    Int product = 0;
    if (__builtin_mul_overflow(a, b, &product))
        throw_too_large();
    return product;
}

Int checked_negate(Int a) {
    Int difference = 0;
    if (__builtin_sub_overflow(Int{0}, a, &difference))
        throw_too_large();
    return difference;
}

Int floor_divide(Int a, Int b) {
    if (b == -1)
        return checked_negate(a);
    const Int quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int floor_modulo(Int a, Int b) {
    if (b == -1)
        return 0;
    const Int rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Int power(Context& context, Int base, Int exponent) {
    Int result = 1;
    while (exponent > 0) {
        context.step();
        if (exponent % 2 != 0)
            result = checked_multiply(result, base);
        exponent /= 2;
        if (exponent > 0)
            base = checked_multiply(base, base);
    }
    return result;
}

// Rounded once, as Python does it; operands that a double does not hold would be rounded before.
double divide(Int a, Int b) {
    constexpr Int kExact = Int{1} << 53;
    if (a < -kExact || a > kExact || b < -kExact || b > kExact)
        throw_unsupported("expected integers of at most 53 bits in a division, got larger ones");
    return static_cast<double>(a) / static_cast<double>(b);
}

double float_modulo(double a, double b) {
    const double rest = std::fmod(a, b);
    if (rest == 0.0)
        return std::copysign(0.0, b);
    return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

double float_floor_divide(double a, double b) {
    const double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0.0 && (rest < 0.0) != (b < 0.0))
        quotient -= 1.0;
    if (quotient == 0.0)
        return std::copysign(0.0, a / b);
    const double floor = std::floor(quotient);
    return quotient - floor > 0.5 ? floor + 1.0 : floor;
}

double float_power(double base, double exponent) {
    if (base == 0.0 && exponent < 0.0)
        throw_error("0.0 cannot be raised to a negative power");
    if (base < 0.0 && std::isfinite(exponent) && exponent != std::floor(exponent))
        throw_unsupported("a negative number to a power that is not whole: complex numbers are "
                          "not supported");
    const double result = std::pow(base, exponent);
    if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent))
        throw_error("the result of {} ** {} is too large", base, exponent);
    return result;
}

Value calculate_integers(Context& context, Arithmetic operation, Int a, Int b, bool outside) {
    switch (operation) {
    case Arithmetic::kAdd:
        return Value::of(checked_add(a, b), outside);
    case Arithmetic::kSubtract: {
        Int difference = 0;
        if (__builtin_sub_overflow(a, b, &difference))
            throw_too_large();
        return Value::of(difference, outside);
    }
    case Arithmetic::kMultiply:
        return Value::of(checked_multiply(a, b), outside);
    case Arithmetic::kDivide:
        return Value::of(divide(a, b), outside);
    case Arithmetic::kFloorDivide:
        return Value::of(floor_divide(a, b), outside);
    case Arithmetic::kModulo:
        return Value::of(floor_modulo(a, b), outside);
    case Arithmetic::kPower:
        break;
    }
    if (b >= 0)
        return Value::of(power(context, a, b), outside);
    if (a == 0)
        throw_error("0 cannot be raised to a negative power");
    return Value::of(float_power(static_cast<double>(a), static_cast<double>(b)), outside);
}

Value calculate_floats(Arithmetic operation, double a, double b, bool outside) {
    switch (operation) {
    case Arithmetic::kAdd:
        return Value::of(a + b, outside);
    case Arithmetic::kSubtract:
        return Value::of(a - b, outside);
    case Arithmetic::kMultiply:
        return Value::of(a * b, outside);
    case Arithmetic::kDivide:
        return Value::of(a / b, outside);
    case Arithmetic::kFloorDivide:
        return Value::of(float_floor_divide(a, b), outside);
    case Arithmetic::kModulo:
        return Value::of(float_modulo(a, b), outside);
    case Arithmetic::kPower:
        break;
    }
    return Value::of(float_power(a, b), outside);
}

} // namespace

Value calculate(Context& context, Arithmetic operation, const Value& left, const Value& right) {
    const bool outside = left.outside() || right.outside();
    const bool divides = operation == Arithmetic::kDivide ||
                         operation == Arithmetic::kFloorDivide || operation == Arithmetic::kModulo;
    if (divides && as_double(right) == 0.0)
        throw_error("division by zero");
    if (left.is_integer() && right.is_integer())
        return calculate_integers(context, operation, left.integer(), right.integer(), outside);
    return calculate_floats(operation, as_double(left), as_double(right), outside);
}

Value negate(const Value& number) {
    if (number.is(Kind::kFloat))
        return Value::of(-number.real(), number.outside());
    return Value::of(checked_negate(number.integer()), number.outside());
}

Value absolute(const Value& number) {
    if (number.is(Kind::kFloat))
        return Value::of(std::fabs(number.real()), number.outside());
    const Int value = number.integer();
    return Value::of(value < 0 ? checked_negate(value) : value, number.outside());
}

double as_double(const Value& number) {
    return number.is(Kind::kFloat) ? number.real() : static_cast<double>(number.integer());
}

namespace {

template <typename T> Order order_of(T a, T b) {
    if (a < b)
        return Order::kLess;
    if (a > b)
        return Order::kGreater;
    return a == b ? Order::kEqual : Order::kUnordered;
}

Order compare_exactly(Int a, double b) {
    if (std::isnan(b))
        return Order::kUnordered;
    if (std::fabs(b) >= kIntBound)
        return b > 0 ? Order::kLess : Order::kGreater;
    const double whole = std::trunc(b);
    const Order order = order_of(a, static_cast<Int>(whole));
    return order == Order::kEqual ? order_of(0.0, b - whole) : order;
}

Order reversed(Order order) {
    if (order == Order::kLess)
        return Order::kGreater;
    return order == Order::kGreater ? Order::kLess : order;
}

} // namespace

Order compare_numbers(const Value& left, const Value& right) {
    if (left.is(Kind::kFloat) && right.is(Kind::kFloat))
        return order_of(left.real(), right.real());
    if (right.is(Kind::kFloat))
        return compare_exactly(left.integer(), right.real());
    if (left.is(Kind::kFloat))
        return reversed(compare_exactly(right.integer(), left.real()));
    return order_of(left.integer(), right.integer());
}

std::optional<Int> exact_integer(double value) {
    if (!(std::fabs(value) < kIntBound) || value != std::trunc(value))
        return std::nullopt;
    return static_cast<Int>(value);
}

Int truncate_to_integer(double value) {
    if (std::isnan(value) || std::isinf(value))
        throw_error("expected a finite number to make an integer of, got {}", value);
    if (std::fabs(value) >= kIntBound)
        throw_too_large();
    return static_cast<Int>(value);
}

std::string format_integer(Int value) {
    return fmt::format("{}", value);
}

std::string format_float(double value) {
    std::string text = fmt::format("{}", value);
    if (text.find_first_not_of("-0123456789") == std::string::npos)
        text += ".0";
    return text;
}

std::string print_float(double value, char type, int digits, bool alternative) {
    const std::string format = fmt::format("%{}.{}{}", alternative ? "#" : "", digits, type);
    std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, format.c_str(), value)),
                     '\0');
    std::snprintf(text.data(), text.size() + 1, format.c_str(), value);
    return text;
}

namespace {

// Characters Python would take for digits and this parser does not.
void refuse_foreign_digits(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const Character c = character_at(text, at);
        if (c.code >= 0x80 && is_decimal(c.code))
            throw_unsupported("expected the digits 0 to 9 in a number, got others");
        at += static_cast<std::size_t>(c.length);
    }
}

int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

std::string_view trimmed(std::string_view text) {
    const Stretch rest = stripped(text, true, true);
    return text.substr(rest.begin, rest.end - rest.begin);
}

bool take_sign(std::string_view& text) {
    const bool signed_ = !text.empty() && (text[0] == '+' || text[0] == '-');
    const bool negative = signed_ && text[0] == '-';
    text.remove_prefix(signed_ ? 1 : 0);
    return negative;
}

// The base of a prefix 0x, 0o or 0b, or 0.
int prefix_base(std::string_view text) {
    if (text.size() < 2 || text[0] != '0')
        return 0;
    switch (text[1] | 0x20) {
    case 'x':
        return 16;
    case 'o':
        return 8;
    case 'b':
        return 2;
    default:
        return 0;
    }
}

// Digits with single underscores between them.
std::optional<Int> read_digits(std::string_view text, int base, bool underscore_first) {
    Int value = 0;
    bool after_digit = underscore_first;
    for (char c : text) {
        if (c == '_') {
            if (!after_digit)
                return std::nullopt;
            after_digit = false;
            continue;
        }
        const int digit = digit_value(c);
        if (digit >= base)
            return std::nullopt;
        value = checked_add(checked_multiply(value, base), digit);
        after_digit = true;
    }
    return text.empty() || !after_digit ? std::nullopt : std::optional(value);
}

// The characters without underscores, which may stand only between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
    std::string digits;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            digits += text[i];
            continue;
        }
        const bool between = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 10 &&
                             digit_value(text[i + 1]) < 10;
        if (!between)
            return std::nullopt;
    }
    return digits;
}

bool is_decimal_number(std::string_view text) {
    std::size_t at = 0;
    const auto skip_digits = [&] {
        const std::size_t begin = at;
        while (at < text.size() && digit_value(text[at]) < 10)
            ++at;
        return at - begin;
    };
    std::size_t digits = skip_digits();
    if (at < text.size() && text[at] == '.') {
        ++at;
        digits += skip_digits();
    }
    if (digits == 0)
        return false;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        at += at < text.size() && (text[at] == '+' || text[at] == '-') ? 1 : 0;
        if (skip_digits() == 0)
            return false;
    }
    return at == text.size();
}

} // namespace

std::optional<Int> parse_integer(std::string_view text, int base) {
    if (base != 0 && (base < 2 || base > 36))
        return std::nullopt;
    refuse_foreign_digits(text);
    text = trimmed(text);
    const bool negative = take_sign(text);
    const int prefix = prefix_base(text);
    // Within base 16, "0b1" is a number without a prefix.
    const bool prefixed = prefix != 0 && (base == 0 || base == prefix);
    if (prefixed)
        text.remove_prefix(2);
    else if (base == 0 && text.size() > 1 && text[0] == '0' &&
             text.find_first_not_of("0_") != std::string_view::npos)
        return std::nullopt;
    const int used_base = base != 0 ? base : (prefix != 0 ? prefix : 10);
    const std::optional<Int> value = read_digits(text, used_base, prefixed);
    return value && negative ? std::optional(-*value) : value;
}

std::optional<double> parse_float(std::string_view text) {
    refuse_foreign_digits(text);
    text = trimmed(text);
    const bool negative = take_sign(text);
    std::string word;
    for (char c : text.substr(0, 9))
        word += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    const double sign = negative ? -1.0 : 1.0;
    if (word == "inf" || word == "infinity")
        return sign * std::numeric_limits<double>::infinity();
    if (word == "nan")
        return std::numeric_limits<double>::quiet_NaN();
    const std::optional<std::string> digits = without_underscores(text);
    if (!digits || !is_decimal_number(*digits))
        return std::nullopt;
    return sign * std::strtod(digits->c_str(), nullptr);
}

namespace {

Int round_to_multiple(Int value, Int unit) {
    const Int rest = floor_modulo(value, unit);
    const Int below = checked_add(value, -rest);
    const bool up = 2 * rest > unit || (2 * rest == unit && floor_modulo(below / unit, 2) == 1);
    return up ? checked_add(below, unit) : below;
}

} // namespace

Value round_number(const Value& number, Int digits) {
    constexpr Int kMostDigits = 330; // beyond, a double is all there
    if (number.is(Kind::kFloat)) {
        const double value = number.real();
        if (!std::isfinite(value) || digits > kMostDigits)
            return number;
        if (digits < 0)
            throw_unsupported("expected round to keep 0 or more digits of a float, got {}", digits);
        // The C library rounds the exact decimal expansion, half to even.
        const std::string text = print_float(value, 'f', static_cast<int>(digits));
        return Value::of(std::strtod(text.c_str(), nullptr), number.outside());
    }
    if (digits >= 0)
        return Value::of(number.integer(), number.outside());
    if (digits < -37)
        return Value::of(Int{0}, number.outside());
    Int unit = 1;
    for (Int i = 0; i > digits; --i)
        unit *= 10;
    return Value::of(round_to_multiple(number.integer(), unit), number.outside());
}

} // namespace lr::text::jinja
