// SPDX-License-Identifier: Apache-2.0
#include "text/values/characters.h"
#include "text/values/loop.h"
#include "text/values/methods.h"
#include "text/values/operators.h"

namespace lr::text::jinja {

namespace {

Value get_cycler_attribute(Context& context, const Value& value, std::string_view name) {
    const Cycler& cycler = value.as<Cycler>();
    if (name == "current")
        return cycler.items[cycler.position];
    if (const MethodInfo* method = find_method(Kind::kCycler, name))
        return Value::of(context.arena.make<Method>(value, method));
    return new_undefined(context, name, "cycler");
}

// The attribute that a Python object of this type has, or a missing value.
Value own_attribute(Context& context, const Value& value, std::string_view name) {
    if (name.starts_with("__") && name.ends_with("__"))
        throw_unsupported("attribute '{}' of a {}", name, type_name(value));
    switch (value.kind()) {
    case Kind::kUndefined:
        throw_undefined(value);
    case Kind::kLoop:
        return get_loop_attribute(context, value, name);
    case Kind::kCycler:
        return get_cycler_attribute(context, value, name);
    case Kind::kNamespace: {
        const Value* found = find(context, value.as<Namespace>(), name);
        if (found == nullptr)
            return {};
        return name.starts_with("_") ? new_undefined(context, name, "namespace") : *found;
    }
    case Kind::kTuple:
        if (value.sequence().is_group && (name == "grouper" || name == "list"))
            return value.sequence().items[name == "grouper" ? 0 : 1];
        break;
    case Kind::kView:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kIterator:
    case Kind::kJoiner:
        throw_unsupported("attribute '{}' of a {}", name, type_name(value));
    default:
        break;
    }
    const MethodInfo* method = find_method(value.kind(), name);
    if (method == nullptr)
        return {};
    if (method->access == MethodInfo::Access::kUnsupported)
        throw_unsupported("method '{}' of a {}", name, type_name(value));
    if (method->access == MethodInfo::Access::kMutates)
        return new_hint(context, "lists and dicts cannot be changed by a template");
    return Value::of(context.arena.make<Method>(value, method));
}

std::optional<std::size_t> index_of(Int index, std::size_t size) {
    const Int from_front = index < 0 ? index + static_cast<Int>(size) : index;
    if (from_front < 0 || from_front >= static_cast<Int>(size))
        return std::nullopt;
    return static_cast<std::size_t>(from_front);
}

// The item of an ordered value; missing when there is none of that index.
Value item_at(Context& context, const Value& value, Int index) {
    const std::optional<std::size_t> size = length(context, value);
    const std::optional<std::size_t> at = index_of(index, size.value_or(0));
    if (!at)
        return {};
    if (value.is_sequence())
        return value.sequence().items[*at];
    if (value.is(Kind::kRange))
        return Value::of(value.as<Range>().at(*at), value.as<Range>().outside);
    context.scan(value.view().size());
    const std::size_t byte = byte_of_character(value.view(), *at);
    const auto bytes = static_cast<std::size_t>(character_at(value.view(), byte).length);
    return Value::of(value.string().sub(byte, byte + bytes), value.markup());
}

} // namespace

Value get_attribute(Context& context, const Value& value, std::string_view name) {
    const Value attribute = own_attribute(context, value, name);
    if (!attribute.is(Kind::kMissing))
        return attribute;
    if (value.is(Kind::kDict)) {
        if (const Value* found = find(value.dict(), name))
            return *found;
    }
    return new_undefined(context, name, type_name(value));
}

Value get_item(Context& context, const Value& value, const Value& key) {
    switch (value.kind()) {
    case Kind::kUndefined:
        throw_undefined(value);
    case Kind::kDict:
        if (const Value* found = find(context, value.dict(), key))
            return *found;
        break;
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
        if (key.is_integer()) {
            const Value item = item_at(context, value, key.integer());
            if (!item.is(Kind::kMissing))
                return item;
        }
        break;
    default:
        break;
    }
    if (key.is_string()) {
        const Value attribute = own_attribute(context, value, key.view());
        if (!attribute.is(Kind::kMissing))
            return attribute;
    }
    return new_undefined(context, key.is_string() ? key.view() : "such an item", type_name(value));
}

namespace {

std::optional<Int> slice_bound(const Value& bound) {
    constexpr Int kFarAway = Int{1} << 62; // behind the end of anything
    if (bound.is(Kind::kNone))
        return std::nullopt;
    if (!bound.is_integer())
        throw_error("expected an int or None in a slice, got a {}", type_name(bound));
    return std::clamp(bound.integer(), -kFarAway, kFarAway);
}

// What a slice takes: items first, first + step, ..., `count` of them, all before `last`.
struct Taken {
    Int first, last, step;
    std::size_t count;
};

Taken taken(std::optional<Int> start, std::optional<Int> stop, Int step, std::size_t length) {
    const Int size = static_cast<Int>(length);
    const Int lowest = step < 0 ? -1 : 0; // where a bound is held
    const Int highest = step < 0 ? size - 1 : size;
    const auto clamp = [&](std::optional<Int> bound, Int otherwise) {
        if (!bound)
            return otherwise;
        const Int at = *bound < 0 ? (*bound < -size ? lowest : *bound + size) : *bound;
        return std::min(std::max(at, lowest), highest);
    };
    const Int first = clamp(start, step < 0 ? highest : lowest);
    const Int last = clamp(stop, step < 0 ? lowest : highest);
    const Int distance = step < 0 ? first - last : last - first;
    if (distance <= 0)
        return {first, last, step, 0};
    const Int stride = step < 0 ? -step : step;
    return {first, last, step, static_cast<std::size_t>((distance - 1) / stride + 1)};
}

Value string_slice(Context& context, const Value& value, const Taken& part) {
    const Str text = value.string();
    if (part.count == 0)
        return Value::of(text.sub(0, 0), value.markup());
    context.scan(text.size());
    const auto first = static_cast<std::size_t>(part.first);
    if (part.step == 1) {
        const std::size_t begin = byte_of_character(text.view(), first);
        const std::size_t size = byte_of_character(text.view().substr(begin), part.count);
        return Value::of(text.sub(begin, begin + size), value.markup());
    }
    std::vector<std::uint32_t> offsets; // of each character, and the end
    for (std::size_t at = 0; at < text.size();) {
        offsets.push_back(static_cast<std::uint32_t>(at));
        at += static_cast<std::size_t>(character_at(text.view(), at).length);
    }
    offsets.push_back(static_cast<std::uint32_t>(text.size()));
    context.step(part.count / 8);
    Builder builder(context);
    for (std::size_t i = 0; i < part.count; ++i) {
        const auto at = static_cast<std::size_t>(part.first + part.step * static_cast<Int>(i));
        builder.add(text.sub(offsets[at], offsets[at + 1]));
    }
    return Value::of(builder.finish(), value.markup());
}

Value range_slice(Context& context, const Range& range, const Taken& part) {
    const auto at = [&](Int index) { return range.start + range.step * index; };
    return Value::of(context.arena.make<Range>(at(part.first), at(part.last),
                                               range.step * part.step, part.count, range.outside));
}

} // namespace

Value get_slice(Context& context, const Value& value, const Value& start, const Value& stop,
                const Value& step) {
    if (value.is(Kind::kUndefined))
        throw_undefined(value);
    if (!value.is_string() && !value.is_sequence() && !value.is(Kind::kRange))
        throw_error("expected something to slice, got a {}", type_name(value));
    const Int stride = slice_bound(step).value_or(1);
    if (stride == 0)
        throw_error("expected a step other than 0 in a slice");
    const std::size_t size = *length(context, value);
    const Taken part = taken(slice_bound(start), slice_bound(stop), stride, size);
    if (value.is_string())
        return string_slice(context, value, part);
    if (value.is(Kind::kRange))
        return range_slice(context, value.as<Range>(), part);
    context.step(part.count / 8);
    std::vector<Value> items;
    for (std::size_t i = 0; i < part.count; ++i)
        items.push_back(value.sequence().items[part.first + part.step * static_cast<Int>(i)]);
    const Value list = new_list(context, items);
    return value.is(Kind::kList) ? list.with_outside(value.outside())
                                 : Value::tuple(&list.sequence(), value.outside());
}

} // namespace lr::text::jinja
