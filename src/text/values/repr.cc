// SPDX-License-Identifier: Apache-2.0
#include "text/values/repr.h"

#include "text/unicode.h"
#include "text/values/characters.h"
#include "text/values/escape.h"
#include "text/values/loop.h"
#include "text/values/numbers.h"

namespace lr::text::jinja {

namespace {

// The character as Python's repr writes it within `quote`s; "" for one that stands for itself.
std::string repr_escape(char32_t c, char quote) {
    switch (c) {
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    if (c == static_cast<char32_t>(quote))
        return fmt::format("\\{}", quote);
    if (is_printable(c))
        return "";
    const auto code = static_cast<std::uint32_t>(c);
    if (code < 0x100)
        return fmt::format("\\x{:02x}", code);
    return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

void add_quoted(Builder& builder, Str text) {
    const std::string_view view = text.view();
    const bool single = view.find('\'') != std::string_view::npos;
    const char quote = single && view.find('"') == std::string_view::npos ? '"' : '\'';
    const bool outside = text.any_outside();
    OutsideCursor marks(text);
    builder.add({&quote, 1}, outside);
    for (std::size_t at = 0; at < view.size();) {
        const Character c = character_at(view, at);
        const std::string escape = repr_escape(c.code, quote);
        builder.add(escape.empty() ? view.substr(at, static_cast<std::size_t>(c.length)) : escape,
                    marks.at(at));
        at += static_cast<std::size_t>(c.length);
    }
    builder.add({&quote, 1}, outside);
}

void add_items(Context& context, Builder& builder, Iterator& items, bool outside) {
    Value item;
    for (bool first = true; items.next(context, item); first = false) {
        builder.add(first ? "" : ", ", outside);
        add_repr(context, builder, item);
    }
}

void add_sequence(Context& context, Builder& builder, const Value& value) {
    const bool list = value.is(Kind::kList);
    builder.add(list ? "[" : "(", value.outside());
    add_items(context, builder, iterate(context, value), value.outside());
    const bool single = !list && value.sequence().size == 1;
    builder.add(list ? "]" : (single ? ",)" : ")"), value.outside());
}

void add_entries(Context& context, Builder& builder, std::span<const Entry> entries, bool outside) {
    builder.add("{", outside);
    bool first = true;
    for (const Entry& entry : entries) {
        builder.add(first ? "" : ", ", outside);
        first = false;
        add_repr(context, builder, entry.key);
        builder.add(": ", outside);
        add_repr(context, builder, entry.value);
    }
    builder.add("}", outside);
}

void add_view(Context& context, Builder& builder, const Value& value) {
    const View& view = value.as<View>();
    constexpr const char* kNames[] = {"dict_keys([", "dict_values([", "dict_items(["};
    const bool outside = view.dict.outside();
    builder.add(kNames[static_cast<int>(view.what)], outside);
    add_items(context, builder, iterate(context, value), outside);
    builder.add("])", outside);
}

std::string range_text(const Range& range) {
    if (range.step == 1)
        return fmt::format("range({}, {})", range.start, range.stop);
    return fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

std::string macro_text(const Macro& macro) {
    return macro.name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", macro.name);
}

} // namespace

void add_repr(Context& context, Builder& builder, const Value& value) {
    const Nesting nesting(context);
    context.step();
    switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
        return builder.add_inside("Undefined");
    case Kind::kNone:
        return builder.add("None", value.outside());
    case Kind::kBool:
        return builder.add(value.boolean() ? "True" : "False", value.outside());
    case Kind::kInt:
        return builder.add(format_integer(value.integer()), value.outside());
    case Kind::kFloat:
        return builder.add(format_float(value.real()), value.outside());
    case Kind::kString:
        builder.add_inside(value.markup() ? "Markup(" : "");
        add_quoted(builder, value.string());
        return builder.add_inside(value.markup() ? ")" : "");
    case Kind::kList:
    case Kind::kTuple:
        return add_sequence(context, builder, value);
    case Kind::kDict:
        return add_entries(context, builder, value.dict().span(), value.outside());
    case Kind::kView:
        return add_view(context, builder, value);
    case Kind::kRange:
        return builder.add(range_text(value.as<Range>()), value.as<Range>().outside);
    case Kind::kNamespace: {
        const Namespace& attributes = value.as<Namespace>();
        builder.add_inside("<Namespace ");
        add_entries(context, builder, {attributes.attributes, attributes.size}, false);
        return builder.add_inside(">");
    }
    case Kind::kMacro:
        return builder.add_inside(macro_text(value.as<Macro>()));
    case Kind::kLoop: {
        Loop& loop = value.as_mutable<Loop>();
        return builder.add_inside(
            fmt::format("<LoopContext {}/{}>", loop.count, loop.length(context)));
    }
    default:
        throw_unsupported("printing a {}", type_name(value));
    }
}

void add_str(Context& context, Builder& builder, const Value& value) {
    if (value.is_string())
        builder.add(value.string());
    else if (!value.is(Kind::kUndefined))
        add_repr(context, builder, value);
}

Str to_str(Context& context, const Value& value) {
    if (value.is_string())
        return value.string();
    Builder builder(context);
    add_str(context, builder, value);
    return builder.finish();
}

Str force_escaped(Context& context, Str text) {
    if (text.view().find_first_of("&<>\"'") == std::string_view::npos)
        return text;
    Builder builder(context);
    OutsideCursor marks(text);
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text.view()[at];
        const std::string_view entity = c == '&'    ? "&amp;"
                                        : c == '<'  ? "&lt;"
                                        : c == '>'  ? "&gt;"
                                        : c == '"'  ? "&#34;"
                                        : c == '\'' ? "&#39;"
                                                    : std::string_view(&c, 1);
        builder.add(entity, marks.at(at));
    }
    return builder.finish();
}

Str escaped(Context& context, const Value& value) {
    return value.markup() ? value.string() : force_escaped(context, to_str(context, value));
}

} // namespace lr::text::jinja
