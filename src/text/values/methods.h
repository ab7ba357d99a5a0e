// SPDX-License-Identifier: Apache-2.0
//
// text/values/methods.h: the methods of Python's built-in types.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

// The method of str, dict, list, tuple, range, int or float of that name; nullptr when Python has
// none. One that would change its object, or that this engine does not have, says so in `access`.
const MethodInfo* find_method(Kind kind, std::string_view name);
const MethodInfo* find_string_method(std::string_view name);

// Calls it. What a method of a Markup returns is Markup again.
Value call_method(Context& context, const Method& method, const Arguments& arguments);

} // namespace lr::text::jinja
