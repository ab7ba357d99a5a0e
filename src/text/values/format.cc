// SPDX-License-Identifier: Apache-2.0
#include "text/values/format.h"

#include "text/values/characters.h"
#include "text/values/escape.h"
#include "text/values/format_spec.h"
#include "text/values/numbers.h"
#include "text/values/operators.h"
#include "text/values/repr.h"

namespace lr::text::jinja {

namespace {

// repr(value) of a value, or str(value), as a string; escaped where the format is a Markup.
Str text_of(Context& context, const Value& value, bool repr, bool markup) {
    if (!repr)
        return markup ? escaped(context, value) : to_str(context, value);
    Builder builder(context);
    add_repr(context, builder, value);
    return markup ? force_escaped(context, builder.finish()) : builder.finish();
}

// What stands behind a '%'.
struct Conversion {
    std::optional<std::string_view> key;
    bool left = false, zeros = false;
    FormatSpec spec;
};

class PercentFormatter {
  public:
    PercentFormatter(Context& context, const Value& format, const Value& values)
        : context_(context), markup_(format.markup()), text_(format.string()), values_(values),
          builder_(context) {}

    Value run() {
        std::size_t at = 0;
        while (at < text_.size()) {
            const std::size_t percent = std::min(text_.view().find('%', at), text_.size());
            builder_.add(text_.sub(at, percent));
            at = percent;
            if (at < text_.size())
                at = convert(at + 1);
        }
        if (leftover())
            throw_error("format: expected as many values as the text has places, got more");
        return Value::of(builder_.finish(), markup_);
    }

  private:
    // Python lets values with items by key stay unused, whatever they hold.
    bool leftover() const {
        switch (values_.kind()) {
        case Kind::kTuple:
            return next_ < values_.sequence().size;
        case Kind::kList:
        case Kind::kDict:
        case Kind::kRange:
        case Kind::kUndefined:
            return false;
        default:
            return next_ == 0;
        }
    }

    char peek(std::size_t at) const {
        if (at >= text_.size())
            throw_error("format: expected a conversion behind '%', got the end of the text");
        return text_.view()[at];
    }

    int read_digits(std::size_t& at) const {
        int value = 0;
        for (; peek(at) >= '0' && peek(at) <= '9'; ++at) {
            value = value * 10 + (peek(at) - '0');
            if (value > 10'000'000)
                throw_limit("format: expected a width of at most 10000000, got more");
        }
        return value;
    }

    Conversion read_conversion(std::size_t& at) const {
        Conversion conversion;
        if (peek(at) == '(') {
            const std::size_t begin = at + 1;
            for (int depth = 1; depth > 0;) {
                ++at;
                depth += peek(at) == '(' ? 1 : (peek(at) == ')' ? -1 : 0);
            }
            conversion.key = text_.view().substr(begin, at - begin);
            ++at;
        }
        for (; std::string_view("-+ 0#").find(peek(at)) != std::string_view::npos; ++at) {
            const char flag = peek(at);
            conversion.left |= flag == '-';
            conversion.zeros |= flag == '0';
            conversion.spec.alternative |= flag == '#';
            if (flag == '+' || (flag == ' ' && conversion.spec.sign != '+'))
                conversion.spec.sign = flag;
        }
        conversion.spec.width = read_digits(at);
        if (peek(at) == '.') {
            ++at;
            conversion.spec.precision = read_digits(at);
        }
        while (std::string_view("hlL").find(peek(at)) != std::string_view::npos)
            ++at;
        conversion.spec.type = peek(at++);
        return conversion;
    }

    Value next_value() {
        if (values_.is(Kind::kTuple)) {
            if (next_ == values_.sequence().size)
                throw_error("format: expected a value for each place of the text, got {}", next_);
            return values_.sequence().items[next_++];
        }
        if (next_++ > 0)
            throw_error("format: expected a value for each place of the text, got 1");
        return values_;
    }

    Value value_of(const Conversion& conversion) {
        if (!conversion.key)
            return next_value();
        if (!values_.is(Kind::kDict))
            throw_error("format: expected a dict of values by name, got a {}", type_name(values_));
        const Value* found = find(values_.dict(), *conversion.key);
        if (found == nullptr)
            throw_error("format: expected a value named '{}', got none", *conversion.key);
        return *found;
    }

