// SPDX-License-Identifier: Apache-2.0
//
// text/values/text_ops.h: what methods of str and filters both do with strings.
#pragma once

#include "text/values/numbers.h"
#include "text/values/value.h"

namespace lr::text::jinja {

// First byte of `needle` in text[from...], or npos, in linear time.
std::size_t find_bytes(std::string_view text, std::string_view needle, std::size_t from = 0);

// The first `count` occurrences replaced (count < 0: all).
Str replaced(Context& context, Str text, Str old, Str by, Int count);
Str strip(Str text, bool left, bool right);
Str strip(Str text, bool left, bool right, std::string_view chars);
Str centered(Context& context, Str text, Int width, Str fill); // one character
std::vector<Str> split_lines(Context& context, Str text, bool keep_ends);
// Cut at most `most` times from the right at `separator`, which is not empty.
std::vector<Str> split_right(Context& context, Str text, std::string_view separator, Int most);
Str joined(Context& context, Str separator, std::span<const Str> parts);

} // namespace lr::text::jinja
