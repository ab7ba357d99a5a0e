// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <chrono>
#include <random>

namespace lr::text {
namespace {

using Kind = Utf8Step::Kind;

std::string utf8(std::u32string_view code_points) {
    std::string out;
    for (char32_t c : code_points)
        append_utf8(out, c);
    return out;
}

// The library's own NFC, with its own decoder and sort.
std::string library_nfc(const std::string& text) {
    utf8proc_uint8_t* out = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &out,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    EXPECT_GE(size, 0);
    std::string nfc(reinterpret_cast<char*>(out), static_cast<std::size_t>(size));
    std::free(out);
    return nfc;
}

TEST(Unicode, EncodesAndDecodesEveryCodePoint) {
    for (char32_t c = 0; c < 0x110000; ++c) {
        if (c >= 0xD800 && c < 0xE000)
            continue;
        std::string bytes;
        append_utf8(bytes, c);
        const Utf8Step step = step_utf8(bytes);
        ASSERT_EQ(step.kind, Kind::kCharacter) << std::hex << static_cast<unsigned>(c);
        ASSERT_EQ(step.code_point, c);
        ASSERT_EQ(static_cast<std::size_t>(step.length), bytes.size());
        for (std::size_t n = 1; n < bytes.size(); ++n) {
            const Utf8Step part = step_utf8(std::string_view(bytes).substr(0, n));
            ASSERT_EQ(part.kind, Kind::kTruncated);
            ASSERT_EQ(static_cast<std::size_t>(part.length), n);
        }
    }
}

TEST(Unicode, RejectsOverlongFormsSurrogatesAndLargeValues) {
    const std::pair<std::string, int> cases[] = {{"\x80", 1},
                                                 {"\xBF"
                                                  "a",
                                                  1},
                                                 {"\xC0\x80", 1},
                                                 {"\xC1\xBF", 1},
                                                 {"\xE0\x80\x80", 1},
                                                 {"\xE0\x9F\xBF", 1},
                                                 {"\xED\xA0\x80", 1},
                                                 {"\xED\xBF\xBF", 1},
                                                 {"\xF0\x80\x80\x80", 1},
                                                 {"\xF0\x8F\xBF", 1},
                                                 {"\xF4\x90\x80", 1},
                                                 {"\xF5\x80", 1},
                                                 {"\xFF", 1},
                                                 {"\xC3(", 1},
                                                 {"\xE2\x82(", 2},
                                                 {"\xF0\x9F\x98(", 3},
                                                 {"\xE2\x82\xE2", 2},
                                                 {"\xF0\x9F\xF0", 2}};
    for (const auto& [bytes, length] : cases) {
        EXPECT_EQ(step_utf8(bytes).kind, Kind::kInvalid) << testing::PrintToString(bytes);
        EXPECT_EQ(step_utf8(bytes).length, length) << testing::PrintToString(bytes);
    }
}

TEST(Unicode, ReplacesInvalidSequencesLikePython) {
    // b"...".decode(errors="replace") of CPython 3.11.
    const std::string r = "\xEF\xBF\xBD";
    EXPECT_EQ(replace_invalid_utf8("a\xE2\x82 b"), "a" + r + " b");
    EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), r);
    EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);
    EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF"), r + r + r + r + r);
    EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\xF0\x9F\x98\x80\xE2\x82"), r + "\xF0\x9F\x98\x80" + r);
    EXPECT_EQ(first_invalid_utf8("ab\xC3\xA9\xE2\x82"), 4u);
    EXPECT_EQ(first_invalid_utf8("ab\xC3\xA9"), std::nullopt);
}

TEST(Unicode, ClassesAgreeWithTheLibraryWhereItKnowsTheCharacter) {
    for (utf8proc_int32_t c = 0; c < 0x110000; ++c) {
        const char group = utf8proc_category_string(c)[0];
        if (utf8proc_category(c) == UTF8PROC_CATEGORY_CN || group == 'C')
            continue;
        CharClass expected = CharClass::kOther;
        if (group == 'L')
            expected = CharClass::kLetter;
        else if (group == 'M')
            expected = CharClass::kMark;
        else if (group == 'N')
            expected = CharClass::kNumber;
        ASSERT_EQ(char_class(static_cast<char32_t>(c)), expected) << std::hex << c;
    }
}

TEST(Unicode, KnowsCharactersOfUnicode16) {
    EXPECT_EQ(char_class(0x1C89), CharClass::kLetter);  // Cyrillic capital letter Tje
    EXPECT_EQ(char_class(0x10D40), CharClass::kNumber); // Garay digit zero
    EXPECT_EQ(char_class(0x0897), CharClass::kMark);    // Arabic pepet
    EXPECT_EQ(char_class(0x088F), CharClass::kOther);   // not assigned before Unicode 17
    EXPECT_EQ(char_class(0x10FFFF), CharClass::kOther);
    int letters = 0;
    for (char32_t c = 0; c < 0x110000; ++c)
        letters += char_class(c) == CharClass::kLetter;
    EXPECT_EQ(letters, 141028);
}

