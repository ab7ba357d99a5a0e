// SPDX-License-Identifier: Apache-2.0
#include "text/tool_calls.h"
#include "text/unicode.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace lr::text {

void PrintTo(const ToolAnswer& answer, std::ostream* out) {
    *out << json_quote(answer.text);
    for (const ToolAnswer::Call& call : answer.calls)
        *out << " | " << call.name << " " << call.arguments << (call.complete ? "" : " ...");
}

namespace {

const char* const kTools = R"([
  {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
    "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "array"},
    "o": {"type": "object"}, "t": {"type": "boolean"}, "x": {"type": "number"},
    "s": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "n": {"type": ["integer", "null"]},
    "any": {}, "u": {"type": ["string", "integer"]}, "e": {"enum": ["red", "green"]},
    "r": {"$ref": "#/$defs/list"}},
    "$defs": {"list": {"type": "array"}}, "required": ["a"]}}},
  {"type": "function", "function": {"name": "bash", "parameters": {"type": "object",
    "properties": {"command": {"type": "string"}}, "required": ["command"]}}},
  {"type": "function", "function": {"name": "free"}}])";

ToolSet tool_set(const char* json = kTools) {
    const Result<Json> tools = parse_json(json, "tools");
    EXPECT_TRUE(tools.has_value());
    Result<ToolSet> set = ToolSet::from_json(JsonCursor("tools", *tools, Code::kInvalidArgument));
    EXPECT_TRUE(set.has_value()) << set.error().message();
    return std::move(*set);
}

using Calls = std::vector<ToolAnswer::Call>;

struct Case {
    std::string input, text;
    Calls calls;
};

std::string block(const std::string& inside) {
    return "<tool_call>\n" + inside + "\n</tool_call>";
}

std::string f_with(const std::string& parameters) {
    return block("<function=f>\n" + parameters + "\n</function>");
}

std::string value(const std::string& name, const std::string& text) {
    return "<parameter=" + name + ">\n" + text + "\n</parameter>";
}

Case f_case(const std::string& parameters, const std::string& arguments) {
    return {f_with(parameters), "", {{"f", arguments, true}}};
}

