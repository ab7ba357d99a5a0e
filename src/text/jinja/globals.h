// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/globals.h: the functions every template may call: range, dict, namespace, cycler,
// joiner, and Hugging Face's raise_exception and strftime_now.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

// nullptr when there is none of that name.
const Function* find_function(std::string_view name);

} // namespace lr::text::jinja
