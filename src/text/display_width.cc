// SPDX-License-Identifier: Apache-2.0
#include "text/display_width.h"

#include "text/unicode.h"

#include <utf8proc.h>

namespace lr::text {

std::size_t character_bytes(std::string_view text) {
    if (text.empty())
        return 0;
    const Utf8Step step = step_utf8(text);
    return step.kind == Utf8Step::Kind::kCharacter ? static_cast<std::size_t>(step.length) : 1;
}

int character_columns(std::string_view text) {
    if (text.empty())
        return 0;
    const Utf8Step step = step_utf8(text);
    if (step.kind != Utf8Step::Kind::kCharacter)
        return 1;
    return utf8proc_charwidth(static_cast<utf8proc_int32_t>(step.code_point));
}

} // namespace lr::text