TEST(Unicode, WhiteSpaceIsTheUnicodeProperty) {
    int count = 0;
    for (char32_t c = 0; c < 0x110000; ++c)
        count += is_white_space(c);
    EXPECT_EQ(count, 25);
    for (char32_t c : {0x09, 0x0B, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2003, 0x2029, 0x202F, 0x3000})
        EXPECT_TRUE(is_white_space(c)) << static_cast<unsigned>(c);
    for (char32_t c : {0x08, 0x1C, 0x1F, 0x180E, 0x200B, 0x2060, 0xFEFF})
        EXPECT_FALSE(is_white_space(c)) << static_cast<unsigned>(c);
}

TEST(Unicode, WordCharactersAreLettersMarksDigitsConnectorsJoiners) {
    for (char32_t c : {U'a', U'_', U'7', U'\u00E9', U'\u0301', U'\u2167', U'\u24B6', U'\u200D'})
        EXPECT_TRUE(is_word(c)) << static_cast<unsigned>(c);
    for (char32_t c : {U' ', U'-', U'\u00BD', U'\u00B2', U'\u2019', U'\U0001F600'})
        EXPECT_FALSE(is_word(c)) << static_cast<unsigned>(c);
}

TEST(Unicode, NormalizesToComposedForm) {
    EXPECT_EQ(normalize_nfc("e\xCC\x81"), "\xC3\xA9");
    EXPECT_EQ(normalize_nfc(utf8(U"\u212A\u212B\u2126")), utf8(U"K\u00C5\u03A9"));
    EXPECT_EQ(normalize_nfc(utf8(U"s\u0307\u0323")), utf8(U"\u1E69"));
    EXPECT_EQ(normalize_nfc(utf8(U"\u1112\u1161\u11AB")), utf8(U"\uD55C"));
    EXPECT_EQ(normalize_nfc(utf8(U"\uAC00\u11A8")), utf8(U"\uAC01"));
    EXPECT_EQ(normalize_nfc(utf8(U"\u0958")), utf8(U"\u0915\u093C")); // composition excluded
    EXPECT_EQ(normalize_nfc(utf8(U"a\u0327\u0301\u0328")), utf8(U"\u00E1\u0327\u0328"));
    EXPECT_EQ(normalize_nfc(std::string("\0\xEF\xBF\xBF", 4)), std::string("\0\xEF\xBF\xBF", 4));
    EXPECT_EQ(normalize_nfc(""), "");
}

TEST(Unicode, LeavesMarksYoungerThanUnicode9WhereTheyAre) {
    const std::string telugu = utf8(U"\u0C3C\u05BC\u0C3C"); // U+0C3C: class 7 since 14.0
    EXPECT_EQ(normalize_nfc(telugu), telugu);
    EXPECT_NE(library_nfc(telugu), telugu);
    EXPECT_EQ(normalize_nfc(utf8(U"e\u1ABF\u0301e\u0301")), utf8(U"e\u1ABF\u0301\u00E9"));
    EXPECT_EQ(normalize_nfc(utf8(U"\U00011935\U00011930")), utf8(U"\U00011935\U00011930"));
}

TEST(Unicode, NormalizesLikeTheLibraryOnRandomText) {
    const std::u32string alphabet = U"ae\u0301\u0300\u0323\u0307\u0327\u0328\u0345\u05B0\u05C1"
                                    U"\u0F71\u0F72\u0F74\u1100\u1161\u11A8\uAC00"
                                    U"\u0915\u093C\u0BC6\u0BBE\u30AB\u3099\u00E9\u1E9B\u2ADC\uF900"
                                    U"\U00011099\U000110BA \n\u200D\u0344";
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
        std::u32string text;
        for (unsigned n = random() % 16; n > 0; --n)
            text += alphabet[random() % alphabet.size()];
        ASSERT_EQ(normalize_nfc(utf8(text)), library_nfc(utf8(text))) << round;
    }
}

TEST(Unicode, TextThatIsSurelyNfcIsNfc) {
    EXPECT_TRUE(is_surely_nfc("plain ASCII"));
    EXPECT_TRUE(is_surely_nfc(utf8(U"caf\u00E9 \u4F60\u597D \u0439 \uD55C \u2019 \U0001F600")));
    EXPECT_FALSE(is_surely_nfc("e\xCC\x81"));
    EXPECT_FALSE(is_surely_nfc(utf8(U"\u11A8")));
    EXPECT_FALSE(is_surely_nfc(utf8(U"\u3099")));
    // Each such character alone, and behind characters that many others compose with.
    for (char32_t c = 0; c < 0x110000; ++c) {
        if ((c >= 0xD800 && c < 0xE000) || !is_surely_nfc(utf8({&c, 1})))
            continue;
        const std::string text = utf8({&c, 1}) + utf8(U"\uAC00") + utf8({&c, 1}) + utf8(U"\u0915") +
                                 utf8({&c, 1}) + "a" + utf8({&c, 1});
        ASSERT_EQ(library_nfc(text), text) << std::hex << static_cast<unsigned>(c);
    }
}

TEST(Unicode, SortsAHostileRunOfMarksFast) {
    std::u32string text = U"a";
    for (int i = 0; i < 200000; ++i)
        text += i % 2 == 0 ? U'\u0301' : U'\u0323';
    const auto begin = std::chrono::steady_clock::now();
    const std::string nfc = normalize_nfc(utf8(text));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    EXPECT_EQ(nfc.substr(0, 5), utf8(U"\u1EA1\u0323")); // a + dot below first, then the dots left
}

} // namespace
} // namespace lr::text
