// SPDX-License-Identifier: Apache-2.0
#include "tests/text/fixture.h"
#include "text/answer.h"

namespace lr::text {
namespace {

struct Shown {
    std::string reasoning, content;
    ToolAnswer calls;
    bool stopped = false;
};

// What a stream shows of a text's tokens in all.
Shown show(const Tokenizer& tokenizer, std::string_view text, const AnswerFormat& format) {
    AnswerStream stream(tokenizer, format);
    Shown shown;
    const auto add = [&](const AnswerDelta& delta) {
        shown.reasoning += delta.reasoning;
        shown.content += delta.content;
        shown.calls.add(delta.calls);
    };
    for (std::int32_t id : encoded(tokenizer, text, {.allow_special = true}))
        if (!stream.stopped())
            add(stream.push(id));
    add(stream.finish());
    shown.stopped = stream.stopped();
    return shown;
}

TEST(AnswerStream, SplitsReasoningStopAndCallsInThisOrder) {
    const Tokenizer tokenizer = small_tokenizer();
    const StopStrings stop = *StopStrings::compile({"STOP"});
    const ToolSet tools;
    const Shown shown =
        show(tokenizer,
             "Hm, STOP?\n</think>\n\nYes.\n<tool_call>\n<function=look>\n"
             "<parameter=at>\nsky\n</parameter>\n</function>\n</tool_call>\nSTOP no",
             {.in_reasoning = true, .stop = &stop, .tools = &tools});
    EXPECT_EQ(shown.reasoning, "Hm, STOP?");
    EXPECT_EQ(shown.content, "Yes.");
    ASSERT_EQ(shown.calls.calls.size(), 1u);
    EXPECT_EQ(shown.calls.calls[0].name, "look");
    EXPECT_EQ(shown.calls.calls[0].arguments, R"({"at":"sky"})");
    EXPECT_TRUE(shown.calls.calls[0].complete);
    EXPECT_TRUE(shown.stopped);
}

TEST(AnswerStream, WithoutSplittingEverythingIsContent) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::string text = "<think>a</think> b <tool_call> c \xe4\xb8\xad";
    EXPECT_EQ(show(tokenizer, text, {.split_reasoning = false}).content, text);
}

TEST(AnswerStream, ATextThatStopsNowhereComesOutWhole_B27) {
    const Tokenizer tokenizer = small_tokenizer();
    const StopStrings stop = *StopStrings::compile({"own fox", "zzz"});
    EXPECT_EQ(show(tokenizer, "The quick brown dog ow", {.stop = &stop}).content,
              "The quick brown dog ow");
    EXPECT_EQ(show(tokenizer, "The quick brown fox", {.stop = &stop}).content, "The quick br");
}

} // namespace
} // namespace lr::text
