// SPDX-License-Identifier: Apache-2.0
#include "text/values/text_case.h"

#include "text/unicode.h"
#include "text/values/characters.h"

namespace lr::text::jinja {

namespace {

constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;

// The nearest character before or behind byte `at` that is not case-ignorable is cased.
bool cased_before(std::string_view text, std::size_t at) {
    while (at > 0) {
        --at;
        while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
            --at;
        const char32_t c = character_at(text, at).code;
        if (!is_case_ignorable(c))
            return is_cased(c);
    }
    return false;
}

bool cased_behind(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        const Character c = character_at(text, at);
        if (!is_case_ignorable(c.code))
            return is_cased(c.code);
        at += static_cast<std::size_t>(c.length);
    }
    return false;
}

// One character of a text, with its place, for what depends on the neighbours.
struct Place {
    Context& context;
    std::string_view text;
    std::size_t at;
    Character c;
};

void append_lower_at(std::string& out, const Place& place) {
    if (place.c.code != kSigma)
        return append_lower(out, place.c.code);
    // Text of nothing but sigmas and marks would look through it all each time.
    place.context.scan(place.text.size());
    const std::size_t behind = place.at + static_cast<std::size_t>(place.c.length);
    const bool final = cased_before(place.text, place.at) && !cased_behind(place.text, behind);
    append_utf8(out, final ? kFinalSigma : U'\x3C3');
}

// `append(out, place)` gives what each character becomes.
template <typename Append> Str mapped(Context& context, Str text, Append append) {
    Builder builder(context);
    OutsideCursor marks(text);
    std::string out;
    context.scan(16 * text.size());
    for (std::size_t at = 0; at < text.size();) {
        const Character c = character_at(text.view(), at);
        out.clear();
        append(out, Place{context, text.view(), at, c});
        builder.add(out, marks.at(at));
        at += static_cast<std::size_t>(c.length);
    }
    return builder.finish();
}

} // namespace

Str to_upper(Context& context, Str text) {
    return mapped(context, text,
                  [](std::string& out, const Place& place) { append_upper(out, place.c.code); });
}

Str to_lower(Context& context, Str text) {
    return mapped(context, text, append_lower_at);
}

Str capitalized(Context& context, Str text) {
    return mapped(context, text, [](std::string& out, const Place& place) {
        if (place.at == 0)
            append_title(out, place.c.code);
        else
            append_lower_at(out, place);
    });
}

Str title_cased(Context& context, Str text) {
    bool inside = false; // behind a cased character
    return mapped(context, text, [&](std::string& out, const Place& place) {
        if (inside)
            append_lower_at(out, place);
        else
            append_title(out, place.c.code);
        inside = is_cased(place.c.code);
    });
}

Str swapped_case(Context& context, Str text) {
    return mapped(context, text, [](std::string& out, const Place& place) {
        if (is_upper(place.c.code))
            append_lower_at(out, place);
        else if (is_lower(place.c.code))
            append_upper(out, place.c.code);
        else
            append_utf8(out, place.c.code);
    });
}

} // namespace lr::text::jinja
