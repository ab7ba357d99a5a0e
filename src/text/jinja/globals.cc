// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/globals.h"

#include "text/values/arguments.h"
#include "text/values/iterate.h"
#include "text/values/key_set.h"
#include "text/values/repr.h"

#include <algorithm>

namespace lr::text::jinja {

namespace {

Value range(Context& context, const Arguments& arguments) {
    constexpr Int kMostItems = 100'000; // jinja2's sandbox allows no more either
    constexpr Int kFarthest = Int{1} << 62;
    const auto [a, b, c] = bind<3>("range", arguments, {"/start", "/stop", "/step"}, 1);
    const bool one = b.is(Kind::kMissing);
    const Int start = one ? 0 : expect_integer("range", a);
    const Int stop = expect_integer("range", one ? a : b);
    const Int step = integer_or("range", c, 1);
    for (Int value : {start, stop, step})
        if (value < -kFarthest || value > kFarthest)
            throw_unsupported("range: expected integers of at most 62 bits, got a larger one");
    if (step == 0)
        throw_error("range: expected a step other than 0");
    const Int distance = step > 0 ? stop - start : start - stop;
    const Int stride = step > 0 ? step : -step;
    const Int size = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    if (size > kMostItems)
        throw_limit("range: expected at most {} items, got {}", kMostItems, size);
    const bool outside = a.outside() || b.outside() || c.outside();
    return Value::of(
        context.arena.make<Range>(start, stop, step, static_cast<std::size_t>(size), outside));
}

// The entries of dict(...) and namespace(...).
Value dict_of(Context& context, std::string_view function, const Arguments& arguments) {
    if (arguments.positional.size() > 1)
        throw_error("{}: expected at most 1 argument by place, got {}", function,
                    arguments.positional.size());
    DictBuilder builder(context);
    if (!arguments.positional.empty()) {
        const Value& source = arguments.positional[0];
        if (source.is(Kind::kDict)) {
            for (const Entry& entry : source.dict().span())
                builder.set(entry.key, entry.value);
        } else if (source.is(Kind::kUndefined)) {
            throw_undefined(source);
        } else {
            for (const Value& item : collect(context, source)) {
                const std::vector<Value> pair = collect(context, item);
                if (pair.size() != 2)
                    throw_error("{}: expected pairs of key and value, got {} items", function,
                                pair.size());
                builder.set(pair[0], pair[1]);
            }
        }
    }
    for (const NamedValue& named : arguments.named)
        builder.set(new_string(context, named.name, named.outside), named.value);
    return builder.finish();
}

Value dict(Context& context, const Arguments& arguments) {
    return dict_of(context, "dict", arguments);
}

Value make_namespace(Context& context, const Arguments& arguments) {
    const Value entries = dict_of(context, "namespace", arguments);
    Namespace* attributes = context.arena.make<Namespace>(nullptr, std::size_t{0}, std::size_t{0});
    for (const Entry& entry : entries.dict().span())
        set(context, *attributes, expect_string("namespace", entry.key).view(), entry.value,
            entry.key.outside());
    return Value::of(attributes);
}

Value cycler(Context& context, const Arguments& arguments) {
    if (!arguments.named.empty() || arguments.positional.empty())
        throw_error("cycler: expected one or more items");
    const Sequence& items = new_tuple(context, arguments.positional).sequence();
    return Value::of(context.arena.make<Cycler>(items.items, items.size, std::size_t{0}));
}

Value joiner(Context& context, const Arguments& arguments) {
    const auto [separator] = bind<1>("joiner", arguments, {"sep"});
    return Value::of(context.arena.make<Joiner>(
        separator.is(Kind::kMissing) ? new_string(context, ", ") : separator, false));
}

Value raise_exception(Context& context, const Arguments& arguments) {
    const auto [message] = bind<1>("raise_exception", arguments, {"message"}, 1);
    throw TemplateError{Code::kInvalidArgument, std::string(to_str(context, message).view()), true};
}

Value strftime_now(Context& context, const Arguments& arguments) {
    const auto [format] = bind<1>("strftime_now", arguments, {"format"}, 1);
    const Str wanted = expect_string("strftime_now", format);
    std::tm local{};
    localtime_r(&context.now, &local);
    // strftime says "0 bytes" both for no room and for an empty text: one blank tells them apart.
    const std::string pattern = std::string(wanted.view()) + " ";
    std::string text(pattern.size() * 16 + 256, '\0');
    context.arena.charge(text.size());
    const std::size_t size = std::strftime(text.data(), text.size(), pattern.c_str(), &local);
    if (size == 0)
        throw_error("strftime_now: expected a format that gives at most {} bytes, got '{}'",
                    text.size(), wanted.view());
    return Value::of(
        make_str(context, std::string_view(text).substr(0, size - 1), wanted.any_outside()));
}

constexpr Function kFunctions[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", make_namespace},
    {"cycler", cycler},
    {"joiner", joiner},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

} // namespace

const Function* find_function(std::string_view name) {
    for (const Function& function : kFunctions)
        if (function.name == name)
            return &function;
    return nullptr;
}

} // namespace lr::text::jinja
