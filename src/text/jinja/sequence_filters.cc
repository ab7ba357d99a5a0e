// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/filter_tables.h"
#include "text/values/arguments.h"
#include "text/values/iterate.h"
#include "text/values/key_set.h"
#include "text/values/operators.h"
#include "text/values/repr.h"
#include "text/values/text_case.h"
#include "text/values/text_ops.h"

#include <algorithm>
#include <cmath>

namespace lr::text::jinja {

namespace {

Value default_value(Context& context, const Value& value, const Arguments& arguments) {
    const auto [fallback, boolean] = bind<2>("default", arguments, {"default_value", "boolean"});
    const bool missing = value.is(Kind::kUndefined) ||
                         (boolean_or(context, boolean, false) && !truth(context, value));
    if (!missing)
        return value;
    return fallback.is(Kind::kMissing) ? new_string(context, "") : fallback;
}

Value first(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("first", arguments);
    Value item;
    if (iterate(context, value).next(context, item))
        return item;
    return new_hint(context, "the first of no items is undefined");
}

Value last(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("last", arguments);
    const auto none = [&] { return new_hint(context, "the last of no items is undefined"); };
    if (value.is_sequence())
        return value.sequence().size == 0 ? none() : value.sequence().span().back();
    Iterator* items = iterate_reversed(context, value);
    if (items == nullptr)
        throw_error("last: expected something with an order, got a {}", type_name(value));
    Value item;
    return items->next(context, item) ? item : none();
}

Value length_filter(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("length", arguments);
    const std::optional<std::size_t> size = length(context, value);
    if (!size)
        throw_error("length: expected something with a length, got a {}", type_name(value));
    return Value::of(static_cast<Int>(*size));
}

Value join(Context& context, const Value& value, const Arguments& arguments) {
    const auto [separator, attribute] = bind<2>("join", arguments, {"d", "attribute"});
    const AttributePath path(context, attribute);
    std::vector<Str> parts;
    for (const Value& item : collect(context, value))
        parts.push_back(to_str(context, path.look_up(context, item)));
    const Str between =
        separator.is(Kind::kMissing) ? make_str(context, "") : to_str(context, separator);
    return Value::of(joined(context, between, parts));
}

Value list(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("list", arguments);
    return new_list(context, collect(context, value));
}

Value reverse(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("reverse", arguments);
    if (value.is_string())
        return get_slice(context, value, Value::none(), Value::none(), Value::of(Int{-1}));
    if (Iterator* items = iterate_reversed(context, value))
        return Value::of(items);
    std::vector<Value> items = collect(context, value);
    std::reverse(items.begin(), items.end());
    return new_list(context, items);
}

// What items are compared by: the attribute, without case unless that is wanted.
Value sort_key(Context& context, const Value& item, const AttributePath& path, bool exact,
               const Value& fallback = {}) {
    const Value key = path.look_up(context, item, fallback);
    return key.is_string() && !exact ? Value::of(to_lower(context, key.string())) : key;
}

struct Keyed {
    Value key, item;
};

// Python's sorted() takes an int here, not anything that is true or false.
bool reversed_or_not(std::string_view function, const Value& given) {
    return integer_or(function, given, 0) != 0;
}

// Stable, also when reversed.
void sort_by_key(Context& context, std::vector<Keyed>& items, bool reversed) {
    std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
        const Order found = order(context, a.key, b.key);
        return found == (reversed ? Order::kGreater : Order::kLess);
    });
}

Value list_of_items(Context& context, const std::vector<Keyed>& keyed) {
    std::vector<Value> items;
    for (const Keyed& each : keyed)
        items.push_back(each.item);
    return new_list(context, items);
}

// "a,b.c": one path for each name.
std::vector<AttributePath> paths_of(Context& context, const Value& attribute) {
    std::vector<AttributePath> paths;
    if (!attribute.is_string())
        return {AttributePath(context, attribute)};
    Str rest = attribute.string();
    for (;;) {
        const std::size_t comma = std::min(rest.view().find(','), rest.size());
        paths.emplace_back(context, Value::of(rest.sub(0, comma)));
        if (comma == rest.size())
            return paths;
        rest = rest.sub(comma + 1);
    }
}

Value sort(Context& context, const Value& value, const Arguments& arguments) {
    const auto [reversed, exact_given, attribute] =
        bind<3>("sort", arguments, {"reverse", "case_sensitive", "attribute"});
    const bool exact = boolean_or(context, exact_given, false);
    const std::vector<AttributePath> paths = paths_of(context, attribute);
    std::vector<Keyed> items;
    for (const Value& item : collect(context, value)) {
        std::vector<Value> keys;
        for (const AttributePath& path : paths)
            keys.push_back(sort_key(context, item, path, exact));
        items.push_back({new_list(context, keys), item});
    }
    sort_by_key(context, items, reversed_or_not("sort", reversed));
    return list_of_items(context, items);
}

