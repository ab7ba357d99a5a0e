// SPDX-License-Identifier: Apache-2.0
#include "text/values/value.h"

#include "text/values/operators.h"

#include <algorithm>
#include <numeric>

namespace lr::text::jinja {

namespace {

// Up to here a scan over the keys is as fast as a search.
constexpr std::size_t kScannedEntries = 8;

} // namespace

Value Value::object(Kind kind, const void* object, bool outside) {
    Value value;
    value.kind_ = kind;
    value.outside_ = outside;
    value.object_ = object;
    return value;
}

Value Value::none(bool outside) {
    return object(Kind::kNone, nullptr, outside);
}

Value Value::of(bool boolean, bool outside) {
    Value value = object(Kind::kBool, nullptr, outside);
    value.boolean_ = boolean;
    return value;
}

Value Value::of(Int integer, bool outside) {
    Value value = object(Kind::kInt, nullptr, outside);
    value.integer_ = integer;
    return value;
}

Value Value::of(double real, bool outside) {
    Value value = object(Kind::kFloat, nullptr, outside);
    value.real_ = real;
    return value;
}

Value Value::of(Str string, bool markup) {
    Value value;
    value.kind_ = Kind::kString;
    value.markup_ = markup;
    value.string_ = string;
    return value;
}

Value Value::list(const Sequence* sequence, bool outside) {
    return object(Kind::kList, sequence, outside);
}

Value Value::tuple(const Sequence* sequence, bool outside) {
    return object(Kind::kTuple, sequence, outside);
}

Value Value::of(const Dict* dict, bool outside) {
    return object(Kind::kDict, dict, outside);
}

Value Value::with_outside(bool outside) const {
    Value value = *this;
    value.outside_ = outside;
    return value;
}

std::string_view type_name(const Value& value) {
    switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
        return "undefined";
    case Kind::kNone:
        return "NoneType";
    case Kind::kBool:
        return "bool";
    case Kind::kInt:
        return "int";
    case Kind::kFloat:
        return "float";
    case Kind::kString:
        return value.markup() ? "Markup" : "str";
    case Kind::kList:
        return "list";
    case Kind::kTuple:
        return "tuple";
    case Kind::kDict:
        return "dict";
    case Kind::kView:
        return "dict view";
    case Kind::kRange:
        return "range";
    case Kind::kIterator:
        return "iterator";
    case Kind::kNamespace:
        return "namespace";
    case Kind::kMacro:
        return "macro";
    case Kind::kFunction:
        return "function";
    case Kind::kMethod:
        return "method";
    case Kind::kLoop:
        return "loop";
    case Kind::kCycler:
        return "cycler";
    case Kind::kJoiner:
        return "joiner";
    }
    return "";
}

namespace {

const Sequence* make_sequence(Context& context, std::span<const Value> items) {
    Value* copy = context.arena.make_array<Value>(items.size());
    std::copy(items.begin(), items.end(), copy);
    return context.arena.make<Sequence>(copy, items.size(), false);
}

} // namespace

Value new_list(Context& context, std::span<const Value> items) {
    return Value::list(make_sequence(context, items));
}

Value new_tuple(Context& context, std::span<const Value> items) {
    return Value::tuple(make_sequence(context, items));
}

Value new_string(Context& context, std::string_view text, bool outside) {
    return Value::of(make_str(context, text, outside));
}

Value new_undefined(Context& context, std::string_view name, std::string_view owner) {
    return Value::of(context.arena.make<Undefined>(name, owner, std::string_view()));
}

Value new_hint(Context& context, std::string_view hint) {
    return Value::of(context.arena.make<Undefined>(std::string_view(), std::string_view(), hint));
}

void throw_undefined(const Value& value) {
    const Undefined& undefined = value.as<Undefined>();
    if (!undefined.hint.empty())
        throw_error("{}", undefined.hint);
    if (!undefined.owner.empty())
        throw_error("expected a {} with '{}', got one without", undefined.owner, undefined.name);
    throw_error("'{}' is undefined", undefined.name);
}

const Dict* make_dict(Arena& arena, std::span<const Entry> entries) {
    Entry* copy = arena.make_array<Entry>(entries.size());
    std::copy(entries.begin(), entries.end(), copy);
    std::uint32_t* order = nullptr;
    const bool strings = std::all_of(entries.begin(), entries.end(),
                                     [](const Entry& entry) { return entry.key.is_string(); });
    if (strings && entries.size() > kScannedEntries) {
        order = arena.make_array<std::uint32_t>(entries.size());
        std::iota(order, order + entries.size(), 0u);
        std::sort(order, order + entries.size(), [&](std::uint32_t a, std::uint32_t b) {
            return copy[a].key.view() < copy[b].key.view();
        });
    }
    return arena.make<Dict>(copy, entries.size(), order);
}

const Value* find(const Dict& dict, std::string_view key) {
    if (dict.order == nullptr) {
        for (const Entry& entry : dict.span())
            if (entry.key.is_string() && entry.key.view() == key)
                return &entry.value;
        return nullptr;
    }
    const std::uint32_t* end = dict.order + dict.size;
    const std::uint32_t* found = std::partition_point(
        dict.order, end, [&](std::uint32_t i) { return dict.entries[i].key.view() < key; });
    const bool equal = found != end && dict.entries[*found].key.view() == key;
    return equal ? &dict.entries[*found].value : nullptr;
}

const Value* find(Context& context, const Dict& dict, const Value& key) {
    if (key.is_string() && (dict.order != nullptr || dict.size <= kScannedEntries))
        return find(dict, key.view());
    context.step(dict.size / 16);
    for (const Entry& entry : dict.span())
        if (equal(context, entry.key, key))
            return &entry.value;
    return nullptr;
}

const Value* find(Context& context, const Namespace& attributes, std::string_view name) {
    context.step(attributes.size / 16);
    for (std::size_t i = 0; i < attributes.size; ++i)
        if (attributes.attributes[i].key.view() == name)
            return &attributes.attributes[i].value;
    return nullptr;
}

void set(Context& context, Namespace& attributes, std::string_view name, const Value& value,
         bool outside_name) {
    if (const Value* known = find(context, attributes, name)) {
        *const_cast<Value*>(known) = value;
        return;
    }
    if (attributes.size == attributes.capacity) {
        const std::size_t capacity = std::max<std::size_t>(4, 2 * attributes.capacity);
        Entry* entries = context.arena.make_array<Entry>(capacity);
        std::copy_n(attributes.attributes, attributes.size, entries);
        attributes.attributes = entries;
        attributes.capacity = capacity;
    }
    const Value key = new_string(context, name, outside_name);
    attributes.attributes[attributes.size++] = {key, value};
}

} // namespace lr::text::jinja
