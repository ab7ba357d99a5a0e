// SPDX-License-Identifier: Apache-2.0
//
// text/values/escape.h: HTML escaping. A string that the filters escape and safe have made is a
// Markup: what is added to it is escaped first.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

// str(value), with & < > " ' as entities unless the value is a Markup.
Str escaped(Context& context, const Value& value);
Str force_escaped(Context& context, Str text);

} // namespace lr::text::jinja
