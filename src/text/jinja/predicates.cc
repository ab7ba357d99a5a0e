// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/filters.h"
#include "text/values/arguments.h"
#include "text/values/iterate.h"
#include "text/values/key_set.h"
#include "text/values/methods.h"
#include "text/values/operators.h"
#include "text/values/repr.h"

namespace lr::text::jinja {

namespace {

template <Kind kKind> bool is_kind(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("test", arguments);
    return value.is(kKind);
}

template <bool kWanted> bool is_boolean(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("test", arguments);
    return value.is(Kind::kBool) && value.boolean() == kWanted;
}

bool is_defined(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("defined", arguments);
    return !value.is(Kind::kUndefined);
}

bool is_number(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("number", arguments);
    return value.is_number();
}

template <int kRest>
bool has_rest(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("test", arguments);
    const Value rest = arithmetic(context, Arithmetic::kModulo, value, Value::of(Int{2}));
    return equal(context, rest, Value::of(Int{kRest}));
}

bool is_divisible(Context& context, const Value& value, const Arguments& arguments) {
    const auto [by] = bind<1>("divisibleby", arguments, {"num"}, 1);
    return equal(context, arithmetic(context, Arithmetic::kModulo, value, by), Value::of(Int{0}));
}

// What has a length and items by key.
bool is_sequence(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("sequence", arguments);
    return value.is_string() || value.is_sequence() || value.is(Kind::kDict) ||
           value.is(Kind::kRange) || value.is(Kind::kUndefined);
}

bool is_iterable_test(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("iterable", arguments);
    return is_iterable(value);
}

bool is_callable(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("callable", arguments);
    switch (value.kind()) {
    case Kind::kUndefined: // an attempt to call one is an error of its own
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kLoop:
    case Kind::kJoiner:
        return true;
    default:
        return false;
    }
}

bool is_same(Context& context, const Value& value, const Arguments& arguments) {
    const auto [other] = bind<1>("sameas", arguments, {"other"}, 1);
    return identical(context, value, other);
}

template <Comparison kComparison>
bool compares(Context& context, const Value& value, const Arguments& arguments) {
    const auto [other] = bind<1>("comparison", arguments, {"/other"}, 1);
    return compare(context, kComparison, value, other);
}

bool is_in(Context& context, const Value& value, const Arguments& arguments) {
    const auto [container] = bind<1>("in", arguments, {"seq"}, 1);
    return contains(context, container, value);
}

bool in_case(Context& context, const Value& value, const Arguments& arguments,
             std::string_view method) {
    expect_no_arguments("test", arguments);
    const Value text = Value::of(to_str(context, value));
    return find_string_method(method)->call(context, text, {}).boolean();
}

bool is_lower_text(Context& context, const Value& value, const Arguments& arguments) {
    return in_case(context, value, arguments, "islower");
}

bool is_upper_text(Context& context, const Value& value, const Arguments& arguments) {
    return in_case(context, value, arguments, "isupper");
}

bool is_filter(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("filter", arguments);
    expect_hashable(context, value);
    return value.is_string() &&
           (find_filter(value.view()) != nullptr || is_unsupported_filter(value.view()));
}

bool is_test(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("test", arguments);
    expect_hashable(context, value);
    return value.is_string() && find_test(value.view()) != nullptr;
}

bool is_escaped(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("escaped", arguments);
    return value.markup();
}

constexpr Test kTests[] = {
    {"defined", is_defined},
    {"undefined", is_kind<Kind::kUndefined>},
    {"none", is_kind<Kind::kNone>},
    {"string", is_kind<Kind::kString>},
    {"mapping", is_kind<Kind::kDict>},
    {"iterable", is_iterable_test},
    {"sequence", is_sequence},
    {"boolean", is_kind<Kind::kBool>},
    {"true", is_boolean<true>},
    {"false", is_boolean<false>},
    {"integer", is_kind<Kind::kInt>},
    {"float", is_kind<Kind::kFloat>},
    {"number", is_number},
    {"callable", is_callable},
    {"odd", has_rest<1>},
    {"even", has_rest<0>},
    {"divisibleby", is_divisible},
    {"sameas", is_same},
    {"in", is_in},
    {"lower", is_lower_text},
    {"upper", is_upper_text},
    {"escaped", is_escaped},
    {"filter", is_filter},
    {"test", is_test},
    {"==", compares<Comparison::kEqual>},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"!=", compares<Comparison::kNotEqual>},
    {"ne", compares<Comparison::kNotEqual>},
    {">", compares<Comparison::kGreater>},
    {"gt", compares<Comparison::kGreater>},
    {"greaterthan", compares<Comparison::kGreater>},
    {">=", compares<Comparison::kGreaterEqual>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {"<", compares<Comparison::kLess>},
    {"lt", compares<Comparison::kLess>},
    {"lessthan", compares<Comparison::kLess>},
    {"<=", compares<Comparison::kLessEqual>},
    {"le", compares<Comparison::kLessEqual>},
};

} // namespace

const Test* find_test(std::string_view name) {
    for (const Test& test : kTests)
        if (test.name == name)
            return &test;
    return nullptr;
}

} // namespace lr::text::jinja
