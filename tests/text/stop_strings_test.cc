// SPDX-License-Identifier: Apache-2.0
#include "tests/text/fixture.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>

namespace lr::text {
namespace {

StopStrings compiled(const std::vector<std::string>& strings) {
    Result<StopStrings> result = StopStrings::compile(strings);
    EXPECT_TRUE(result.has_value()) << result.error().message();
    return result ? std::move(*result) : StopStrings();
}

struct Outcome {
    std::string text;
    std::int32_t matched;
    std::int64_t pushed, released;
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome stream(const StopStrings& strings, const std::vector<std::string>& pieces) {
    StopMatcher matcher(strings);
    std::string text;
    for (const std::string& piece : pieces) {
        text += matcher.push(piece);
        if (matcher.stopped())
            break;
    }
    text += matcher.flush();
    return {text, matcher.matched(), matcher.pushed_tokens(), matcher.released_tokens()};
}

TEST(StopStrings, EndTheTextBeforeAStringThatSpansTokens_B26) {
    const StopStrings strings = compiled({"beta gamma"});
    StopMatcher matcher(strings);
    EXPECT_EQ(matcher.push("alpha"), "alpha");
    EXPECT_EQ(matcher.push(" be"), " ");
    EXPECT_EQ(matcher.push("ta gam"), "");
    EXPECT_EQ(matcher.push("ma delta"), "");
    EXPECT_TRUE(matcher.stopped());
    EXPECT_EQ(matcher.push(" more"), "");
    EXPECT_EQ(matcher.flush(), "");
    EXPECT_EQ(matcher.pushed_tokens(), 4);
    EXPECT_EQ(matcher.released_tokens(), 1);
}

TEST(StopStrings, LeakNoPrefix_B27) {
    const Outcome outcome = stream(compiled({"own fox"}), {"The", " quick", " brown", " fox", "."});
    EXPECT_EQ(outcome, (Outcome{"The quick br", 0, 4, 2}));
}

TEST(StopStrings, LeakNothingBehindAtTheFlush_B29) {
    const Outcome outcome =
        stream(compiled({"five"}), {"one, ", "two, ", "three, ", "four, ", "fi", "ve, six"});
    EXPECT_EQ(outcome, (Outcome{"one, two, three, four, ", 0, 6, 4}));
}

TEST(StopStrings, ReleaseWhatTurnsOutNotToBeOne) {
    const StopStrings strings = compiled({"abab!", "ba?"});
    StopMatcher matcher(strings);
    EXPECT_EQ(matcher.push("ab"), "");
    EXPECT_EQ(matcher.push("ab"), "");
    EXPECT_EQ(matcher.released_tokens(), 0);
    EXPECT_EQ(matcher.push("ab"), "ab"); // "abab" may still begin "abab!"
    EXPECT_EQ(matcher.released_tokens(), 1);
    EXPECT_EQ(matcher.push("a"), "ab");
    EXPECT_EQ(matcher.flush(), "aba");
    EXPECT_EQ(matcher.released_tokens(), 4);
    EXPECT_FALSE(matcher.stopped());
}

TEST(StopStrings, TheEarliestEndWinsAndThenTheLongest) {
    EXPECT_EQ(stream(compiled({"abcd", "bc"}), {"xabcd"}), (Outcome{"xa", 1, 1, 0}));
    EXPECT_EQ(stream(compiled({"c", "abc"}), {"xabc"}), (Outcome{"x", 1, 1, 0}));
    EXPECT_EQ(stream(compiled({"abc", "c"}), {"xabc"}), (Outcome{"x", 0, 1, 0}));
    EXPECT_EQ(stream(compiled({"same", "same"}), {"a same"}), (Outcome{"a ", 0, 1, 0}));
}

TEST(StopStrings, NoStringsHoldNothingBack) {
    const StopStrings none = compiled({});
    EXPECT_TRUE(none.empty());
    StopMatcher free(none);
    EXPECT_EQ(free.push("anything"), "anything");
    EXPECT_EQ(free.released_tokens(), 1);
    EXPECT_EQ(free.flush(), "");
}

TEST(StopStrings, RefuseEmptyAndBrokenStrings) {
    EXPECT_EQ(StopStrings::compile({"ok", ""}).error().message(),
              "stop[1]: expected text, got \"\"");
    EXPECT_EQ(StopStrings::compile({"a\xE2\x82"}).error().message(),
              "stop[0]: expected UTF-8, got an invalid sequence at byte 1");
    EXPECT_EQ(StopStrings::compile({""}).error().code(), Code::kInvalidArgument);
}

TEST(StopStrings, ACharacterIsNeverCut) {
    // The stop string begins with the character that the text ends with.
    const StopStrings strings = compiled({"\xE4\xBD\xA0\xE5\xA5\xBD"});
    StopMatcher matcher(strings);
    EXPECT_EQ(matcher.push("x\xE4\xBD\xA0"), "x");
    EXPECT_EQ(matcher.push("\xE5\xA4\xA9"), "\xE4\xBD\xA0\xE5\xA4\xA9");
}

// B31: with a stop string that does not occur, control tokens leave no fragment in the text.
TEST(StopStrings, PassAWholeStreamWithControlTokensThrough_B31) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::string text = "Hi<think>\n<tool_call>x</tool_call><|im_end|>";
    const StopStrings strings = compiled({"<|never|>", "ep|>"});
    StopMatcher matcher(strings);
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (std::int32_t id : encoded(tokenizer, text, {.allow_special = true}))
        streamed += matcher.push(detokenizer.push(id));
    streamed += matcher.push(detokenizer.flush()) + matcher.flush();
    EXPECT_EQ(streamed, "Hi<think>\n<tool_call>x</tool_call>");
}

TEST(StopStrings, AControlTokenStopsByItsId_B32) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::vector<std::string> strings = {"<|im_end|>", "<think>", "plain"};
    EXPECT_EQ(stop_token_ids(tokenizer, strings),
              (std::vector<std::int32_t>{*tokenizer.id_of("<|im_end|>")}));
    // Spelled in ordinary tokens it is text like any other, and leaves no "<" behind.
    EXPECT_EQ(stream(compiled(strings), {"bye", "<", "|im", "_end", "|>", "x"}).text, "bye");
}

// What streaming must give: the first end of any string, the longest there.
Outcome by_search(const std::vector<std::string>& strings, const std::string& text) {
    std::size_t best_end = std::string::npos, best_begin = 0;
    std::int32_t which = -1;
    for (std::size_t i = 0; i < strings.size(); ++i) {
        const std::size_t begin = text.find(strings[i]);
        if (begin == std::string::npos)
            continue;
        const std::size_t end = begin + strings[i].size();
        if (end < best_end || (end == best_end && begin < best_begin)) {
            best_end = end;
            best_begin = begin;
            which = static_cast<std::int32_t>(i);
        }
    }
    return {which < 0 ? text : text.substr(0, best_begin), which, 0, 0};
}

TEST(StopStrings, AgreeWithAPlainSearchHoweverTheTextIsCut) {
    std::mt19937 random(5);
    const auto word = [&](unsigned most) {
        std::string text(1 + random() % most, 'a');
        for (char& c : text)
            c = "ab\n"[random() % 3];
        return text;
    };
    int stops = 0;
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::string> strings(1 + random() % 4);
        for (std::string& string : strings)
            string = word(6);
        std::vector<std::string> pieces(1 + random() % 12);
        for (std::string& piece : pieces)
            piece = random() % 5 == 0 ? "" : word(4);
        const Outcome got = stream(compiled(strings), pieces);
        const Outcome expected =
            by_search(strings, std::accumulate(pieces.begin(), pieces.end(), std::string()));
        ASSERT_EQ(got.text, expected.text) << round;
        ASSERT_EQ(got.matched, expected.matched) << round;
        std::size_t released = 0, bytes = 0;
        for (std::int64_t i = 0; i < got.pushed; ++i) {
            bytes += pieces[static_cast<std::size_t>(i)].size();
            released += bytes <= got.text.size();
        }
        ASSERT_EQ(got.released, static_cast<std::int64_t>(released)) << round;
        stops += got.matched >= 0;
    }
    EXPECT_GT(stops, 5000);
    EXPECT_LT(stops, 19000);
}

TEST(StopStrings, TakeLinearTimeOnLongRuns) {
    const auto seconds = [](std::size_t length) {
        const StopStrings strings = compiled({std::string(length / 2, 'a') + "b"});
        StopMatcher matcher(strings);
        const auto start = std::chrono::steady_clock::now();
        std::size_t out = 0;
        for (std::size_t i = 0; i < length; ++i)
            out += matcher.push("a").size();
        EXPECT_EQ(out, length - length / 2);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    seconds(20000);
    const double small = seconds(20000), large = seconds(320000);
    EXPECT_LT(large, 64 * small + 0.1); // 16 times the text; a square law would give 256
}

} // namespace
} // namespace lr::text