std::vector<Case> well_formed() {
    return {
        {"", "", {}},
        {"No call at all.\n", "No call at all.\n", {}},
        {" \n", " \n", {}},
        f_case(value("a", "hi"), R"({"a":"hi"})"),
        f_case(value("a", "hi") + "\n" + value("b", "5"), R"({"a":"hi","b":5})"),
        {block("<function=f>\n</function>"), "", {{"f", "{}", true}}},
        {"Let me look.\n\n" + f_with(value("a", "x")) + "\n",
         "Let me look.",
         {{"f", R"({"a":"x"})", true}}},
        {f_with(value("a", "1")) + "\n" + f_with(value("a", "2")),
         "",
         {{"f", R"({"a":"1"})", true}, {"f", R"({"a":"2"})", true}}},
        {"one " + f_with("") + "\n two \n" + f_with("") + "\n three\n",
         "one\n two\n three\n",
         {{"f", "{}", true}, {"f", "{}", true}}},
        {f_with("") + "\n\nthen text", "then text", {{"f", "{}", true}}},
        // Values: strings as they stand, one line feed off either end.
        f_case("<parameter=a>x</parameter>", R"({"a":"x"})"),
        f_case(value("a", ""), R"({"a":""})"),
        f_case("<parameter=a></parameter>", R"({"a":""})"),
        f_case("<parameter=a>\n</parameter>", R"({"a":""})"),
        f_case(value("a", "\n  two\nlines \n"), R"({"a":"\n  two\nlines \n"})"),
        f_case(value("a", "q\" b\\ t\t \x01 \xF0\x9F\x98\x80 \xC3\xA9"),
               "{\"a\":\"q\\\" b\\\\ t\\t \\u0001 \xF0\x9F\x98\x80 \xC3\xA9\"}"),
        f_case(value("a", "5"), R"({"a":"5"})"),
        f_case(value("a", "null"), R"({"a":"null"})"),
        f_case(value("a", "<div>a < b</div>"), R"({"a":"<div>a < b</div>"})"),
        f_case(value("a", "if (a <\nb) \n<p\n</p"), R"({"a":"if (a <\nb) \n<p\n</p"})"),
        // Other types.
        f_case(value("b", "9007199254740993"), R"({"b":9007199254740993})"),
        f_case(value("b", "123456789012345678901234567890"),
               R"({"b":123456789012345678901234567890})"),
        f_case(value("b", " -7 "), R"({"b":-7})"),
        f_case(value("x", "0.10"), R"({"x":0.10})"),
        f_case(value("t", "true") + value("c", "[1, 2]") + value("o", "{\"k\": [1, {}]}"),
               R"({"t":true,"c":[1, 2],"o":{"k": [1, {}]}})"),
        f_case(value("t", "False"), R"({"t":false})"),
        f_case(value("r", "[]") + value("e", "red"), R"({"r":[],"e":"red"})"),
        f_case(value("any", "[1]") + value("u", "12"), R"({"any":[1],"u":12})"),
        f_case(value("any", "some text") + value("u", "0x12"), R"({"any":"some text","u":"0x12"})"),
        f_case(value("s", "null") + value("n", "null"), R"({"s":null,"n":null})"),
        f_case(value("s", "nullable"), R"({"s":"nullable"})"),
        f_case(value("s", "") + value("n", ""), R"({"s":"","n":null})"),
        f_case(value("s", "None") + value("a", "None"), R"({"s":null,"a":"None"})"),
        // No schema: strings.
        f_case(value("zz", "5"), R"({"zz":"5"})"),
        {block("<function=free>\n" + value("k", "[1]") + "\n</function>"),
         "",
         {{"free", R"({"k":"[1]"})", true}}},
        {block("<function=unknown>\n" + value("k", "1") + "\n</function>"),
         "",
         {{"unknown", R"({"k":"1"})", true}}},
        // JSON in the block.
        {block(R"({"name": "f", "arguments": {"b": 123456789012345678901, "a": "}</tool_call>"}})"),
         "",
         {{"f", R"({"b": 123456789012345678901, "a": "}</tool_call>"})", true}}},
        {block(R"({"arguments": "{\"a\": \"x\"}", "name": "f"})"),
         "",
         {{"f", R"({"a": "x"})", true}}},
        {block(R"({"name": "f"})") + block(R"({"name": "f", "arguments": { } })"),
         "",
         {{"f", "{}", true}, {"f", "{ }", true}}},
        // Two functions in one block.
        {block("<function=f>\n</function>\n<function=bash>\n</function>") + "!",
         "!",
         {{"f", "{}", true}, {"bash", "{}", true}}},
    };
}

