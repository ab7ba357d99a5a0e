// SPDX-License-Identifier: Apache-2.0
#include "text/values/operators.h"

#include "text/values/characters.h"
#include "text/values/escape.h"
#include "text/values/format.h"
#include "text/values/iterate.h"
#include "text/values/key_set.h"
#include "text/values/loop.h"

namespace lr::text::jinja {

bool truth(Context& context, const Value& value) {
    switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
        return false;
    case Kind::kBool:
        return value.boolean();
    case Kind::kInt:
        return value.integer() != 0;
    case Kind::kFloat:
        return value.real() != 0.0;
    case Kind::kString:
        return !value.string().empty();
    default:
        return length(context, value).value_or(1) > 0;
    }
}

std::optional<std::size_t> length(Context& context, const Value& value) {
    switch (value.kind()) {
    case Kind::kUndefined:
        return 0;
    case Kind::kString:
        context.scan(value.view().size());
        return count_characters(value.view());
    case Kind::kList:
    case Kind::kTuple:
        return value.sequence().size;
    case Kind::kDict:
        return value.dict().size;
    case Kind::kView:
        return value.as<View>().dict.dict().size;
    case Kind::kRange:
        return value.as<Range>().size;
    case Kind::kLoop:
        return value.as_mutable<Loop>().length(context);
    default:
        return std::nullopt;
    }
}

namespace {

bool equal_items(Context& context, std::span<const Value> left, std::span<const Value> right) {
    if (left.size() != right.size())
        return false;
    for (std::size_t i = 0; i < left.size(); ++i)
        if (!equal(context, left[i], right[i]))
            return false;
    return true;
}

bool equal_dicts(Context& context, const Dict& left, const Dict& right) {
    if (left.size != right.size)
        return false;
    for (const Entry& entry : left.span()) {
        const Value* other = find(context, right, entry.key);
        if (other == nullptr || !equal(context, entry.value, *other))
            return false;
    }
    return true;
}

bool equal_ranges(const Range& left, const Range& right) {
    if (left.size != right.size || left.size == 0)
        return left.size == right.size;
    return left.start == right.start && (left.size == 1 || left.step == right.step);
}

} // namespace

bool equal(Context& context, const Value& left, const Value& right) {
    context.step();
    if (left.is_number() && right.is_number())
        return compare_numbers(left, right) == Order::kEqual;
    if (left.kind() != right.kind())
        return false;
    switch (left.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
        return true;
    case Kind::kString:
        context.scan(std::min(left.view().size(), right.view().size()));
        return left.view() == right.view();
    case Kind::kList:
    case Kind::kTuple: {
        const Nesting nesting(context);
        return equal_items(context, left.sequence().span(), right.sequence().span());
    }
    case Kind::kDict: {
        const Nesting nesting(context);
        return equal_dicts(context, left.dict(), right.dict());
    }
    case Kind::kRange:
        return equal_ranges(left.as<Range>(), right.as<Range>());
    case Kind::kView:
    case Kind::kMethod:
        throw_unsupported("comparing a {} with a {}", type_name(left), type_name(right));
    default:
        return left.identity() == right.identity();
    }
}

Order order(Context& context, const Value& left, const Value& right) {
    context.step();
    if (left.is_number() && right.is_number())
        return compare_numbers(left, right);
    if (left.is_string() && right.is_string()) {
        // UTF-8 orders as its characters do.
        context.scan(std::min(left.view().size(), right.view().size()));
        const int sign = left.view().compare(right.view());
        return sign < 0 ? Order::kLess : (sign > 0 ? Order::kGreater : Order::kEqual);
    }
    if (left.is_sequence() && left.kind() == right.kind()) {
        const Nesting nesting(context);
        const std::span<const Value> a = left.sequence().span();
        const std::span<const Value> b = right.sequence().span();
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
            if (!equal(context, a[i], b[i]))
                return order(context, a[i], b[i]);
        return a.size() < b.size() ? Order::kLess
                                   : (a.size() > b.size() ? Order::kGreater : Order::kEqual);
    }
    for (const Value* value : {&left, &right})
        if (value->is(Kind::kUndefined))
            throw_undefined(*value);
    throw_error("expected two values that have an order, got a {} and a {}", type_name(left),
                type_name(right));
}

bool contains(Context& context, const Value& container, const Value& item) {
    switch (container.kind()) {
    case Kind::kString:
        if (!item.is_string())
            throw_error("expected a str to look for in a str, got a {}", type_name(item));
        context.scan(container.view().size());
        return container.view().find(item.view()) != std::string_view::npos;
    case Kind::kDict:
        expect_hashable(context, item);
        return find(context, container.dict(), item) != nullptr;
    case Kind::kView:
        if (container.as<View>().what == View::What::kKeys)
            return contains(context, container.as<View>().dict, item);
        break;
    default:
        break;
    }
    Iterator& items = iterate(context, container);
    Value each;
    while (items.next(context, each))
        if (equal(context, each, item))
            return true;
    return false;
}

