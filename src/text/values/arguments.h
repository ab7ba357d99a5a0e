// SPDX-License-Identifier: Apache-2.0
//
// text/values/arguments.h: the arguments of a filter, test or method bound to its parameters.
#pragma once

#include "text/values/numbers.h"
#include "text/values/value.h"

#include <array>

namespace lr::text::jinja {

// Puts each argument where its parameter stands in `names`; an argument not given is missing. The
// first `required` must be given. A name that begins with '/' can only be given by place.
void bind_arguments(std::string_view function, const Arguments& arguments,
                    std::span<const std::string_view> names, std::size_t required,
                    std::span<Value> bound);

template <std::size_t N>
std::array<Value, N> bind(std::string_view function, const Arguments& arguments,
                          const std::array<std::string_view, N>& names, std::size_t required = 0) {
    std::array<Value, N> bound;
    bind_arguments(function, arguments, names, required, bound);
    return bound;
}

void expect_no_arguments(std::string_view function, const Arguments& arguments);

// The argument when it is given (for string and integer: and not None), else the fallback.
bool boolean_or(Context& context, const Value& argument, bool fallback);
Int integer_or(std::string_view function, const Value& argument, Int fallback);
Str expect_string(std::string_view function, const Value& argument);
Int expect_integer(std::string_view function, const Value& argument);
bool is_given(const Value& argument); // neither missing nor None

} // namespace lr::text::jinja
