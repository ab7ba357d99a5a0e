// SPDX-License-Identifier: Apache-2.0
#include "text/values/arguments.h"
#include "text/values/characters.h"
#include "text/values/escape.h"
#include "text/values/format.h"
#include "text/values/iterate.h"
#include "text/values/methods.h"
#include "text/values/operators.h"
#include "text/values/text_case.h"
#include "text/values/text_ops.h"

#include <algorithm>
#include <cstring>

namespace lr::text::jinja {

namespace {

Value list_of(Context& context, std::span<const Str> parts) {
    std::vector<Value> values;
    for (Str part : parts)
        values.push_back(Value::of(part));
    return new_list(context, values);
}

template <Str (*kMap)(Context&, Str)>
Value map_case(Context& context, const Value& self, const Arguments& arguments) {
    expect_no_arguments("str", arguments);
    return Value::of(kMap(context, self.string()));
}

// All characters are such, and there is one.
template <bool (*kIs)(char32_t)>
Value all_are(Context& context, const Value& self, const Arguments& arguments) {
    expect_no_arguments("str", arguments);
    const std::string_view view = self.view();
    context.scan(16 * view.size());
    for (std::size_t at = 0; at < view.size();) {
        const Character c = character_at(view, at);
        if (!kIs(c.code))
            return Value::of(false);
        at += static_cast<std::size_t>(c.length);
    }
    return Value::of(!view.empty());
}

Value is_ascii_text(Context& context, const Value& self, const Arguments& arguments) {
    expect_no_arguments("isascii", arguments);
    context.scan(self.view().size());
    return Value::of(is_ascii(self.view()));
}

Value is_printable_text(Context& context, const Value& self, const Arguments& arguments) {
    return Value::of(self.view().empty() ||
                     all_are<is_printable>(context, self, arguments).boolean());
}

// Some character is cased, and none is of the other case.
template <bool (*kIs)(char32_t), bool (*kIsOther)(char32_t)>
Value is_case(Context& context, const Value& self, const Arguments& arguments) {
    expect_no_arguments("str", arguments);
    const std::string_view view = self.view();
    context.scan(16 * view.size());
    bool any = false;
    for (std::size_t at = 0; at < view.size();) {
        const Character c = character_at(view, at);
        if (kIsOther(c.code) || is_title(c.code))
            return Value::of(false);
        any |= kIs(c.code);
        at += static_cast<std::size_t>(c.length);
    }
    return Value::of(any);
}

Value is_title_text(Context& context, const Value& self, const Arguments& arguments) {
    expect_no_arguments("istitle", arguments);
    const std::string_view view = self.view();
    context.scan(16 * view.size());
    bool any = false;
    bool inside = false; // behind a cased character
    for (std::size_t at = 0; at < view.size();) {
        const Character c = character_at(view, at);
        const bool upper = is_upper(c.code) || is_title(c.code);
        if ((upper && inside) || (is_lower(c.code) && !inside))
            return Value::of(false);
        inside = upper || is_lower(c.code);
        any |= inside;
        at += static_cast<std::size_t>(c.length);
    }
    return Value::of(any);
}

template <bool kLeft, bool kRight>
Value strip_method(Context& context, const Value& self, const Arguments& arguments) {
    const auto [chars] = bind<1>("strip", arguments, {"/chars"});
    context.scan(self.view().size());
    if (!is_given(chars))
        return Value::of(strip(self.string(), kLeft, kRight));
    return Value::of(strip(self.string(), kLeft, kRight, expect_string("strip", chars).view()));
}

// At most `most` pieces cut off at white space; the rest keeps what stands behind it.
std::vector<Str> split_space(Context& context, Str text, Int most) {
    std::vector<Str> parts;
    text = strip(text, true, false);
    while (!text.empty()) {
        context.step();
        if (most-- == 0) {
            parts.push_back(text);
            break;
        }
        std::size_t end = 0;
        while (end < text.size() && !is_space(character_at(text.view(), end).code))
            end += static_cast<std::size_t>(character_at(text.view(), end).length);
        parts.push_back(text.sub(0, end));
        text = strip(text.sub(end), true, false);
    }
    return parts;
}

std::vector<Str> split_space_right(Context& context, Str text, Int most) {
    std::vector<Str> parts;
    text = strip(text, false, true);
    while (!text.empty()) {
        context.step();
        if (most-- == 0) {
            parts.push_back(text);
            break;
        }
        std::size_t begin = text.size();
        while (begin > 0) {
            std::size_t last = begin - 1;
            while ((static_cast<unsigned char>(text.view()[last]) & 0xC0) == 0x80)
                --last;
            if (is_space(character_at(text.view(), last).code))
                break;
            begin = last;
        }
        parts.push_back(text.sub(begin));
        text = strip(text.sub(0, begin), false, true);
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<Str> split_left(Context& context, Str text, std::string_view separator, Int most) {
    std::vector<Str> parts;
    context.scan(text.size());
    std::size_t at = 0;
    while (most-- != 0) {
        const std::size_t found = find_bytes(text.view(), separator, at);
        if (found == std::string_view::npos)
            break;
        context.step();
        parts.push_back(text.sub(at, found));
        at = found + separator.size();
    }
    parts.push_back(text.sub(at));
    return parts;
}

template <bool kRight>
Value split(Context& context, const Value& self, const Arguments& arguments) {
    const auto [separator, most_given] = bind<2>("split", arguments, {"sep", "maxsplit"});
    const Int most = std::max<Int>(-1, integer_or("split", most_given, -1));
    context.scan(self.view().size());
    if (!is_given(separator))
        return list_of(context, kRight ? split_space_right(context, self.string(), most)
                                       : split_space(context, self.string(), most));
    const std::string_view between = expect_string("split", separator).view();
    if (between.empty())
        throw_error("split: expected a separator, got an empty str");
    return list_of(context, kRight ? split_right(context, self.string(), between, most)
                                   : split_left(context, self.string(), between, most));
}

Value splitlines(Context& context, const Value& self, const Arguments& arguments) {
    const auto [keep] = bind<1>("splitlines", arguments, {"keepends"});
    return list_of(context, split_lines(context, self.string(), boolean_or(context, keep, false)));
}

template <bool kRight>
Value partition(Context& context, const Value& self, const Arguments& arguments) {
    const auto [given] = bind<1>("partition", arguments, {"/sep"}, 1);
    const Str separator = expect_string("partition", given);
    if (separator.empty())
        throw_error("partition: expected a separator, got an empty str");
    const Str text = self.string();
    const std::vector<Str> parts = kRight ? split_right(context, text, separator.view(), 1)
                                          : split_left(context, text, separator.view(), 1);
    const Value none = Value::of(text.sub(0, 0));
    if (parts.size() == 1)
        return new_tuple(context,
                         kRight ? std::array{none, none, self} : std::array{self, none, none});
    const std::size_t at = parts[0].size();
    return new_tuple(context,
                     std::array{Value::of(parts[0]), Value::of(text.sub(at, at + separator.size())),
                                Value::of(parts[1])});
}

// text[start:end] of the optional arguments, and the number of characters before it.
struct Part {
    Str text;
    std::size_t first;
    bool possible; // start does not lie behind the end of the text
};

Part part_of(Context& context, const Value& self, const Value& start, const Value& end) {
    const auto bound = [](const Value& value) { return is_given(value) ? value : Value::none(); };
    if (!is_given(start) && !is_given(end))
        return {self.string(), 0, true};
    const Int size = static_cast<Int>(*length(context, self));
    const Value text = get_slice(context, self, bound(start), bound(end), Value::none());
    Int first = is_given(start) ? start.integer() : 0; // get_slice has seen that it is one
    first = first < -size ? 0 : std::max<Int>(first < 0 ? first + size : first, 0);
    return {text.string(), static_cast<std::size_t>(std::min(first, size)), first <= size};
}

std::optional<std::size_t> position(Context& context, const Value& self, const Arguments& arguments,
                                    bool from_right) {
    const auto [given, start, end] = bind<3>("find", arguments, {"/sub", "/start", "/end"}, 1);
    const std::string_view wanted = expect_string("find", given).view();
    const Part part = part_of(context, self, start, end);
    if (!part.possible)
        return std::nullopt;
    const std::string_view view = part.text.view();
    context.step(view.size() * (from_right ? std::min<std::size_t>(wanted.size(), 1024) : 64) /
                 65536);
    const std::size_t found = from_right ? view.rfind(wanted) : find_bytes(view, wanted);
    if (found == std::string_view::npos)
        return std::nullopt;
    return part.first + count_characters(view.substr(0, found));
}

template <bool kRight>
Value find_method(Context& context, const Value& self, const Arguments& arguments) {
    const std::optional<std::size_t> found = position(context, self, arguments, kRight);
    return Value::of(found ? static_cast<Int>(*found) : Int{-1});
}

template <bool kRight>
Value index_method(Context& context, const Value& self, const Arguments& arguments) {
    const std::optional<std::size_t> found = position(context, self, arguments, kRight);
    if (!found)
        throw_error("index: expected a str that occurs, got one that does not");
    return Value::of(static_cast<Int>(*found));
}

Value count(Context& context, const Value& self, const Arguments& arguments) {
    const auto [given, start, end] = bind<3>("count", arguments, {"/sub", "/start", "/end"}, 1);
    const std::string_view wanted = expect_string("count", given).view();
    const Part part = part_of(context, self, start, end);
    const std::string_view view = part.text.view();
    context.scan(view.size());
    if (!part.possible)
        return Value::of(Int{0});
    if (wanted.empty())
        return Value::of(static_cast<Int>(count_characters(view)) + 1);
    Int number = 0;
    for (std::size_t at = find_bytes(view, wanted); at != std::string_view::npos;
         at = find_bytes(view, wanted, at + wanted.size()))
        ++number;
    return Value::of(number);
}

template <bool kEnd> Value affix(Context& context, const Value& self, const Arguments& arguments) {
    const auto [given, start, end] =
        bind<3>("startswith", arguments, {"/prefix", "/start", "/end"}, 1);
    const Part part = part_of(context, self, start, end);
    const auto fits = [&](const Value& wanted) {
        const std::string_view text = expect_string("startswith", wanted).view();
        context.scan(text.size());
        return part.possible &&
               (kEnd ? part.text.view().ends_with(text) : part.text.view().starts_with(text));
    };
    if (!given.is(Kind::kTuple))
        return Value::of(fits(given));
    for (const Value& wanted : given.sequence().span())
        if (fits(wanted))
            return Value::of(true);
    return Value::of(false);
}

template <bool kEnd> Value remove_affix(Context&, const Value& self, const Arguments& arguments) {
    const auto [given] = bind<1>("removeprefix", arguments, {"/prefix"}, 1);
    const std::string_view text = expect_string("removeprefix", given).view();
    const Str whole = self.string();
    if (kEnd ? !whole.view().ends_with(text) : !whole.view().starts_with(text))
        return self;
    return Value::of(kEnd ? whole.sub(0, whole.size() - text.size()) : whole.sub(text.size()));
}

Value replace(Context& context, const Value& self, const Arguments& arguments) {
    const auto [old, by, count_given] = bind<3>("replace", arguments, {"/old", "/new", "count"}, 2);
    const Str with = expect_string("replace", by);
    return Value::of(replaced(context, self.string(), expect_string("replace", old),
                              self.markup() ? escaped(context, by) : with,
                              integer_or("replace", count_given, -1)));
}

Value join(Context& context, const Value& self, const Arguments& arguments) {
    const auto [items] = bind<1>("join", arguments, {"/iterable"}, 1);
    std::vector<Str> parts;
    for (const Value& item : collect(context, items))
        parts.push_back(self.markup() ? escaped(context, item) : expect_string("join", item));
    return Value::of(joined(context, self.string(), parts));
}

enum class Side { kLeft, kCenter, kRight };

template <Side kText> // where the text stands
Value justify(Context& context, const Value& self, const Arguments& arguments) {
    const auto [width_given, fill_given] = bind<2>("center", arguments, {"/width", "/fillchar"}, 1);
    const Int width = expect_integer("center", width_given);
    const Str fill = fill_given.is(Kind::kMissing) ? make_str(context, " ")
                                                   : expect_string("center", fill_given);
    if (count_characters(fill.view()) != 1)
        throw_error("center: expected one character to fill with, got '{}'", fill.view());
    if (kText == Side::kCenter)
        return Value::of(centered(context, self.string(), width, fill));
    const Int missing = width - static_cast<Int>(*length(context, self));
    if (missing > static_cast<Int>(context.limits().memory_bytes))
        throw_limit("expected at most {} bytes of values, got more", context.limits().memory_bytes);
    const auto blanks = static_cast<std::size_t>(std::max<Int>(missing, 0));
    Builder builder(context);
    builder.repeat(fill.view(), kText == Side::kRight ? blanks : 0, fill.any_outside());
    builder.add(self.string());
    builder.repeat(fill.view(), kText == Side::kLeft ? blanks : 0, fill.any_outside());
    return Value::of(builder.finish());
}

Value zfill(Context& context, const Value& self, const Arguments& arguments) {
    const auto [width] = bind<1>("zfill", arguments, {"/width"}, 1);
    const Int missing = expect_integer("zfill", width) - static_cast<Int>(*length(context, self));
    if (missing > static_cast<Int>(context.limits().memory_bytes))
        throw_limit("expected at most {} bytes of values, got more", context.limits().memory_bytes);
    const Str text = self.string();
    const bool sign = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
    Builder builder(context);
    builder.add(text.sub(0, sign ? 1 : 0));
    builder.repeat("0", static_cast<std::size_t>(std::max<Int>(missing, 0)), false);
    builder.add(text.sub(sign ? 1 : 0));
    return Value::of(builder.finish());
}

constexpr MethodInfo allowed(const char* name, decltype(MethodInfo::call) call) {
    return {name, MethodInfo::Access::kAllowed, call};
}
constexpr MethodInfo unsupported(const char* name) {
    return {name, MethodInfo::Access::kUnsupported, nullptr};
}

// By name.
constexpr MethodInfo kStringMethods[] = {
    allowed("capitalize", map_case<capitalized>),
    unsupported("casefold"),
    allowed("center", justify<Side::kCenter>),
    allowed("count", count),
    unsupported("encode"),
    allowed("endswith", affix<true>),
    unsupported("expandtabs"),
    allowed("find", find_method<false>),
    allowed("format", format_fields),
    unsupported("format_map"),
    allowed("index", index_method<false>),
    allowed("isalnum", all_are<is_alnum>),
    allowed("isalpha", all_are<is_alpha>),
    allowed("isascii", is_ascii_text),
    allowed("isdecimal", all_are<is_decimal>),
    allowed("isdigit", all_are<is_digit>),
    unsupported("isidentifier"),
    allowed("islower", is_case<is_lower, is_upper>),
    unsupported("isnumeric"),
    allowed("isprintable", is_printable_text),
    allowed("isspace", all_are<is_space>),
    allowed("istitle", is_title_text),
    allowed("isupper", is_case<is_upper, is_lower>),
    allowed("join", join),
    allowed("ljust", justify<Side::kLeft>),
    allowed("lower", map_case<to_lower>),
    allowed("lstrip", strip_method<true, false>),
    unsupported("maketrans"),
    allowed("partition", partition<false>),
    allowed("removeprefix", remove_affix<false>),
    allowed("removesuffix", remove_affix<true>),
    allowed("replace", replace),
    allowed("rfind", find_method<true>),
    allowed("rindex", index_method<true>),
    allowed("rjust", justify<Side::kRight>),
    allowed("rpartition", partition<true>),
    allowed("rsplit", split<true>),
    allowed("rstrip", strip_method<false, true>),
    allowed("split", split<false>),
    allowed("splitlines", splitlines),
    allowed("startswith", affix<false>),
    allowed("strip", strip_method<true, true>),
    allowed("swapcase", map_case<swapped_case>),
    allowed("title", map_case<title_cased>),
    unsupported("translate"),
    allowed("upper", map_case<to_upper>),
    allowed("zfill", zfill),
};

} // namespace

const MethodInfo* find_string_method(std::string_view name) {
    const MethodInfo* end = std::end(kStringMethods);
    const MethodInfo* found =
        std::partition_point(std::begin(kStringMethods), end,
                             [&](const MethodInfo& method) { return method.name < name; });
    return found != end && found->name == name ? found : nullptr;
}

} // namespace lr::text::jinja