std::vector<Case> missing_tags() {
    return {
        // B43: the tag of a parameter is broken; the others count.
        {"<function=f><parameter=a</parameter><parameter=b>2</parameter></function>",
         "<parameter=a</parameter>",
         {{"f", R"({"b":2})", true}}},
        {block("<function=f><parameter=></parameter>" + value("b", "1") + "</function>"),
         "<parameter=></parameter>",
         {{"f", R"({"b":1})", true}}},
        // B44: no </parameter>.
        f_case("<parameter=b>5", R"({"b":5})"),
        {"<function=f><parameter=a>x</function>", "", {{"f", R"({"a":"x"})", true}}},
        f_case("<parameter=a>\nx\n<parameter=b>\n5\n</parameter>", R"({"a":"x","b":5})"),
        {"<tool_call><function=f><parameter=a>\nx\n</tool_call> done",
         "done",
         {{"f", R"({"a":"x"})", true}}},
        {"<tool_call><function=f><parameter=a>x</tool_call>\n", "", {{"f", R"({"a":"x"})", true}}},
        {"<tool_call>\n<function=f>\n<parameter=a>\nx\n<tool_call>\n<function=bash>\n</function>",
         "",
         {{"f", R"({"a":"x"})", true}, {"bash", "{}", true}}},
        {"<tool_call>\n<function=f>\n<parameter=a>\nx\ny\n", "", {{"f", R"({"a":"x\ny"})", false}}},
        {"<tool_call>\n<function=f>\n<parameter=b>5", "", {{"f", R"({"b":5})", false}}},
        {"<tool_call>\n<function=f>\n" + value("b", "5"), "", {{"f", R"({"b":5})", false}}},
        {"<tool_call>\n<function=f>\n" + value("b", "5") + "</function>",
         "",
         {{"f", R"({"b":5})", true}}},
        {"<tool_call>\n<function=f>", "", {{"f", "{}", false}}},
        {block("<function=f>" + value("b", "5")), "", {{"f", R"({"b":5})", true}}},
        {"<tool_call><function=f><function=bash></function>",
         "",
         {{"f", "{}", true}, {"bash", "{}", true}}},
        // Tags inside a value that end nothing.
        f_case(value("a", "see </function> and <parameter=b> and <tool_call> here"),
               R"({"a":"see </function> and <parameter=b> and <tool_call> here"})"),
        f_case(value("a", "x\n<parameter=zz>\ny\n</function>\nz"),
               R"({"a":"x\n<parameter=zz>\ny\n</function>\nz"})"),
        f_case(value("a", "x </tool_call> y\n<tool_call> z"),
               R"({"a":"x </tool_call> y\n<tool_call> z"})"),
        f_case(value("b", "1") + value("a", "x\n<parameter=b>\ny"),
               R"({"b":1,"a":"x\n<parameter=b>\ny"})"),
    };
}

std::vector<Case> wrong_values_and_names() {
    const std::string broken_json = block(R"({"name": "f", "arguments": [1]})");
    return {
        // B46: nothing, or None, where a value other than a string belongs.
        f_case("<parameter=b></parameter><parameter=c>\n\n</parameter>" + value("o", "None") +
                   value("a", "x"),
               R"({"a":"x"})"),
        f_case(value("b", "null"), "{}"),
        // B48: names in quotes.
        {block("<function=\"bash\">\n<parameter=\"command\">\nls\n</parameter>\n</function>"),
         "",
         {{"bash", R"({"command":"ls"})", true}}},
        {block("<function= 'bash' >" + value(" command ", "ls") + "</function>"),
         "",
         {{"bash", R"({"command":"ls"})", true}}},
        // Text of the wrong type is not lost.
        f_case(value("b", "five") + value("c", "{'a': 1}") + value("o", "[1]"),
               R"({"b":"five","c":"{'a': 1}","o":"[1]"})"),
        // A name given twice, and words between the tags.
        f_case(value("a", "1"), R"({"a":"1"})"),
        {f_with(value("a", "1") + "\n<parameter=a>2</parameter>"),
         "<parameter=a>2</parameter>",
         {{"f", R"({"a":"1"})", true}}},
        {f_with("now a:\n" + value("a", "1") + "\nand  so on\n"),
         "now a:\nand  so on",
         {{"f", R"({"a":"1"})", true}}},
        // No calls: all of it is text.
        {"<tool_call>\n</tool_call>", "<tool_call>\n</tool_call>", {}},
        {"use <tool_call> \n and </tool_call>, <function=g>, </parameter> <",
         "use <tool_call> \n and </tool_call>, <function=g>, </parameter> <",
         {}},
        {"<tool_call>\n<function=f\n>x", "<tool_call>\n<function=f\n>x", {}},
        {"<tool_call>\n<function=", "<tool_call>\n<function=", {}},
        {"<tool_call>\n\n", "<tool_call>\n\n", {}},
        {"<tool_ca", "<tool_ca", {}},
        {"<tool_call>{\"name\": \"f\", \"argu", "<tool_call>{\"name\": \"f\", \"argu", {}},
        {"<function=unknown><parameter=a>1</parameter></function>",
         "<function=unknown><parameter=a>1</parameter></function>",
         {}},
        {"<function=" + std::string(300, 'f') + ">",
         "<function=" + std::string(300, 'f') + ">",
         {}},
        {"<tool_call>{'name': 'f'}</tool_call>", "<tool_call>{'name': 'f'}</tool_call>", {}},
        {broken_json + " and " + f_with(""), broken_json + " and", {{"f", "{}", true}}},
        {"<tool_call><tool_call><function=f></function>", "<tool_call>", {{"f", "{}", true}}},
    };
}

