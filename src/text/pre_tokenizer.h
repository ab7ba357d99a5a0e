// SPDX-License-Identifier: Apache-2.0
//
// text/pre_tokenizer.h: the split of a text into words before byte-pair merging.
//
// A tokenizer.json names its split by a regular expression. The expressions we know are matched by
// hand-written scanners that give the same pieces; any other is refused.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <string_view>

namespace lr::text {

enum class SplitPattern { kQwen35 };

inline constexpr std::string_view kQwen35Pattern =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

// The scanner for the expression, compared byte for byte; kUnsupported for an unknown one.
Result<SplitPattern> recognise_pattern(std::string_view regex);

// End of the piece that begins at `begin` < text.size(), > begin. `text` is valid UTF-8. Every byte
// belongs to a piece, and pieces end between characters.
std::size_t piece_end(SplitPattern pattern, std::string_view text, std::size_t begin);

} // namespace lr::text
