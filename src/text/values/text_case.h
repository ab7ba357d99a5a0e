// SPDX-License-Identifier: Apache-2.0
//
// text/values/text_case.h: upper and lower case of whole strings, as Python's str. Each character
// that comes out has the mark of the one it stands for.
#pragma once

#include "text/values/str.h"

namespace lr::text::jinja {

Str to_upper(Context& context, Str text);
Str to_lower(Context& context, Str text);
Str capitalized(Context& context, Str text); // the first character in title case, the rest lower
Str title_cased(Context& context, Str text); // each run of cased characters so
Str swapped_case(Context& context, Str text);

} // namespace lr::text::jinja
