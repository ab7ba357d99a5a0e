// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.h"

#include "text/unicode.h"

namespace lr::text {

std::string Detokenizer::push(std::int32_t id) {
    if (skip_special_ && tokenizer_->is_special(id))
        return {};
    held_ += tokenizer_->token_bytes(id);
    std::size_t whole = 0; // bytes up to a character that more bytes could complete
    while (whole < held_.size()) {
        const Utf8Step step = step_utf8(std::string_view(held_).substr(whole));
        if (step.kind == Utf8Step::Kind::kTruncated)
            break;
        whole += static_cast<std::size_t>(step.length);
    }
    std::string text = replace_invalid_utf8(std::string_view(held_).substr(0, whole));
    held_.erase(0, whole);
    return text;
}

std::string Detokenizer::flush() {
    std::string text = replace_invalid_utf8(held_);
    held_.clear();
    return text;
}

} // namespace lr::text
