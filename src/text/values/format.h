// SPDX-License-Identifier: Apache-2.0
//
// text/values/format.h: Python's two ways to format: `text % values` and text.format(...).
//
// The text of the format and of string values keeps its marks; digits have their number's.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

// `format` is a string. Not supported: the conversion %a and a width of '*'.
Value format_percent(Context& context, const Value& format, const Value& values);

// Not supported: the conversion !a, fields within a format specification, the type n.
Value format_fields(Context& context, const Value& format, const Arguments& arguments);

} // namespace lr::text::jinja