    // The conversion that begins at `at`; returns where the text goes on.
    std::size_t convert(std::size_t at) {
        Conversion conversion = read_conversion(at);
        FormatSpec& spec = conversion.spec;
        if (spec.type == '%') {
            builder_.add(text_.sub(at - 1, at));
            return at;
        }
        if (spec.type == '*' || spec.type == 'a')
            throw_unsupported("format: the conversion '%{}'", spec.type);
        const Value value = value_of(conversion);
        spec.align = conversion.left ? '<' : '>';
        if (std::string_view("diuxXoeEfFgG").find(spec.type) != std::string_view::npos)
            convert_number(value, conversion);
        else if (spec.type == 's' || spec.type == 'r')
            write_text(context_, builder_, text_of(context_, value, spec.type == 'r', markup_),
                       spec);
        else if (spec.type == 'c')
            convert_character(value, spec);
        else
            throw_error("format: expected a conversion, got '%{}'", spec.type);
        return at;
    }

    void convert_number(const Value& given, Conversion& conversion) {
        FormatSpec& spec = conversion.spec;
        Value value = given;
        if (value.is(Kind::kUndefined))
            throw_undefined(value);
        if (!value.is_number())
            throw_error("format: expected a number for '%{}', got a {}", spec.type,
                        type_name(value));
        const bool decimal = std::string_view("diu").find(spec.type) != std::string_view::npos;
        if (decimal) {
            spec.type = 'd';
            if (value.is(Kind::kFloat))
                value = Value::of(truncate_to_integer(value.real()), value.outside());
        }
        const bool whole =
            decimal || std::string_view("xXo").find(spec.type) != std::string_view::npos;
        if (whole && spec.precision) {
            if (*spec.precision > 1)
                throw_unsupported("format: a precision for '%{}'", spec.type);
            spec.precision.reset(); // one digit there always is
        }
        if (conversion.zeros && !conversion.left) {
            spec.fill = "0";
            spec.align = '=';
        }
        write_number(context_, builder_, value, spec);
    }

    void convert_character(const Value& value, FormatSpec& spec) {
        spec.precision.reset();
        if (value.is_string() && count_characters(value.view()) == 1)
            return write_text(context_, builder_, text_of(context_, value, false, markup_), spec);
        if (!value.is_integer())
            throw_error("format: expected a number or one character for '%c', got a {}",
                        type_name(value));
        write_number(context_, builder_, value, spec);
    }

    Context& context_;
    const bool markup_;
    const Str text_;
    const Value& values_;
    Builder builder_;
    std::size_t next_ = 0;
};

class FieldFormatter {
  public:
    FieldFormatter(Context& context, const Value& format, const Arguments& arguments)
        : context_(context), markup_(format.markup()), text_(format.string()),
          arguments_(arguments), builder_(context) {}

    Value run() {
        const std::string_view view = text_.view();
        std::size_t plain = 0; // where the text begins that stands for itself
        for (std::size_t at = 0; at < view.size();) {
            if (view[at] != '{' && view[at] != '}') {
                ++at;
                continue;
            }
            builder_.add(text_.sub(plain, at));
            const bool doubled = at + 1 < view.size() && view[at + 1] == view[at];
            if (doubled)
                builder_.add(text_.sub(at, at + 1));
            else if (view[at] == '}')
                throw_error("format: expected '}}' only behind a field, got one alone");
            at = doubled ? at + 2 : field(at + 1);
            plain = at;
        }
        builder_.add(text_.sub(plain));
        return Value::of(builder_.finish(), markup_);
    }

