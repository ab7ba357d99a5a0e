// SPDX-License-Identifier: Apache-2.0
//
// text/values/format_spec.h: one value written with a width, an alignment, a precision and a type.
#pragma once

#include "text/values/value.h"

#include <optional>

namespace lr::text::jinja {

struct FormatSpec {
    std::string_view fill = " "; // one character
    bool fill_outside = false;
    char align = 0;  // '<' '>' '^' '=' or 0: what the type does
    char sign = '-'; // '-' '+' ' '
    bool alternative = false;
    Int width = 0;
    char grouping = 0; // ',' '_' or 0
    std::optional<int> precision;
    char type = 0;
};

// "*>10.2f" and so on, as format() understands it.
FormatSpec parse_format_spec(Str text);

void write_text(Context& context, Builder& builder, Str text, const FormatSpec& spec);
// `value` is a bool, an int or a float, and spec.type fits it (0: as the value is printed).
void write_number(Context& context, Builder& builder, const Value& value, const FormatSpec& spec);

} // namespace lr::text::jinja
