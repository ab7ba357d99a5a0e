// SPDX-License-Identifier: Apache-2.0
//
// An answer from a model, cut into pieces as its first byte says: the events are those of the
// whole, arguments are JSON objects, and what is no call comes out as text.
#include "core/check.h"
#include "tests/fuzz/fuzz.h"
#include "text/tool_calls.h"
#include "text/unicode.h"

#include <string>
#include <vector>

namespace {

using lr::text::ToolCallEvent;
using Events = std::vector<ToolCallEvent>;

const char* const kTools = R"([
  {"type": "function", "function": {"name": "f", "parameters": {"properties": {
    "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "array"},
    "s": {"type": ["string", "null"]}, "any": {}}}}},
  {"name": "g"}])";

lr::text::ToolSet make_tools() {
    const auto json = lr::parse_json(kTools, "tools");
    LR_CHECK(json.has_value());
    auto tools = lr::text::ToolSet::from_json(lr::JsonCursor("tools", *json));
    LR_CHECK(tools.has_value());
    return std::move(*tools);
}

Events events_of(const lr::text::ToolSet& tools, std::string_view text, std::size_t piece) {
    lr::text::ToolCallParser parser(tools);
    Events events;
    const auto add = [&](Events more) {
        for (ToolCallEvent& event : more) {
            const bool streams = event.kind == ToolCallEvent::Kind::kText ||
                                 event.kind == ToolCallEvent::Kind::kArguments;
            if (streams && !events.empty() && events.back().kind == event.kind)
                events.back().text += event.text;
            else
                events.push_back(std::move(event));
        }
    };
    for (std::size_t at = 0; at < text.size(); at += piece)
        add(parser.push(text.substr(at, piece)));
    add(parser.finish());
    return events;
}

bool is_subsequence(std::string_view part, std::string_view whole) {
    std::size_t at = 0;
    for (char c : part) {
        at = whole.find(c, at);
        if (at++ == std::string_view::npos)
            return false;
    }
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const lr::text::ToolSet tools = make_tools();
    if (size == 0)
        return 0;
    const std::string text = lr::text::replace_invalid_utf8(lr::fuzz::as_text(data + 1, size - 1));
    const Events events = events_of(tools, text, std::string::npos);
    FUZZ_CHECK(events == events_of(tools, text, 1 + data[0] % 32));

    lr::text::ToolAnswer answer;
    answer.add(events);
    for (const auto& call : answer.calls) {
        const auto arguments = lr::parse_json(call.arguments, "", {.max_depth = 66});
        FUZZ_CHECK(arguments.has_value() && arguments->is_object());
        FUZZ_CHECK(!call.name.empty());
    }
    FUZZ_CHECK(is_subsequence(answer.text, text));
    if (answer.calls.empty())
        FUZZ_CHECK(answer.text == text);
    return 0;
}
