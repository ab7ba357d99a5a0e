// SPDX-License-Identifier: Apache-2.0
//
// text/values/numbers.h: Python's numbers: text to number and back, arithmetic that never wraps or
// loses digits unseen, comparison of integers with floats.
#pragma once

#include "text/values/value.h"

#include <optional>
#include <string>

namespace lr::text::jinja {

enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

// Both are numbers (bool, int, float).
Value calculate(Context& context, Arithmetic operation, const Value& left, const Value& right);
Value negate(const Value& number);
Value absolute(const Value& number);

enum class Order { kLess, kEqual, kGreater, kUnordered };
Order compare_numbers(const Value& left, const Value& right);

double as_double(const Value& number);
std::optional<Int> exact_integer(double value); // when it is a whole number that an Int holds
Int truncate_to_integer(double value);          // int(value)

std::string format_integer(Int value);
std::string format_float(double value); // repr(): the shortest digits that read back equal

// printf's type e, f, g (or E, F, G), rounded half to even; `alternative` is its flag #.
std::string print_float(double value, char type, int digits, bool alternative = false);

// int(text, base) and float(text); nullopt where Python would raise ValueError.
std::optional<Int> parse_integer(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// round(number, digits).
Value round_number(const Value& number, Int digits);

} // namespace lr::text::jinja
