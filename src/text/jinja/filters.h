// SPDX-License-Identifier: Apache-2.0
//
// text/jinja/filters.h: the filters `value | name(...)` and the tests `value is name(...)`.
//
// Those of jinja2 and Hugging Face's tojson, but for attr, filesizeformat, pprint, random,
// striptags, urlencode, urlize, wordwrap and xmlattr: a template that names one is refused.
#pragma once

#include "text/values/value.h"

namespace lr::text::jinja {

struct Filter {
    std::string_view name;
    Value (*apply)(Context& context, const Value& value, const Arguments& arguments);
};
// nullptr: there is no such filter, or (is_unsupported_filter) jinja2 has it and this engine not.
const Filter* find_filter(std::string_view name);
bool is_unsupported_filter(std::string_view name);

struct Test {
    std::string_view name;
    bool (*holds)(Context& context, const Value& value, const Arguments& arguments);
};
const Test* find_test(std::string_view name);

} // namespace lr::text::jinja