std::vector<Case> malformed() {
    std::vector<Case> cases = missing_tags();
    for (Case& c : wrong_values_and_names())
        cases.push_back(std::move(c));
    return cases;
}

std::vector<Case> corpus() {
    std::vector<Case> cases = well_formed();
    for (Case& c : malformed())
        cases.push_back(std::move(c));
    return cases;
}

ToolAnswer parse(const ToolSet& tools, std::string_view input, std::size_t size) {
    ToolCallParser parser(tools);
    ToolAnswer answer;
    for (std::size_t at = 0; at < input.size(); at += size)
        answer.add(parser.push(input.substr(at, size)));
    answer.add(parser.finish());
    return answer;
}

TEST(ToolCalls, AreFoundInWellFormedAnswers) {
    const ToolSet tools = tool_set();
    for (const Case& c : well_formed())
        EXPECT_EQ(parse(tools, c.input, 1 << 20), (ToolAnswer{c.text, c.calls})) << c.input;
}

TEST(ToolCalls, AreSavedFromMalformedAnswers_B43_B44_B46_B48) {
    const ToolSet tools = tool_set();
    for (const Case& c : malformed())
        EXPECT_EQ(parse(tools, c.input, 1 << 20), (ToolAnswer{c.text, c.calls})) << c.input;
}

// Events with neighbours put together that the cuts kept apart.
std::vector<ToolCallEvent> merged(const std::vector<ToolCallEvent>& events) {
    std::vector<ToolCallEvent> result;
    for (const ToolCallEvent& event : events) {
        const bool streams = event.kind == ToolCallEvent::Kind::kText ||
                             event.kind == ToolCallEvent::Kind::kArguments;
        if (streams && !result.empty() && result.back().kind == event.kind)
            result.back().text += event.text;
        else
            result.push_back(event);
    }
    return result;
}

std::vector<ToolCallEvent> events_of(const ToolSet& tools, const std::vector<std::string>& pieces) {
    ToolCallParser parser(tools);
    std::vector<ToolCallEvent> events;
    for (const std::string& piece : pieces)
        for (ToolCallEvent& event : parser.push(piece))
            events.push_back(std::move(event));
    for (ToolCallEvent& event : parser.finish())
        events.push_back(std::move(event));
    return merged(events);
}

TEST(ToolCalls, AreTheSameHoweverTheTextIsCut) {
    const ToolSet tools = tool_set();
    const std::vector<Case> cases = corpus();
    EXPECT_GE(cases.size(), 60u);
    for (const Case& c : cases) {
        const std::vector<ToolCallEvent> whole = events_of(tools, {c.input});
        std::vector<std::string> bytes;
        for (char byte : c.input)
            bytes.emplace_back(1, byte);
        EXPECT_EQ(events_of(tools, bytes), whole) << c.input;
        for (std::size_t cut = 0; cut <= c.input.size(); ++cut)
            EXPECT_EQ(events_of(tools, {c.input.substr(0, cut), c.input.substr(cut)}), whole)
                << c.input << " cut at " << cut;
    }
}

TEST(ToolCalls, CutAnywhereGiveValidJsonAndLoseNoTextBeforeTheFirst) {
    const ToolSet tools = tool_set();
    for (const Case& c : corpus())
        for (std::size_t cut = 0; cut <= c.input.size(); ++cut) {
            if (first_invalid_utf8(c.input.substr(0, cut)))
                continue;
            const ToolAnswer answer = parse(tools, c.input.substr(0, cut), 1 << 20);
            for (const ToolAnswer::Call& call : answer.calls) {
                const Result<Json> json = parse_json(call.arguments, "arguments");
                ASSERT_TRUE(json.has_value()) << call.arguments;
                EXPECT_TRUE(json->is_object());
            }
            if (answer.calls.empty()) {
                EXPECT_EQ(answer.text, c.input.substr(0, cut));
            }
        }
}