Value iterator_over(Context& context, const std::vector<Value>& items) {
    return Value::of(&iterate(context, new_list(context, items)));
}

Value unique(Context& context, const Value& value, const Arguments& arguments) {
    const auto [exact, attribute] = bind<2>("unique", arguments, {"case_sensitive", "attribute"});
    const AttributePath path(context, attribute);
    KeySet seen(context);
    std::vector<Value> items;
    for (const Value& item : collect(context, value)) {
        const Value key = sort_key(context, item, path, boolean_or(context, exact, false));
        if (seen.insert(key).is_new)
            items.push_back(item);
    }
    return iterator_over(context, items);
}

template <bool kMax>
Value extreme(Context& context, const Value& value, const Arguments& arguments) {
    const auto [exact_given, attribute] =
        bind<2>("min", arguments, {"case_sensitive", "attribute"});
    const bool exact = boolean_or(context, exact_given, false);
    const AttributePath path(context, attribute);
    Value best, best_key;
    for (const Value& item : collect(context, value)) {
        const Value key = sort_key(context, item, path, exact);
        if (best.is(Kind::kMissing) ||
            order(context, key, best_key) == (kMax ? Order::kGreater : Order::kLess)) {
            best = item;
            best_key = key;
        }
    }
    return best.is(Kind::kMissing) ? new_hint(context, "the extreme of no items is undefined")
                                   : best;
}

Value sum(Context& context, const Value& value, const Arguments& arguments) {
    const auto [attribute, start] = bind<2>("sum", arguments, {"attribute", "start"});
    if (start.is_string())
        throw_error("sum: expected a start that is no str");
    const AttributePath path(context, attribute);
    Value total = start.is(Kind::kMissing) ? Value::of(Int{0}) : start;
    for (const Value& item : collect(context, value))
        total = arithmetic(context, Arithmetic::kAdd, total, path.look_up(context, item));
    return total;
}

Value batch(Context& context, const Value& value, const Arguments& arguments) {
    const auto [size_given, fill] = bind<2>("batch", arguments, {"linecount", "fill_with"}, 1);
    const Int size = expect_integer("batch", size_given);
    std::vector<Value> lines, line;
    const auto end_line = [&] {
        lines.push_back(new_list(context, line));
        line.clear();
    };
    for (const Value& item : collect(context, value)) {
        // A size below one is never reached but by an empty line, as in jinja2.
        if (static_cast<Int>(line.size()) == size)
            end_line();
        line.push_back(item);
    }
    if (line.empty())
        return iterator_over(context, lines);
    while (is_given(fill) && static_cast<Int>(line.size()) < size) {
        context.arena.charge(sizeof(Value));
        line.push_back(fill);
    }
    end_line();
    return iterator_over(context, lines);
}

Value slice(Context& context, const Value& value, const Arguments& arguments) {
    const auto [count_given, fill] = bind<2>("slice", arguments, {"slices", "fill_with"}, 1);
    const Int count = expect_integer("slice", count_given);
    if (count == 0)
        throw_error("division by zero");
    const std::vector<Value> items = collect(context, value);
    const Int size = static_cast<Int>(items.size());
    std::vector<Value> slices;
    auto at = items.begin();
    for (Int i = 0; i < count; ++i) {
        const bool longer = i < size % count;
        const auto end = at + static_cast<std::ptrdiff_t>(size / count + (longer ? 1 : 0));
        std::vector<Value> part(at, end);
        if (is_given(fill) && !longer)
            part.push_back(fill);
        at = end;
        context.step();
        context.arena.charge(sizeof(Value));
        slices.push_back(new_list(context, part));
    }
    return iterator_over(context, slices);
}

