// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/filter_tables.h"
#include "text/values/arguments.h"
#include "text/values/characters.h"
#include "text/values/escape.h"
#include "text/values/format.h"
#include "text/values/iterate.h"
#include "text/values/key_set.h"
#include "text/values/operators.h"
#include "text/values/repr.h"
#include "text/values/text_case.h"
#include "text/values/text_ops.h"

namespace lr::text::jinja {

namespace {

template <Str (*kMap)(Context&, Str)>
Value map_case(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("filter", arguments);
    return Value::of(kMap(context, to_str(context, value)), value.markup());
}

bool begins_word(char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

// Unlike str.title, only what stands behind a blank, a hyphen or an open bracket is a beginning.
Value title(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("title", arguments);
    const Str text = to_str(context, value);
    Builder builder(context);
    std::size_t at = 0;
    while (at < text.size()) {
        const Character first = character_at(text.view(), at);
        const std::size_t begin = at;
        std::size_t end = at + static_cast<std::size_t>(first.length);
        while (end < text.size()) {
            const Character c = character_at(text.view(), end);
            if (begins_word(c.code) != begins_word(first.code))
                break;
            end += static_cast<std::size_t>(c.length);
        }
        at = end;
        const std::size_t second = begin + static_cast<std::size_t>(first.length);
        builder.add(to_upper(context, text.sub(begin, second)));
        builder.add(to_lower(context, text.sub(second, end)));
    }
    return Value::of(builder.finish());
}

Value trim(Context& context, const Value& value, const Arguments& arguments) {
    const auto [chars] = bind<1>("trim", arguments, {"chars"});
    const Str text = to_str(context, value);
    context.scan(text.size());
    return Value::of(is_given(chars) ? strip(text, true, true, expect_string("trim", chars).view())
                                     : strip(text, true, true),
                     value.markup());
}

Value replace(Context& context, const Value& value, const Arguments& arguments) {
    const auto [old, by, count] = bind<3>("replace", arguments, {"old", "new", "count"}, 2);
    const Int most = is_given(count) ? expect_integer("replace", count) : -1;
    return Value::of(
        replaced(context, to_str(context, value), to_str(context, old), to_str(context, by), most));
}

Str spaces_of(Context& context, Int count) {
    Builder spaces(context);
    const Int most = static_cast<Int>(context.limits().memory_bytes);
    spaces.repeat(" ", static_cast<std::size_t>(std::clamp<Int>(count, 0, most)), false);
    return spaces.finish();
}

Value indent(Context& context, const Value& value, const Arguments& arguments) {
    const auto [width, first, blank] = bind<3>("indent", arguments, {"width", "first", "blank"});
    const Str indention =
        width.is_string() ? width.string() : spaces_of(context, integer_or("indent", width, 4));
    const bool all = boolean_or(context, blank, false);
    // A line end at the end of the text begins no line: add one, as jinja2 does.
    const Str text = concat(context, expect_string("indent", value), make_str(context, "\n"));
    const std::vector<Str> lines = split_lines(context, text, false);
    Builder builder(context);
    if (boolean_or(context, first, false))
        builder.add(indention);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i > 0)
            builder.add_inside("\n");
        if (i > 0 && (all || !lines[i].empty()))
            builder.add(indention);
        builder.add(lines[i]);
    }
    return Value::of(builder.finish(), value.markup());
}

Value truncate(Context& context, const Value& value, const Arguments& arguments) {
    const auto [length_given, kill, end_given, leeway_given] =
        bind<4>("truncate", arguments, {"length", "killwords", "end", "leeway"});
    const Int most = integer_or("truncate", length_given, 255);
    const Str end = end_given.is(Kind::kMissing) ? make_str(context, "...")
                                                 : expect_string("truncate", end_given);
    const Int leeway = is_given(leeway_given) ? expect_integer("truncate", leeway_given) : 5;
    const Int end_size = static_cast<Int>(count_characters(end.view()));
    if (most < end_size || leeway < 0)
        throw_error("truncate: expected a length of at least {} and a leeway of at least 0, got {} "
                    "and {}",
                    end_size, most, leeway);
    const std::optional<std::size_t> size = length(context, value);
    if (size && static_cast<Int>(*size) <= most + leeway)
        return value;
    const Str text = expect_string("truncate", value);
    Str kept =
        text.sub(0, byte_of_character(text.view(), static_cast<std::size_t>(most - end_size)));
    if (!boolean_or(context, kill, false))
        kept = split_right(context, kept, " ", 1)[0];
    return Value::of(concat(context, kept, value.markup() ? escaped(context, Value::of(end)) : end),
                     value.markup());
}

Value center(Context& context, const Value& value, const Arguments& arguments) {
    const auto [width] = bind<1>("center", arguments, {"width"});
    return Value::of(centered(context, to_str(context, value), integer_or("center", width, 80),
                              make_str(context, " ")),
                     value.markup());
}

Value word_count(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("wordcount", arguments);
    const Str text = to_str(context, value);
    context.scan(16 * text.size());
    Int words = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size();) {
        const Character c = character_at(text.view(), at);
        const bool part = is_alnum(c.code) || c.code == '_';
        words += part && !inside ? 1 : 0;
        inside = part;
        at += static_cast<std::size_t>(c.length);
    }
    return Value::of(words);
}