bool identical(Context& context, const Value& left, const Value& right) {
    if (left.kind() != right.kind())
        return false;
    switch (left.kind()) {
    case Kind::kMissing:
    case Kind::kNone:
        return true;
    case Kind::kBool:
        return left.boolean() == right.boolean();
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kString:
        if (equal(context, left, right))
            throw_unsupported("'sameas' of two equal values of type {}: use ==", type_name(left));
        return false;
    case Kind::kMethod:
        return false; // each look-up makes one
    default:
        return left.identity() == right.identity();
    }
}

bool compare(Context& context, Comparison comparison, const Value& left, const Value& right) {
    switch (comparison) {
    case Comparison::kEqual:
        return equal(context, left, right);
    case Comparison::kNotEqual:
        return !equal(context, left, right);
    case Comparison::kIn:
        return contains(context, right, left);
    case Comparison::kNotIn:
        return !contains(context, right, left);
    case Comparison::kLess:
        return order(context, left, right) == Order::kLess;
    case Comparison::kGreater:
        return order(context, left, right) == Order::kGreater;
    case Comparison::kLessEqual: {
        const Order found = order(context, left, right);
        return found == Order::kLess || found == Order::kEqual;
    }
    case Comparison::kGreaterEqual:
        break;
    }
    const Order found = order(context, left, right);
    return found == Order::kGreater || found == Order::kEqual;
}

namespace {

constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

Value joined(Context& context, const Value& left, const Value& right) {
    const std::span<const Value> a = left.sequence().span();
    const std::span<const Value> b = right.sequence().span();
    Value* items = context.arena.make_array<Value>(a.size() + b.size());
    std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), items));
    const Sequence* both = context.arena.make<Sequence>(items, a.size() + b.size(), false);
    const bool outside = left.outside() || right.outside();
    return left.is(Kind::kList) ? Value::list(both, outside) : Value::tuple(both, outside);
}

Value repeated(Context& context, const Value& value, const Value& times) {
    if (times.integer() < -(Int{1} << 63)) // Python counts with 64 bits; too many fail below
        throw_error("expected an int of 64 bits to repeat by, got a larger one");
    const Int count = std::max<Int>(0, times.integer());
    if (value.is_string()) {
        Builder builder(context);
        const std::size_t size = value.view().size();
        if (size > 0 && count > static_cast<Int>(context.limits().memory_bytes / size))
            throw_limit("expected at most {} bytes of values, got more",
                        context.limits().memory_bytes);
        for (Int i = 0; size > 0 && i < count; ++i)
            builder.add(value.string());
        return Value::of(builder.finish(), value.markup());
    }
    const std::span<const Value> items = value.sequence().span();
    const Int most = static_cast<Int>(context.limits().memory_bytes / sizeof(Value));
    if (!items.empty() && count > most / static_cast<Int>(items.size()))
        throw_limit("expected at most {} bytes of values, got more", context.limits().memory_bytes);
    const std::size_t size = items.size() * static_cast<std::size_t>(items.empty() ? 0 : count);
    Value* copies = context.arena.make_array<Value>(size);
    for (std::size_t i = 0; i < size; ++i)
        copies[i] = items[i % items.size()];
    const Sequence* sequence = context.arena.make<Sequence>(copies, size, false);
    return value.is(Kind::kList) ? Value::list(sequence, value.outside())
                                 : Value::tuple(sequence, value.outside());
}

} // namespace

Value arithmetic(Context& context, Arithmetic operation, const Value& left, const Value& right) {
    if (left.is_number() && right.is_number())
        return calculate(context, operation, left, right);
    if (operation == Arithmetic::kAdd && left.is_string() && right.is_string()) {
        const bool markup = left.markup() || right.markup();
        const Str a = markup ? escaped(context, left) : left.string();
        const Str b = markup ? escaped(context, right) : right.string();
        return Value::of(concat(context, a, b), markup);
    }
    if (operation == Arithmetic::kAdd && left.is_sequence() && left.kind() == right.kind())
        return joined(context, left, right);
    const auto repeats = [](const Value& value) {
        return value.is_string() || value.is_sequence();
    };
    if (operation == Arithmetic::kMultiply && repeats(left) && right.is_integer())
        return repeated(context, left, right);
    if (operation == Arithmetic::kMultiply && left.is_integer() && repeats(right))
        return repeated(context, right, left);
    if (operation == Arithmetic::kModulo && left.is_string())
        return format_percent(context, left, right);
    for (const Value* value : {&left, &right})
        if (value->is(Kind::kUndefined))
            throw_undefined(*value);
    throw_error("'{}' of a {} and a {}", kSymbols[static_cast<int>(operation)], type_name(left),
                type_name(right));
}

Value signed_value(Sign sign, const Value& value) {
    if (value.is(Kind::kUndefined))
        throw_undefined(value);
    if (!value.is_number())
        throw_error("expected a number behind a sign, got a {}", type_name(value));
    if (sign == Sign::kMinus)
        return negate(value);
    return value.is(Kind::kFloat) ? value : Value::of(value.integer(), value.outside());
}

} // namespace lr::text::jinja
