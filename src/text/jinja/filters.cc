// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/filters.h"

#include "text/jinja/filter_tables.h"
#include "text/values/operators.h"

#include <algorithm>
#include <iterator>

namespace lr::text::jinja {

const Filter* find_filter(std::string_view name) {
    for (std::span<const Filter> table : {text_filters(), sequence_filters(), lazy_filters()})
        for (const Filter& filter : table)
            if (filter.name == name)
                return &filter;
    return nullptr;
}

bool is_unsupported_filter(std::string_view name) {
    constexpr std::string_view kNames[] = {"attr",   "filesizeformat", "pprint",
                                           "random", "striptags",      "urlencode",
                                           "urlize", "wordwrap",       "xmlattr"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

namespace {

// An attribute's name as int or str.
Value path_part(Context& context, Str part) {
    const std::string_view view = part.view();
    const bool number = !view.empty() && view.size() <= 18 &&
                        view.find_first_not_of("0123456789") == std::string_view::npos;
    if (!number)
        return Value::of(part);
    context.step();
    return Value::of(*parse_integer(view, 10));
}

} // namespace

AttributePath::AttributePath(Context& context, const Value& attribute) {
    if (attribute.is(Kind::kMissing) || attribute.is(Kind::kNone))
        return;
    std::vector<Value> parts;
    if (attribute.is_string()) {
        Str rest = attribute.string();
        for (;;) {
            const std::size_t dot = rest.view().find('.');
            parts.push_back(path_part(context, rest.sub(0, std::min(dot, rest.size()))));
            if (dot == std::string_view::npos)
                break;
            rest = rest.sub(dot + 1);
        }
    } else {
        parts.push_back(attribute);
    }
    parts_ = new_list(context, parts).sequence().span();
}

Value AttributePath::look_up(Context& context, Value item, const Value& fallback) const {
    const bool has_fallback = !fallback.is(Kind::kMissing) && !fallback.is(Kind::kNone);
    for (const Value& part : parts_) {
        item = get_item(context, item, part);
        if (has_fallback && item.is(Kind::kUndefined))
            item = fallback;
    }
    return item;
}

} // namespace lr::text::jinja