Value group_by(Context& context, const Value& value, const Arguments& arguments) {
    const auto [attribute, fallback, exact_given] =
        bind<3>("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
    const bool exact = boolean_or(context, exact_given, false);
    const AttributePath path(context, attribute);
    std::vector<Keyed> items;
    for (const Value& item : collect(context, value))
        items.push_back({sort_key(context, item, path, exact, fallback), item});
    sort_by_key(context, items, false);
    std::vector<Value> groups;
    for (std::size_t begin = 0; begin < items.size();) {
        std::size_t end = begin + 1;
        while (end < items.size() && equal(context, items[begin].key, items[end].key))
            ++end;
        std::vector<Value> members;
        for (std::size_t i = begin; i < end; ++i)
            members.push_back(items[i].item);
        const Value grouper = path.look_up(context, members[0], fallback);
        Value* pair = context.arena.make_array<Value>(2);
        pair[0] = grouper;
        pair[1] = new_list(context, members);
        groups.push_back(Value::tuple(context.arena.make<Sequence>(pair, std::size_t{2}, true)));
        begin = end;
    }
    return new_list(context, groups);
}

const Dict& expect_dict(std::string_view function, const Value& value) {
    if (value.is(Kind::kUndefined))
        throw_undefined(value);
    if (!value.is(Kind::kDict))
        throw_error("{}: expected a dict, got a {}", function, type_name(value));
    return value.dict();
}

Value dict_sort(Context& context, const Value& value, const Arguments& arguments) {
    const auto [exact_given, by, reversed] =
        bind<3>("dictsort", arguments, {"case_sensitive", "by", "reverse"});
    const bool exact = boolean_or(context, exact_given, false);
    const std::string_view what =
        by.is(Kind::kMissing) ? "key" : expect_string("dictsort", by).view();
    if (what != "key" && what != "value")
        throw_error("dictsort: expected by to be 'key' or 'value', got '{}'", what);
    std::vector<Keyed> items;
    for (const Entry& entry : expect_dict("dictsort", value).span()) {
        const Value& key = what == "key" ? entry.key : entry.value;
        items.push_back(
            {key.is_string() && !exact ? Value::of(to_lower(context, key.string())) : key,
             new_tuple(context, std::array{entry.key, entry.value})});
    }
    sort_by_key(context, items, reversed_or_not("dictsort", reversed));
    return list_of_items(context, items);
}

Value items(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("items", arguments);
    if (value.is(Kind::kUndefined))
        return Value::of(&iterate(context, value));
    return Value::of(&iterate_dict(context, expect_dict("items", value), View::What::kItems));
}

Value abs(Context&, const Value& value, const Arguments& arguments) {
    expect_no_arguments("abs", arguments);
    if (value.is(Kind::kUndefined))
        throw_undefined(value);
    if (!value.is_number())
        throw_error("abs: expected a number, got a {}", type_name(value));
    return absolute(value);
}

std::optional<double> to_real(const Value& value) {
    if (value.is(Kind::kUndefined))
        throw_undefined(value);
    if (value.is_number())
        return as_double(value);
    return value.is_string() ? parse_float(value.view()) : std::nullopt;
}

Value to_integer(Context& context, const Value& value, const Arguments& arguments) {
    const auto [fallback, base_given] = bind<2>("int", arguments, {"default", "base"});
    if (value.is_integer())
        return Value::of(value.integer(), value.outside());
    const bool has_base = base_given.is(Kind::kMissing) || base_given.is_integer();
    if (value.is_string() && has_base) {
        context.scan(value.view().size());
        const Int base = std::clamp<Int>(integer_or("int", base_given, 10), -1, 99);
        if (const std::optional<Int> number = parse_integer(value.view(), static_cast<int>(base)))
            return Value::of(*number, value.outside());
    }
    const std::optional<double> real = to_real(value);
    if (real && std::isfinite(*real))
        return Value::of(truncate_to_integer(*real), value.outside());
    return fallback.is(Kind::kMissing) ? Value::of(Int{0}) : fallback;
}

Value to_float(Context& context, const Value& value, const Arguments& arguments) {
    const auto [fallback] = bind<1>("float", arguments, {"default"});
    if (value.is_string())
        context.scan(value.view().size());
    if (const std::optional<double> real = to_real(value))
        return Value::of(*real, value.outside());
    return fallback.is(Kind::kMissing) ? Value::of(0.0) : fallback;
}

Value round(Context& context, const Value& value, const Arguments& arguments) {
    const auto [precision, method] = bind<2>("round", arguments, {"precision", "method"});
    const Int digits = integer_or("round", precision, 0);
    const std::string_view how =
        method.is(Kind::kMissing) ? "common" : expect_string("round", method).view();
    if (how != "common" && how != "ceil" && how != "floor")
        throw_error("round: expected method to be 'common', 'ceil' or 'floor', got '{}'", how);
    if (value.is(Kind::kUndefined))
        throw_undefined(value);
    if (!value.is_number())
        throw_error("round: expected a number, got a {}", type_name(value));
    if (how == "common")
        return round_number(value, digits);
    const Value unit =
        calculate(context, Arithmetic::kPower, Value::of(Int{10}), Value::of(digits));
    const Value scaled = calculate(context, Arithmetic::kMultiply, value, unit);
    if (scaled.is_integer()) // ceil and floor leave it
        return calculate(context, Arithmetic::kDivide, scaled, unit);
    const double whole = how == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real());
    const Value integer = Value::of(truncate_to_integer(whole), value.outside());
    return calculate(context, Arithmetic::kDivide, integer, unit);
}

constexpr Filter kSequenceFilters[] = {
    {"default", default_value},
    {"d", default_value},
    {"length", length_filter},
    {"count", length_filter},
    {"first", first},
    {"last", last},
    {"join", join},
    {"list", list},
    {"items", items},
    {"reverse", reverse},
    {"sort", sort},
    {"unique", unique},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"sum", sum},
    {"batch", batch},
    {"slice", slice},
    {"groupby", group_by},
    {"dictsort", dict_sort},
    {"abs", abs},
    {"int", to_integer},
    {"float", to_float},
    {"round", round},
};

} // namespace

std::span<const Filter> sequence_filters() {
    return kSequenceFilters;
}

} // namespace lr::text::jinja
