// SPDX-License-Identifier: Apache-2.0
#include "tests/text/fixture.h"
#include "text/detokenizer.h"
#include "text/reasoning.h"

#include <gtest/gtest.h>

#include <random>

namespace lr::text {

void PrintTo(const SplitText& text, std::ostream* out) {
    *out << json_quote(text.reasoning) << " | " << json_quote(text.content);
}

namespace {

SplitText operator+(SplitText a, const SplitText& b) {
    a.reasoning += b.reasoning;
    a.content += b.content;
    return a;
}

SplitText split(std::string_view text, bool inside, ReasoningFormat format = {}) {
    ReasoningSplitter splitter(std::move(format), inside);
    const SplitText pushed = splitter.push(text);
    return pushed + splitter.flush();
}

struct Case {
    bool inside;
    std::string text;
    SplitText expected;
};

const std::vector<Case> kCases = {
    // The prompt opened the tag (B37): what comes before </think> is reasoning.
    {true, "Let me see.\n</think>\n\nIt is 4.", {"Let me see.", "It is 4."}},
    {true, "a</think>b", {"a", "b"}},
    {true, "a\n\n</think>\n\n\nb\n", {"a\n", "\nb\n"}},
    {true, "a\n</think>\n  b", {"a", "  b"}},
    {true, "never closed\n", {"never closed\n", ""}},
    {true, "", {"", ""}},
    {true, "\n</think>\n\nyes", {"", "yes"}},
    {true, " \n\t</think>yes", {"", "yes"}},
    {true, "  indented\n\n  text</think>", {"  indented\n\n  text", ""}},
    // The prompt closed it, or knows no reasoning (B39): all is content.
    {false, "It is 4.", {"", "It is 4."}},
    {false, "\n\n  padded\n", {"", "\n\n  padded\n"}},
    {false, "  \n", {"", "  \n"}},
    // The model writes the tags itself (B41): in neither field.
    {true, "<think>\nhm\n</think>\n\nyes", {"hm", "yes"}},
    {true, "\n<think>hm</think>yes", {"hm", "yes"}},
    {false, "<think>\nhm\n</think>\n\nyes", {"hm", "yes"}},
    {false, " \n<think>\n\nhm</think>yes", {"\nhm", "yes"}},
    {false, "</think>\n\nyes", {"", "yes"}},
    {false, "<think>\n\n</think>\n\nyes", {"", "yes"}},
    // A tag that parses nothing is text.
    {true, "the <think> tag\n</think>\n\nok", {"the <think> tag", "ok"}},
    {false, "use <think> and </think>", {"", "use <think> and </think>"}},
    {true, "a</think>b</think>c<think>d", {"a", "b</think>c<think>d"}},
    {true, "1 < 2, <thin, </thinkk>, <</think>x", {"1 < 2, <thin, </thinkk>, <", "x"}},
    {true, "ends in a piece </thi", {"ends in a piece </thi", ""}},
    {true, "x\n</thi", {"x\n</thi", ""}},
    {false, "<thin", {"", "<thin"}},
    // A call ends reasoning that was not closed.
    {true,
     "I call.\n\n<tool_call>\n<function=f>\n</function>\n</tool_call>",
     {"I call.\n", "<tool_call>\n<function=f>\n</function>\n</tool_call>"}},
    {true, "go<tool_call>{\"name\":1}", {"go", "<tool_call>{\"name\":1}"}},
    {true, "<tool_call>\n<function=f>", {"", "<tool_call>\n<function=f>"}},
    {true,
     "go\n<tool_call>\n<function=f></function>\n</tool_call>\n</think>\n\ndone </think>",
     {"go", "<tool_call>\n<function=f></function>\n</tool_call>\ndone </think>"}},
    {true,
     "write <tool_call> first, then <function=f>\n</think>\n\nok",
     {"write <tool_call> first, then <function=f>", "ok"}},
    {true, "a <tool_call>\n<funct</think>b", {"a <tool_call>\n<funct", "b"}},
    {true, "a <tool_call>\n<funct", {"a <tool_call>\n<funct", ""}},
    {true, "a <tool_call><tool_call>{", {"a <tool_call>", "<tool_call>{"}},
    {true, "a <tool_call>                      {", {"a <tool_call>                      {", ""}},
    {false, "<tool_call>{}", {"", "<tool_call>{}"}},
};

TEST(Reasoning, IsSplitFromTheAnswer) {
    for (const Case& c : kCases)
        EXPECT_EQ(split(c.text, c.inside), c.expected) << json_quote(c.text);
}

TEST(Reasoning, IsSplitAlikeHoweverTheTextIsCut) {
    std::mt19937 random(3);
    for (const Case& c : kCases)
        for (std::size_t size : {1u, 2u, 3u, 7u, 0u}) {
            ReasoningSplitter splitter({}, c.inside);
            SplitText got;
            for (std::size_t at = 0; at < c.text.size();) {
                const std::size_t length = size > 0 ? size : random() % 5;
                got = got + splitter.push(std::string_view(c.text).substr(at, length));
                at += length;
            }
            EXPECT_EQ(got + splitter.flush(), c.expected) << json_quote(c.text) << " by " << size;
        }
}

TEST(Reasoning, StreamsWithoutWaitingForTheEnd) {
    ReasoningSplitter splitter({}, true);
    EXPECT_EQ(splitter.push("one"), (SplitText{"one", ""}));
    EXPECT_EQ(splitter.push(" two\n"), (SplitText{" two", ""}));
    EXPECT_EQ(splitter.push("three <"), (SplitText{"\nthree ", ""}));
    EXPECT_EQ(splitter.push("/think"), (SplitText{}));
    EXPECT_TRUE(splitter.inside());
    EXPECT_EQ(splitter.push(">\n"), (SplitText{}));
    EXPECT_FALSE(splitter.inside());
    EXPECT_EQ(splitter.push("\nfour"), (SplitText{"", "four"}));
    EXPECT_EQ(splitter.push("\n"), (SplitText{"", "\n"}));
}

// What a model's tokens give, through the detokenizer.
SplitText split_tokens(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                       bool inside) {
    ReasoningSplitter splitter(reasoning_format(tokenizer), inside);
    Detokenizer detokenizer(tokenizer);
    SplitText got;
    for (std::int32_t id : ids)
        got = got + splitter.push(id, detokenizer.push(id));
    return got + splitter.push(detokenizer.flush()) + splitter.flush();
}

TEST(Reasoning, KnowsTheTagsByTheirTokens) {
    const Tokenizer tokenizer = small_tokenizer();
    const ReasoningFormat format = reasoning_format(tokenizer);
    EXPECT_EQ(format.open_id, *tokenizer.id_of("<think>"));
    EXPECT_EQ(format.close_id, *tokenizer.id_of("</think>"));
    EXPECT_EQ(format.call_id, -1); // no token in this vocabulary: looked for in the text
    for (const Case& c : kCases)
        EXPECT_EQ(split_tokens(tokenizer, encoded(tokenizer, c.text), c.inside), c.expected)
            << json_quote(c.text);
}

TEST(Reasoning, TextThatSpellsATagThatIsATokenIsNoTag) {
    const Tokenizer tokenizer = small_tokenizer();
    const EncodeOptions spelled{.allow_special = false, .allow_added = false};
    std::vector<std::int32_t> ids = encoded(tokenizer, "say </think> aloud", spelled);
    ids.push_back(*tokenizer.id_of("</think>"));
    ids.push_back(*tokenizer.id_of("x"));
    EXPECT_EQ(split_tokens(tokenizer, ids, true), (SplitText{"say </think> aloud", "x"}));
}

TEST(Reasoning, ATagTokenMayComeWithABrokenCharacterOrWithoutItsText) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::int32_t close = *tokenizer.id_of("</think>");
    EXPECT_EQ(
        split_tokens(tokenizer, {*tokenizer.id_of("a"), *tokenizer.id_of("\xE4"), close}, true),
        (SplitText{"a\xEF\xBF\xBD", ""}));
    ReasoningSplitter splitter(reasoning_format(tokenizer), true);
    EXPECT_EQ(splitter.push(close, ""), (SplitText{}));
    EXPECT_EQ(splitter.push("b"), (SplitText{"", "b"}));
}

TEST(Reasoning, CallsMayBeLeftOut) {
    ReasoningFormat format;
    format.call.clear();
    EXPECT_EQ(split("go <tool_call>{\n</think>\n\nok", true, format),
              (SplitText{"go <tool_call>{", "ok"}));
}

} // namespace
} // namespace lr::text
