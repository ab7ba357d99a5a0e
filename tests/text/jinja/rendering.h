// SPDX-License-Identifier: Apache-2.0
//
// tests/text/jinja/rendering.h: short ways to run a template.
#pragma once

#include "tests/text/fixture.h"
#include "text/jinja/template.h"

namespace lr::text::jinja {

inline Json json_of(std::string_view text) {
    Result<Json> json = parse_json(text, "test", {.max_depth = 200});
    EXPECT_TRUE(json.has_value()) << (json ? "" : json.error().message());
    return json ? std::move(*json) : Json();
}

// Noon of the last day of 1999, the same day in every time zone but the farthest.
constexpr std::time_t kNow = 946641600;

// Every member of `variables`, an object, is a variable from outside.
inline Result<MarkedText> render(std::string_view source, const Json& variables,
                                 const Limits& limits = {}) {
    LR_TRY_ASSIGN(const Template compiled, Template::compile(source, "t"));
    std::vector<RenderVariable> list;
    for (const JsonMember& member : variables.as_object().members())
        list.push_back({member.key, &member.value});
    return compiled.render(list, {limits, kNow});
}

// The output, or the error's message behind "error: ".
inline std::string run(std::string_view source, std::string_view variables = "{}") {
    Result<MarkedText> out = render(source, json_of(variables));
    return out ? out->text : "error: " + out.error().message();
}

// The output with what came from outside in brackets.
inline std::string marked(const MarkedText& out) {
    std::string text;
    std::size_t at = 0;
    for (const ByteRange& range : out.outside) {
        text += out.text.substr(at, range.begin - at) + "⟦" +
                out.text.substr(range.begin, range.end - range.begin) + "⟧";
        at = range.end;
    }
    return text + out.text.substr(at);
}

inline std::string run_marked(std::string_view source, std::string_view variables) {
    Result<MarkedText> out = render(source, json_of(variables));
    return out ? marked(*out) : "error: " + out.error().message();
}

} // namespace lr::text::jinja
