// SPDX-License-Identifier: Apache-2.0
//
// text/display_width.h: how many columns of a terminal a text takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace lr::text {

// Bytes of the character that begins at text[0]: 1 to 4, 1 for a byte that begins none. 0 for "".
std::size_t character_bytes(std::string_view text);

// Columns of that character: 2 for East Asian wide ones and most emoji, 0 for combining marks and
// other characters without a width of their own, 1 for an invalid byte.
int character_columns(std::string_view text);

} // namespace lr::text
