// SPDX-License-Identifier: Apache-2.0
#include "text/values/text_ops.h"

#include "text/values/characters.h"

#include <algorithm>
#include <cstring>

namespace lr::text::jinja {

std::size_t find_bytes(std::string_view text, std::string_view needle, std::size_t from) {
    if (from > text.size() || needle.empty())
        return from > text.size() ? std::string_view::npos : from;
    if (text.size() - from < needle.size())
        return std::string_view::npos;
    const void* found =
        memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
    if (found == nullptr)
        return std::string_view::npos;
    return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

namespace {

// `by` before each character and at the end.
Str interleaved(Context& context, Str text, Str by, Int count) {
    Builder builder(context);
    for (std::size_t at = 0; at < text.size() && count != 0; --count) {
        context.step();
        const auto length = static_cast<std::size_t>(character_at(text.view(), at).length);
        builder.add(by);
        builder.add(text.sub(0, length));
        text = text.sub(length);
    }
    builder.add(text);
    if (count != 0)
        builder.add(by);
    return builder.finish();
}

} // namespace

Str replaced(Context& context, Str text, Str old, Str by, Int count) {
    if (old.empty())
        return interleaved(context, text, by, count);
    context.scan(text.size());
    std::size_t found = count == 0 ? std::string_view::npos : find_bytes(text.view(), old.view());
    if (found == std::string_view::npos)
        return text;
    Builder builder(context);
    std::size_t at = 0;
    while (found != std::string_view::npos) {
        context.step();
        builder.add(text.sub(at, found));
        builder.add(by);
        at = found + old.size();
        --count;
        found = count == 0 ? std::string_view::npos : find_bytes(text.view(), old.view(), at);
    }
    builder.add(text.sub(at));
    return builder.finish();
}

Str strip(Str text, bool left, bool right) {
    const Stretch rest = stripped(text.view(), left, right);
    return text.sub(rest.begin, rest.end);
}

Str strip(Str text, bool left, bool right, std::string_view chars) {
    const Stretch rest = stripped(text.view(), left, right, chars);
    return text.sub(rest.begin, rest.end);
}

Str centered(Context& context, Str text, Int width, Str fill) {
    context.scan(text.size());
    const Int missing = width - static_cast<Int>(count_characters(text.view()));
    if (missing <= 0)
        return text;
    if (missing > static_cast<Int>(context.limits().memory_bytes))
        throw_limit("expected at most {} bytes of values, got more", context.limits().memory_bytes);
    // An odd blank goes left where the width is odd: Python's choice.
    const Int left = missing / 2 + (missing & width & 1);
    Builder builder(context);
    builder.repeat(fill.view(), static_cast<std::size_t>(left), fill.any_outside());
    builder.add(text);
    builder.repeat(fill.view(), static_cast<std::size_t>(missing - left), fill.any_outside());
    return builder.finish();
}

std::vector<Str> split_lines(Context& context, Str text, bool keep_ends) {
    context.scan(text.size());
    std::vector<Str> lines;
    const std::string_view view = text.view();
    std::size_t begin = 0;
    for (std::size_t at = 0; at < view.size();) {
        const Character c = character_at(view, at);
        std::size_t behind = at + static_cast<std::size_t>(c.length);
        if (is_line_end(c.code)) {
            if (c.code == '\r' && behind < view.size() && view[behind] == '\n')
                ++behind;
            context.step();
            lines.push_back(text.sub(begin, keep_ends ? behind : at));
            begin = behind;
        }
        at = behind;
    }
    if (begin < view.size())
        lines.push_back(text.sub(begin));
    return lines;
}

std::vector<Str> split_right(Context& context, Str text, std::string_view separator, Int most) {
    std::vector<Str> parts;
    std::size_t end = text.size();
    // A search from the right compares at each place.
    context.step(text.size() * std::min<std::size_t>(separator.size(), 1024) / 65536 +
                 text.size() / 1024);
    while (most != 0 && end >= separator.size()) {
        context.step();
        const std::size_t found = text.view().substr(0, end).rfind(separator);
        if (found == std::string_view::npos)
            break;
        parts.push_back(text.sub(found + separator.size(), end));
        end = found;
        --most;
    }
    parts.push_back(text.sub(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
}

Str joined(Context& context, Str separator, std::span<const Str> parts) {
    if (parts.size() == 1)
        return parts[0];
    Builder builder(context);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0)
            builder.add(separator);
        builder.add(parts[i]);
    }
    return builder.finish();
}

} // namespace lr::text::jinja
