// SPDX-License-Identifier: Apache-2.0
#include "text/values/arguments.h"

#include "text/values/operators.h"

#include <algorithm>

namespace lr::text::jinja {

void bind_arguments(std::string_view function, const Arguments& arguments,
                    std::span<const std::string_view> names, std::size_t required,
                    std::span<Value> bound) {
    if (arguments.positional.size() > names.size())
        throw_error("{}: expected at most {} arguments, got {}", function, names.size(),
                    arguments.positional.size());
    std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
    for (const NamedValue& named : arguments.named) {
        const auto place = std::find(names.begin(), names.end(), named.name);
        if (place == names.end())
            throw_error("{}: unexpected argument '{}'", function, named.name);
        Value& slot = bound[static_cast<std::size_t>(place - names.begin())];
        if (!slot.is(Kind::kMissing))
            throw_error("{}: argument '{}' is given twice", function, named.name);
        slot = named.value;
    }
    for (std::size_t i = 0; i < required; ++i)
        if (bound[i].is(Kind::kMissing))
            throw_error("{}: argument '{}' is missing", function,
                        names[i].substr(names[i].starts_with('/') ? 1 : 0));
}

void expect_no_arguments(std::string_view function, const Arguments& arguments) {
    bind_arguments(function, arguments, {}, 0, {});
}

bool is_given(const Value& argument) {
    return !argument.is(Kind::kMissing) && !argument.is(Kind::kNone);
}

bool boolean_or(Context& context, const Value& argument, bool fallback) {
    return argument.is(Kind::kMissing) ? fallback : truth(context, argument);
}

Int expect_integer(std::string_view function, const Value& argument) {
    if (argument.is(Kind::kUndefined))
        throw_undefined(argument);
    if (!argument.is_integer())
        throw_error("{}: expected an int, got a {}", function, type_name(argument));
    constexpr Int kMost = Int{1} << 63; // Python counts and measures with as many bits
    if (argument.integer() >= kMost || argument.integer() < -kMost)
        throw_error("{}: expected an int of 64 bits, got a larger one", function);
    return argument.integer();
}

Int integer_or(std::string_view function, const Value& argument, Int fallback) {
    return argument.is(Kind::kMissing) ? fallback : expect_integer(function, argument);
}

Str expect_string(std::string_view function, const Value& argument) {
    if (argument.is(Kind::kUndefined))
        throw_undefined(argument);
    if (!argument.is_string())
        throw_error("{}: expected a str, got a {}", function, type_name(argument));
    return argument.string();
}

} // namespace lr::text::jinja
