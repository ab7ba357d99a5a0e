// SPDX-License-Identifier: Apache-2.0
#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lr::text {
namespace {

std::vector<std::string> pieces(std::string_view text) {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = piece_end(SplitPattern::kQwen35, text, begin);
        EXPECT_GT(end, begin);
        out.emplace_back(text.substr(begin, end - begin));
        begin = end;
    }
    return out;
}

using Pieces = std::vector<std::string>;

TEST(PreTokenizer, KeepsASpaceWithItsWord) {
    EXPECT_EQ(pieces("Hello world"), (Pieces{"Hello", " world"}));
    EXPECT_EQ(pieces("a  b"), (Pieces{"a", " ", " b"}));
    EXPECT_EQ(pieces("\tx\t y"), (Pieces{"\tx", "\t", " y"}));
    EXPECT_EQ(pieces("(x) -y"), (Pieces{"(x", ")", " -", "y"}));
}

TEST(PreTokenizer, SplitsContractionsInAnyCase) {
    EXPECT_EQ(pieces("can't I'LL we'Ve"), (Pieces{"can", "'t", " I", "'LL", " we", "'Ve"}));
    EXPECT_EQ(pieces("'sup 'lx 'r"), (Pieces{"'s", "up", " '", "lx", " '", "r"}));
    EXPECT_EQ(pieces("x'\xC5\xBFy"), (Pieces{"x", "'\xC5\xBF", "y"})); // U+017F, long s
    EXPECT_EQ(pieces("'"), (Pieces{"'"}));
}

TEST(PreTokenizer, SplitsDigitsOneByOne) {
    EXPECT_EQ(pieces("a12 3"), (Pieces{"a", "1", "2", " ", "3"}));
    EXPECT_EQ(pieces("\xEF\xBC\x91\xC2\xBD"), (Pieces{"\xEF\xBC\x91", "\xC2\xBD"}));
}

TEST(PreTokenizer, JoinsCombiningMarksToWords) {
    EXPECT_EQ(pieces("a\xCC\x81"
                     "b \xCC\x81!"),
              (Pieces{"a\xCC\x81"
                      "b",
                      " \xCC\x81", "!"}));
    EXPECT_EQ(pieces("1\xCC\x81"
                     "2"),
              (Pieces{"1", "\xCC\x81", "2"}));
    EXPECT_EQ(pieces("!!\xCC\x81"), (Pieces{"!!", "\xCC\x81"}));
}

TEST(PreTokenizer, KeepsLineEndsWithPunctuation) {
    EXPECT_EQ(pieces("x;\r\n\n y"), (Pieces{"x", ";\r\n\n", " y"}));
    EXPECT_EQ(pieces(" ...\n"), (Pieces{" ...\n"}));
    EXPECT_EQ(pieces("\t...\n"), (Pieces{"\t", "...\n"}));
}

TEST(PreTokenizer, EndsWhiteSpaceBeforeTheLastCharacter) {
    EXPECT_EQ(pieces("a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
    EXPECT_EQ(pieces("a \t\xC2\xA0"
                     "1"),
              (Pieces{"a", " \t", "\xC2\xA0", "1"}));
    EXPECT_EQ(pieces("a   "), (Pieces{"a", "   "}));
    EXPECT_EQ(pieces("a \n  "), (Pieces{"a", " \n", "  "}));
    EXPECT_EQ(pieces(" 1"), (Pieces{" ", "1"}));
    EXPECT_EQ(pieces("\nx"), (Pieces{"\n", "x"}));
}

TEST(PreTokenizer, KnowsOnlyItsPattern) {
    EXPECT_EQ(*recognise_pattern(kQwen35Pattern), SplitPattern::kQwen35);
    const Result<SplitPattern> other = recognise_pattern("\\s+");
    ASSERT_FALSE(other.has_value());
    EXPECT_EQ(other.error().code(), Code::kUnsupported);
    EXPECT_NE(other.error().message().find("got \"\\\\s+\""), std::string::npos);
}

} // namespace
} // namespace lr::text
