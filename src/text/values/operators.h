// SPDX-License-Identifier: Apache-2.0
//
// text/values/operators.h: the operators of Python on values: truth, comparison, membership,
// arithmetic, attributes, subscripts and slices. What Python refuses is a TemplateError.
#pragma once

#include "text/values/numbers.h"
#include "text/values/value.h"

namespace lr::text::jinja {

bool truth(Context& context, const Value& value);
bool equal(Context& context, const Value& left, const Value& right);
// Of two numbers, strings, lists or tuples; anything else is an error.
Order order(Context& context, const Value& left, const Value& right);
bool contains(Context& context, const Value& container, const Value& item);
// `is`: sure for None, booleans and objects; an error for equal strings or numbers, of which
// Python itself does not say whether they are one object.
bool identical(Context& context, const Value& left, const Value& right);

enum class Comparison {
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kNotIn
};
bool compare(Context& context, Comparison comparison, const Value& left, const Value& right);

Value arithmetic(Context& context, Arithmetic operation, const Value& left, const Value& right);
enum class Sign { kPlus, kMinus };
Value signed_value(Sign sign, const Value& value);

// len(value); nullopt for what has none. Undefined has 0.
std::optional<std::size_t> length(Context& context, const Value& value);

// value.name: an attribute or method, else the item of that name, else undefined.
Value get_attribute(Context& context, const Value& value, std::string_view name);
// value[key]: the item, else (for a string) the attribute, else undefined.
Value get_item(Context& context, const Value& value, const Value& key);
// value[start:stop:step]; absent bounds are None.
Value get_slice(Context& context, const Value& value, const Value& start, const Value& stop,
                const Value& step);

} // namespace lr::text::jinja
