// SPDX-License-Identifier: Apache-2.0
//
// Filters whose items come into being when they are drawn, as jinja2's generators.
#include "text/jinja/filter_tables.h"
#include "text/values/arguments.h"
#include "text/values/iterate.h"
#include "text/values/operators.h"

namespace lr::text::jinja {

namespace {

// The arguments in the arena, where they outlive the call.
Arguments kept(Context& context, const Arguments& arguments) {
    NamedValue* named = context.arena.make_array<NamedValue>(arguments.named.size());
    std::copy(arguments.named.begin(), arguments.named.end(), named);
    return {new_tuple(context, arguments.positional).sequence().span(),
            {named, arguments.named.size()}};
}

const Filter& filter_named(const Value& name) {
    const std::string_view text = expect_string("map", name).view();
    const Filter* filter = find_filter(text);
    if (filter == nullptr && is_unsupported_filter(text))
        throw_unsupported("the filter '{}'", text);
    if (filter == nullptr)
        throw_error("map: expected the name of a filter, got '{}'", text);
    return *filter;
}

class MapIterator final : public Iterator {
  public:
    MapIterator(Iterator& items, const Filter& filter, const Arguments& arguments)
        : items_(items), filter_(filter), arguments_(arguments) {}
    bool next(Context& context, Value& item) override {
        const Nesting nesting(context);
        if (!items_.next(context, item))
            return false;
        item = filter_.apply(context, item, arguments_);
        return true;
    }

  private:
    Iterator& items_;
    const Filter& filter_;
    const Arguments arguments_;
};

class AttributeIterator final : public Iterator {
  public:
    AttributeIterator(Iterator& items, AttributePath path, const Value& fallback)
        : items_(items), path_(path), fallback_(fallback) {}
    bool next(Context& context, Value& item) override {
        const Nesting nesting(context);
        if (!items_.next(context, item))
            return false;
        item = path_.look_up(context, item, fallback_);
        return true;
    }

  private:
    Iterator& items_;
    const AttributePath path_;
    const Value fallback_;
};

class SelectIterator final : public Iterator {
  public:
    SelectIterator(Iterator& items, AttributePath path, const Test* test,
                   const Arguments& arguments, bool wanted)
        : items_(items), path_(path), test_(test), arguments_(arguments), wanted_(wanted) {}
    bool next(Context& context, Value& item) override {
        const Nesting nesting(context);
        Value candidate;
        while (items_.next(context, candidate)) {
            const Value tested = path_.look_up(context, candidate);
            const bool holds = test_ == nullptr ? truth(context, tested)
                                                : test_->holds(context, tested, arguments_);
            if (holds != wanted_)
                continue;
            item = candidate;
            return true;
        }
        return false;
    }

  private:
    Iterator& items_;
    const AttributePath path_;
    const Test* test_;
    const Arguments arguments_;
    const bool wanted_;
};

// A value that is false is not looked into, and neither are the arguments.
Value no_items(Context& context) {
    return Value::of(&iterate(context, new_list(context, {})));
}

Value map(Context& context, const Value& value, const Arguments& arguments) {
    if (!truth(context, value))
        return no_items(context);
    Iterator& items = iterate(context, value);
    if (!arguments.positional.empty()) {
        const Filter& filter = filter_named(arguments.positional[0]);
        const Arguments rest = kept(context, {arguments.positional.subspan(1), arguments.named});
        return Value::of(context.arena.make<MapIterator>(items, filter, rest));
    }
    const auto [attribute, fallback] = bind<2>("map", arguments, {"attribute", "default"}, 1);
    return Value::of(
        context.arena.make<AttributeIterator>(items, AttributePath(context, attribute), fallback));
}

template <bool kWanted, bool kAttribute>
Value select(Context& context, const Value& value, const Arguments& arguments) {
    if (!truth(context, value))
        return no_items(context);
    Iterator& items = iterate(context, value);
    std::span<const Value> rest = arguments.positional;
    Value attribute;
    if (kAttribute) {
        if (rest.empty())
            throw_error("selectattr: expected the name of an attribute, got none");
        attribute = rest[0];
        rest = rest.subspan(1);
    }
    const Test* test = nullptr;
    if (!rest.empty()) {
        const std::string_view name = expect_string("select", rest[0]).view();
        test = find_test(name);
        if (test == nullptr)
            throw_error("select: expected the name of a test, got '{}'", name);
        rest = rest.subspan(1);
    }
    return Value::of(
        context.arena.make<SelectIterator>(items, AttributePath(context, attribute), test,
                                           kept(context, {rest, arguments.named}), kWanted));
}

constexpr Filter kLazyFilters[] = {
    {"map", map},
    {"select", select<true, false>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<false, true>},
};

} // namespace

std::span<const Filter> lazy_filters() {
    return kLazyFilters;
}

} // namespace lr::text::jinja