  private:
    // The field that begins behind a '{'; returns where the text goes on.
    std::size_t field(std::size_t begin) {
        const std::size_t end = text_.view().find('}', begin);
        if (end == std::string_view::npos)
            throw_error("format: expected '}}' behind a field, got the end of the text");
        std::string_view inside = text_.view().substr(begin, end - begin);
        if (inside.find('{') != std::string_view::npos)
            throw_unsupported("format: a field within a field");
        Str spec = text_.sub(end, end);
        if (const std::size_t colon = inside.find(':'); colon != std::string_view::npos) {
            spec = text_.sub(begin + colon + 1, end);
            inside = inside.substr(0, colon);
        }
        char conversion = 0;
        if (const std::size_t mark = inside.find('!'); mark != std::string_view::npos) {
            conversion = mark + 2 == inside.size() ? inside[mark + 1] : '?';
            inside = inside.substr(0, mark);
        }
        Value value = look_up(inside);
        if (conversion == 'r' || conversion == 's')
            value = Value::of(text_of(context_, value, conversion == 'r', false));
        else if (conversion != 0)
            throw_unsupported("format: the conversion '!{}'", conversion);
        write(value, spec);
        return end + 1;
    }

    void write(const Value& value, Str spec_text) {
        if (value.is_string() || spec_text.empty()) {
            const Str text = text_of(context_, value, false, markup_);
            const FormatSpec spec = parse_format_spec(spec_text);
            if (spec.align == '=' || (spec.type != 0 && spec.type != 's') || spec.sign != '-' ||
                spec.grouping != 0 || spec.alternative)
                throw_error("format: '{}' does not fit a str", spec_text.view());
            return write_text(context_, builder_, text, spec);
        }
        if (!value.is_number())
            throw_error("format: expected a str or a number for '{}', got a {}", spec_text.view(),
                        type_name(value));
        FormatSpec spec = parse_format_spec(spec_text);
        if (spec.align == 0)
            spec.align = '>';
        write_number(context_, builder_, value, spec);
    }

    // "name.attribute[index]"
    Value look_up(std::string_view path) {
        const std::size_t first = std::min(path.find_first_of(".["), path.size());
        Value value = argument(path.substr(0, first));
        path.remove_prefix(first);
        while (!path.empty()) {
            if (path[0] == '.') {
                const std::size_t end = std::min(path.find_first_of(".[", 1), path.size());
                value = get_attribute(context_, value, path.substr(1, end - 1));
                path.remove_prefix(end);
                continue;
            }
            const std::size_t end = path.find(']');
            if (path[0] != '[' || end == std::string_view::npos)
                throw_error("format: expected '.' or '[...]' behind a name, got '{}'", path);
            const std::string_view key = path.substr(1, end - 1);
            const std::optional<std::size_t> number = number_of(key);
            value =
                get_item(context_, value,
                         number ? Value::of(static_cast<Int>(*number)) : new_string(context_, key));
            path.remove_prefix(end + 1);
        }
        return value;
    }

    static std::optional<std::size_t> number_of(std::string_view text) {
        if (text.empty() || text.size() > 9 ||
            text.find_first_not_of("0123456789") != std::string_view::npos)
            return std::nullopt;
        std::size_t value = 0;
        for (char c : text)
            value = value * 10 + static_cast<std::size_t>(c - '0');
        return value;
    }

    Value argument(std::string_view name) {
        std::optional<std::size_t> number = number_of(name);
        if (name.empty() || number) {
            const Numbering wanted = name.empty() ? Numbering::kCounted : Numbering::kWritten;
            if (numbering_ != Numbering::kNone && numbering_ != wanted)
                throw_error("format: expected all fields with a number or none, got both");
            numbering_ = wanted;
            const std::size_t place = number ? *number : next_++;
            if (place >= arguments_.positional.size())
                throw_error("format: expected a value for field {}, got {} values", place,
                            arguments_.positional.size());
            return arguments_.positional[place];
        }
        for (const NamedValue& named : arguments_.named)
            if (named.name == name)
                return named.value;
        throw_error("format: expected a value named '{}', got none", name);
    }

    enum class Numbering { kNone, kCounted, kWritten };

    Context& context_;
    const bool markup_;
    const Str text_;
    const Arguments& arguments_;
    Builder builder_;
    Numbering numbering_ = Numbering::kNone;
    std::size_t next_ = 0;
};

} // namespace

Value format_percent(Context& context, const Value& format, const Value& values) {
    return PercentFormatter(context, format, values).run();
}

Value format_fields(Context& context, const Value& format, const Arguments& arguments) {
    return FieldFormatter(context, format, arguments).run();
}

} // namespace lr::text::jinja
