// SPDX-License-Identifier: Apache-2.0
//
// text/values/repr.h: str() and repr() of Python, and json.dumps.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

// str(value): a string is itself, undefined is empty. Functions, methods and iterators, which
// Python prints with an address, are an error.
Str to_str(Context& context, const Value& value);
void add_str(Context& context, Builder& builder, const Value& value);
void add_repr(Context& context, Builder& builder, const Value& value);

struct JsonStyle {
    bool ensure_ascii = false;
    bool sort_keys = false;
    bool multiline = false;
    Str indent; // of one level, where multiline
    Str item_separator, key_separator;
};
// json.dumps(value, ...). Structure takes the mark of the value it belongs to.
Str to_json(Context& context, const Value& value, const JsonStyle& style);

} // namespace lr::text::jinja