TEST(ToolCalls, StreamAStringWhileItArrives_B49) {
    const ToolSet tools = tool_set();
    ToolCallParser parser(tools);
    using Kind = ToolCallEvent::Kind;
    const auto event = [](Kind kind, std::string text) {
        return std::vector<ToolCallEvent>{{kind, kind == Kind::kText ? -1 : 0, std::move(text)}};
    };
    EXPECT_EQ(parser.push("Hi.\n<tool"), event(Kind::kText, "Hi."));
    EXPECT_EQ(parser.push("_call>\n<function=bash>"), event(Kind::kCall, "bash"));
    EXPECT_EQ(parser.push("\n<parameter=command>\n"), event(Kind::kArguments, R"({"command":")"));
    EXPECT_EQ(parser.push("echo \"\xF0\x9F\x98\x80\""),
              event(Kind::kArguments, "echo \\\"\xF0\x9F\x98\x80\\\""));
    EXPECT_EQ(parser.push("\n"), std::vector<ToolCallEvent>{});
    EXPECT_EQ(parser.push("\t<"), event(Kind::kArguments, R"(\n\t)"));
    EXPECT_EQ(parser.push("b>\n</param"), event(Kind::kArguments, "<b>"));
    EXPECT_EQ(parser.push("eter>\n"), event(Kind::kArguments, "\""));
    EXPECT_EQ(parser.push("</function>"),
              (std::vector<ToolCallEvent>{{Kind::kArguments, 0, "}"}, {Kind::kEnd, 0, ""}}));
    EXPECT_EQ(parser.push("\n</tool_call>\n"), std::vector<ToolCallEvent>{});
    EXPECT_EQ(parser.finish(), std::vector<ToolCallEvent>{});
    EXPECT_EQ(parser.calls(), 1);
}

TEST(ToolCalls, AgreeOnRandomMixturesHoweverTheyAreCut) {
    const ToolSet tools = tool_set();
    const std::vector<std::string> parts = {"<tool_call>",
                                            "</tool_call>",
                                            "<function=f>",
                                            "<function=g>",
                                            "</function>",
                                            "<parameter=a>",
                                            "<parameter=b>",
                                            "</parameter>",
                                            "\n",
                                            " ",
                                            "x",
                                            "5",
                                            "{",
                                            "}",
                                            "\"name\":\"f\"",
                                            "<",
                                            ">",
                                            "\n\n",
                                            "null",
                                            "<parameter",
                                            "\\",
                                            "\"",
                                            ":",
                                            ",",
                                            "\"arguments\":{}"};
    std::mt19937 random(17);
    int calls = 0;
    for (int round = 0; round < 5000; ++round) {
        std::string whole;
        const unsigned count = random() % 24;
        for (unsigned i = 0; i < count; ++i)
            whole += parts[random() % parts.size()];
        std::vector<std::string> pieces;
        for (std::size_t at = 0; at < whole.size();) {
            pieces.push_back(whole.substr(at, random() % 9));
            at += pieces.back().size();
        }
        const std::vector<ToolCallEvent> events = events_of(tools, pieces);
        ASSERT_EQ(events, events_of(tools, {whole})) << whole;
        ToolAnswer answer;
        answer.add(events);
        for (const ToolAnswer::Call& call : answer.calls)
            ASSERT_TRUE(parse_json(call.arguments, "").has_value()) << whole;
        calls += static_cast<int>(answer.calls.size());
    }
    EXPECT_GT(calls, 500);
}

TEST(ToolCalls, TakeLinearTime) {
    const ToolSet tools = tool_set();
    const auto seconds = [&](const std::string& unit, std::size_t count) {
        std::string input = "<tool_call>\n<function=f>\n<parameter=a>\n";
        if (unit[0] == '{')
            input.clear();
        for (std::size_t i = 0; i < count; ++i)
            input += unit;
        const auto start = std::chrono::steady_clock::now();
        parse(tools, input, 3);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (const char* unit :
         {"\n", "<", "</function>\n", "<parameter=b", "{<tool_call>", "<tool_call>{"}) {
        seconds(unit, 500);
        const double small = seconds(unit, 1000), large = seconds(unit, 16000);
        EXPECT_LT(large, 64 * small + 0.1)
            << unit; // 16 times the text; a square law would give 256
    }
}

TEST(ToolSchema, ReadsTypesFromEveryForm) {
    const auto types = [](const char* schema, const char* root = "{}") {
        return int{schema_types(*parse_json(schema, ""), *parse_json(root, ""))};
    };
    EXPECT_EQ(types(R"({"type": "string"})"), kStringType);
    EXPECT_EQ(types(R"({"type": "integer"})"), kNumberType);
    EXPECT_EQ(types(R"({"type": ["array", "null"]})"), kArrayType | kNullType);
    EXPECT_EQ(types(R"({"anyOf": [{"type": "string"}, {"type": "null"}]})"),
              kStringType | kNullType);
    EXPECT_EQ(types(R"({"oneOf": [{"type": "object"}, {"const": true}]})"),
              kObjectType | kBooleanType);
    EXPECT_EQ(types(R"({"allOf": [{"type": ["string", "number"]}, {"type": "number"}]})"),
              kNumberType);
    EXPECT_EQ(types(R"({"enum": ["a", 1, null]})"), kStringType | kNumberType | kNullType);
    EXPECT_EQ(types(R"({"type": "string", "enum": ["a"]})"), kStringType);
    EXPECT_EQ(types("{}"), kAnyType);
    EXPECT_EQ(types("true"), kAnyType);
    EXPECT_EQ(types(R"({"type": 5})"), kAnyType);
    EXPECT_EQ(types(R"({"type": "strange"})"), kAnyType);
    EXPECT_EQ(types(R"({"allOf": [{"type": "string"}, {"type": "number"}]})"), kAnyType);
    const char* root = R"({"$defs": {"C": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"},
                           "twice": {"anyOf": [{"$ref": "#/$defs/twice"}, {"$ref": "#/$defs/twice"}]}}})";
    EXPECT_EQ(types(R"({"$ref": "#/$defs/C"})", root), kStringType);
    EXPECT_EQ(types(R"({"$ref": "#/$defs/D"})", root), kAnyType);
    EXPECT_EQ(types(R"({"$ref": "https://example.org/C"})", root), kAnyType);
    EXPECT_EQ(types(R"({"$ref": "#/$defs/loop"})", root), kAnyType);
    EXPECT_EQ(types(R"({"$ref": "#/$defs/twice"})", root), kAnyType);
}

TEST(ToolSchema, RefusesToolsThatAreNone) {
    const auto error = [](const char* json) {
        const Result<Json> tools = parse_json(json, "");
        const Result<ToolSet> set =
            ToolSet::from_json(JsonCursor("tools", *tools, Code::kInvalidArgument));
        return set ? "no error" : set.error().message();
    };
    EXPECT_EQ(error("[]"), "no error");
    EXPECT_EQ(error(R"([{"name": "g", "parameters": null}])"), "no error");
    EXPECT_EQ(error("{}"), "tools: expected an array, got an object of 0 members");
    EXPECT_EQ(error(R"([{"function": {}}])"),
              "tools: [0].function: expected the key \"name\", got none");
    EXPECT_EQ(error(R"([{"name": "g"}, {"name": "g"}])"),
              "tools: [1]: expected each name once, got \"g\" again");
    EXPECT_EQ(error(R"([{"name": ""}])"), "tools: [0]: expected a name, got \"\"");
}

} // namespace
} // namespace lr::text
