// SPDX-License-Identifier: Apache-2.0
#include "text/json_extent.h"

#include "core/json.h"

namespace lr::text {

JsonExtent::JsonExtent(std::string_view key) : quoted_key_(json_quote(key)) {}

void JsonExtent::scan_string(char c) {
    if (!escaped_ && c == '"') {
        in_string_ = false;
        string_end_ = at_ + 1;
    }
    escaped_ = !escaped_ && c == '\\';
}

bool JsonExtent::scan(std::string_view text) {
    for (; at_ < text.size(); ++at_) {
        const char c = text[at_];
        if (in_string_) {
            scan_string(c);
            continue;
        }
        if (in_value_ && depth_ == 1 && (c == ',' || c == '}')) {
            in_value_ = false;
            value_end_ = at_;
        }
        if (c == '"') {
            in_string_ = true;
            string_begin_ = at_;
        } else if (c == ':' && depth_ == 1) {
            in_value_ = text.substr(string_begin_, string_end_ - string_begin_) == quoted_key_;
            if (in_value_)
                value_begin_ = value_end_ = at_ + 1;
        } else if (c == '{' || c == '[') {
            ++depth_;
        } else if ((c == '}' || c == ']') && --depth_ == 0) {
            ++at_;
            return true;
        }
    }
    return false;
}

} // namespace lr::text