Value format(Context& context, const Value& value, const Arguments& arguments) {
    if (!arguments.positional.empty() && !arguments.named.empty())
        throw_error("format: expected values by place or by name, got both");
    const Value text = Value::of(to_str(context, value), value.markup());
    if (arguments.named.empty())
        return format_percent(context, text, new_tuple(context, arguments.positional));
    DictBuilder builder(context);
    for (const NamedValue& named : arguments.named)
        builder.set(new_string(context, named.name), named.value);
    return format_percent(context, text, builder.finish());
}

Value string(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("string", arguments);
    return Value::of(to_str(context, value), value.markup());
}

Value escape(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("escape", arguments);
    return Value::of(escaped(context, value), true);
}

Value force_escape(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("forceescape", arguments);
    return Value::of(force_escaped(context, to_str(context, value)), true);
}

Value safe(Context& context, const Value& value, const Arguments& arguments) {
    expect_no_arguments("safe", arguments);
    return Value::of(to_str(context, value), true);
}

// json.dumps's `indent`: a number of spaces or a string.
Str json_indent(Context& context, const Value& indent) {
    if (indent.is_string())
        return indent.string();
    return spaces_of(context, expect_integer("tojson", indent));
}

Value to_json_filter(Context& context, const Value& value, const Arguments& arguments) {
    const auto [ascii, indent, separators, sort] =
        bind<4>("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
    JsonStyle style;
    style.ensure_ascii = boolean_or(context, ascii, false);
    style.sort_keys = boolean_or(context, sort, false);
    style.multiline = is_given(indent);
    if (style.multiline)
        style.indent = json_indent(context, indent);
    style.item_separator = make_str(context, style.multiline ? "," : ", ");
    style.key_separator = make_str(context, ": ");
    if (is_given(separators)) {
        const std::vector<Value> pair = collect(context, separators);
        if (pair.size() != 2)
            throw_error("tojson: expected two separators, got {}", pair.size());
        style.item_separator = expect_string("tojson", pair[0]);
        style.key_separator = expect_string("tojson", pair[1]);
    }
    return Value::of(to_json(context, value, style));
}

constexpr Filter kTextFilters[] = {
    {"trim", trim},
    {"tojson", to_json_filter},
    {"string", string},
    {"safe", safe},
    {"upper", map_case<to_upper>},
    {"lower", map_case<to_lower>},
    {"capitalize", map_case<capitalized>},
    {"title", title},
    {"replace", replace},
    {"indent", indent},
    {"truncate", truncate},
    {"center", center},
    {"wordcount", word_count},
    {"format", format},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
};

} // namespace

std::span<const Filter> text_filters() {
    return kTextFilters;
}

} // namespace lr::text::jinja
