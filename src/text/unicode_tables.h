// SPDX-License-Identifier: Apache-2.0
//
// text/unicode_tables.h: the generated data behind char_class() of text/unicode.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lr::text {

// Sorted runs: first code point << 3 | word bit << 2 | 0 other, 1 letter, 2 mark, 3 number.
extern const std::uint32_t kClassRuns[];
extern const std::size_t kClassRunCount;

} // namespace lr::text
