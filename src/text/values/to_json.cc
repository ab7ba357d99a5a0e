// SPDX-License-Identifier: Apache-2.0
#include "text/values/characters.h"
#include "text/values/numbers.h"
#include "text/values/operators.h"
#include "text/values/repr.h"

#include <cmath>

namespace lr::text::jinja {

namespace {

std::string json_float(double value) {
    if (std::isnan(value))
        return "NaN";
    if (std::isinf(value))
        return value > 0 ? "Infinity" : "-Infinity";
    return format_float(value);
}

// The character as json.dumps writes it; "" for one that stands for itself.
std::string json_escape(char32_t c, bool ensure_ascii) {
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\f':
        return "\\f";
    case '\b':
        return "\\b";
    default:
        break;
    }
    const auto code = static_cast<std::uint32_t>(c);
    if (code < 0x20 || (ensure_ascii && code >= 0x7F && code < 0x10000))
        return fmt::format("\\u{:04x}", code);
    if (ensure_ascii && code >= 0x10000)
        return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                           0xDC00 + ((code - 0x10000) & 0x3FF));
    return "";
}

class JsonWriter {
  public:
    JsonWriter(Context& context, const JsonStyle& style)
        : context_(context), style_(style), builder_(context) {}

    void write(const Value& value) {
        const Nesting nesting(context_);
        context_.step();
        switch (value.kind()) {
        case Kind::kNone:
        case Kind::kBool:
        case Kind::kInt:
        case Kind::kFloat:
            return builder_.add(scalar(value), value.outside());
        case Kind::kString:
            return write_string(value.string());
        case Kind::kList:
        case Kind::kTuple:
            return write_list(value);
        case Kind::kDict:
            return write_dict(value);
        default:
            throw_error("tojson: expected a value that JSON has, got a {}", type_name(value));
        }
    }

    Str finish() { return builder_.finish(); }

  private:
    static std::string scalar(const Value& value) {
        switch (value.kind()) {
        case Kind::kBool:
            return value.boolean() ? "true" : "false";
        case Kind::kInt:
            return format_integer(value.integer());
        case Kind::kFloat:
            return json_float(value.real());
        default:
            return "null";
        }
    }

    void write_string(Str text) {
        const bool outside = text.any_outside();
        const std::string_view view = text.view();
        OutsideCursor marks(text);
        builder_.add("\"", outside);
        std::size_t plain = 0; // where the characters begin that stand for themselves
        const auto flush = [&](std::size_t end) {
            builder_.add(text.sub(plain, end));
            plain = end;
        };
        for (std::size_t at = 0; at < view.size();) {
            const Character c = character_at(view, at);
            const std::size_t next = at + static_cast<std::size_t>(c.length);
            const bool stands = c.code >= 0x20 && c.code != '"' && c.code != '\\' &&
                                !(style_.ensure_ascii && c.code >= 0x7F);
            if (!stands) {
                flush(at);
                builder_.add(json_escape(c.code, style_.ensure_ascii), marks.at(at));
                plain = next;
            }
            at = next;
        }
        flush(view.size());
        builder_.add("\"", outside);
    }

    void write_list(const Value& value) {
        const bool outside = value.outside();
        const std::span<const Value> items = value.sequence().span();
        builder_.add("[", outside);
        ++level_;
        for (std::size_t i = 0; i < items.size(); ++i) {
            begin_item(i == 0, outside);
            write(items[i]);
        }
        --level_;
        new_line(!items.empty(), outside);
        builder_.add("]", outside);
    }

    void write_dict(const Value& value) {
        const bool outside = value.outside();
        std::vector<Entry> entries(value.dict().span().begin(), value.dict().span().end());
        if (style_.sort_keys)
            std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
                return order(context_, a.key, b.key) == Order::kLess;
            });
        builder_.add("{", outside);
        ++level_;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            begin_item(i == 0, outside);
            write_key(entries[i].key);
            add_separator(style_.key_separator, outside);
            write(entries[i].value);
        }
        --level_;
        new_line(!entries.empty(), outside);
        builder_.add("}", outside);
    }

    void write_key(const Value& key) {
        if (key.is_string())
            return write_string(key.string());
        if (!key.is_number() && !key.is(Kind::kNone))
            throw_error("tojson: expected keys that are str, int, float, bool or None, got a {}",
                        type_name(key));
        builder_.add("\"" + scalar(key) + "\"", key.outside());
    }

    void add_separator(Str separator, bool outside) {
        if (outside)
            builder_.add(separator.view(), true);
        else
            builder_.add(separator);
    }

    void begin_item(bool first, bool outside) {
        if (!first)
            add_separator(style_.item_separator, outside);
        new_line(true, outside);
    }

    void new_line(bool wanted, bool outside) {
        if (!wanted || !style_.multiline)
            return;
        builder_.add("\n", outside);
        builder_.repeat(style_.indent.view(), static_cast<std::size_t>(level_),
                        outside || style_.indent.any_outside());
    }

    Context& context_;
    const JsonStyle& style_;
    Builder builder_;
    int level_ = 0;
};

} // namespace

Str to_json(Context& context, const Value& value, const JsonStyle& style) {
    JsonWriter writer(context, style);
    writer.write(value);
    return writer.finish();
}

} // namespace lr::text::jinja
