// SPDX-License-Identifier: Apache-2.0
#include "text/values/methods.h"

#include "text/values/arguments.h"
#include "text/values/operators.h"

#include <algorithm>

namespace lr::text::jinja {

namespace {

using Access = MethodInfo::Access;

template <View::What kWhat>
Value view(Context& context, const Value& self, const Arguments& arguments) {
    expect_no_arguments("dict", arguments);
    return Value::of(context.arena.make<View>(kWhat, self));
}

Value get(Context& context, const Value& self, const Arguments& arguments) {
    const auto [key, fallback] = bind<2>("get", arguments, {"/key", "/default"}, 1);
    if (const Value* found = find(context, self.dict(), key))
        return *found;
    return fallback.is(Kind::kMissing) ? Value::none() : fallback;
}

Value copy(Context&, const Value& self, const Arguments& arguments) {
    expect_no_arguments("copy", arguments);
    return self; // nothing changes it
}

Value count(Context& context, const Value& self, const Arguments& arguments) {
    const auto [wanted] = bind<1>("count", arguments, {"/value"}, 1);
    Int number = 0;
    for (const Value& item : self.sequence().span())
        number += equal(context, item, wanted) ? 1 : 0;
    return Value::of(number);
}

Value index(Context& context, const Value& self, const Arguments& arguments) {
    const auto [wanted, start, end] = bind<3>("index", arguments, {"/value", "/start", "/end"}, 1);
    const std::span<const Value> items = self.sequence().span();
    const Int size = static_cast<Int>(items.size());
    const auto bound = [&](const Value& given, Int otherwise) {
        const Int at = integer_or("index", given, otherwise);
        return std::clamp<Int>(at < 0 ? at + size : at, 0, size);
    };
    for (Int i = bound(start, 0); i < bound(end, size); ++i)
        if (equal(context, items[static_cast<std::size_t>(i)], wanted))
            return Value::of(i);
    throw_error("index: expected a value that occurs, got one that does not");
}

Value next(Context&, const Value& self, const Arguments& arguments) {
    expect_no_arguments("next", arguments);
    Cycler& cycler = self.as_mutable<Cycler>();
    const Value item = cycler.items[cycler.position];
    cycler.position = (cycler.position + 1) % cycler.size;
    return item;
}

Value reset(Context&, const Value& self, const Arguments& arguments) {
    expect_no_arguments("reset", arguments);
    self.as_mutable<Cycler>().position = 0;
    return Value::none();
}

constexpr MethodInfo kDictMethods[] = {
    {"items", Access::kAllowed, view<View::What::kItems>},
    {"keys", Access::kAllowed, view<View::What::kKeys>},
    {"values", Access::kAllowed, view<View::What::kValues>},
    {"get", Access::kAllowed, get},
    {"copy", Access::kAllowed, copy},
    {"fromkeys", Access::kUnsupported, nullptr},
    {"clear", Access::kMutates, nullptr},
    {"pop", Access::kMutates, nullptr},
    {"popitem", Access::kMutates, nullptr},
    {"setdefault", Access::kMutates, nullptr},
    {"update", Access::kMutates, nullptr},
};

// Tuples and ranges have the first two.
constexpr MethodInfo kListMethods[] = {
    {"count", Access::kAllowed, count},    {"index", Access::kAllowed, index},
    {"copy", Access::kAllowed, copy},      {"append", Access::kMutates, nullptr},
    {"clear", Access::kMutates, nullptr},  {"extend", Access::kMutates, nullptr},
    {"insert", Access::kMutates, nullptr}, {"pop", Access::kMutates, nullptr},
    {"remove", Access::kMutates, nullptr}, {"reverse", Access::kMutates, nullptr},
    {"sort", Access::kMutates, nullptr},
};

constexpr MethodInfo kCyclerMethods[] = {
    {"next", Access::kAllowed, next},
    {"reset", Access::kAllowed, reset},
    {"items", Access::kUnsupported, nullptr},
    {"pos", Access::kUnsupported, nullptr},
};

constexpr MethodInfo kRangeMethods[] = {
    {"start", Access::kUnsupported, nullptr}, {"stop", Access::kUnsupported, nullptr},
    {"step", Access::kUnsupported, nullptr},  {"count", Access::kUnsupported, nullptr},
    {"index", Access::kUnsupported, nullptr},
};

constexpr MethodInfo kNumberMethods[] = {
    {"as_integer_ratio", Access::kUnsupported, nullptr},
    {"bit_count", Access::kUnsupported, nullptr},
    {"bit_length", Access::kUnsupported, nullptr},
    {"conjugate", Access::kUnsupported, nullptr},
    {"denominator", Access::kUnsupported, nullptr},
    {"from_bytes", Access::kUnsupported, nullptr},
    {"fromhex", Access::kUnsupported, nullptr},
    {"hex", Access::kUnsupported, nullptr},
    {"imag", Access::kUnsupported, nullptr},
    {"is_integer", Access::kUnsupported, nullptr},
    {"numerator", Access::kUnsupported, nullptr},
    {"real", Access::kUnsupported, nullptr},
    {"to_bytes", Access::kUnsupported, nullptr},
};

const MethodInfo* find_in(std::span<const MethodInfo> methods, std::string_view name) {
    for (const MethodInfo& method : methods)
        if (method.name == name)
            return &method;
    return nullptr;
}

// A string, or strings within a list or tuple, as Markup.
Value as_markup(Context& context, const Value& value) {
    if (value.is_string())
        return Value::of(value.string(), true);
    if (!value.is_sequence())
        return value;
    std::vector<Value> items;
    for (const Value& item : value.sequence().span())
        items.push_back(item.is_string() ? Value::of(item.string(), true) : item);
    return value.is(Kind::kList) ? new_list(context, items) : new_tuple(context, items);
}

} // namespace

const MethodInfo* find_method(Kind kind, std::string_view name) {
    switch (kind) {
    case Kind::kString:
        return find_string_method(name);
    case Kind::kDict:
        return find_in(kDictMethods, name);
    case Kind::kList:
        return find_in(kListMethods, name);
    case Kind::kTuple:
        return find_in(std::span(kListMethods).first(2), name);
    case Kind::kRange:
        return find_in(kRangeMethods, name);
    case Kind::kCycler:
        return find_in(kCyclerMethods, name);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
        return find_in(kNumberMethods, name);
    default:
        return nullptr;
    }
}

Value call_method(Context& context, const Method& method, const Arguments& arguments) {
    const Value result = method.info->call(context, method.self, arguments);
    return method.self.markup() ? as_markup(context, result) : result;
}

} // namespace lr::text::jinja
