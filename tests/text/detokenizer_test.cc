// SPDX-License-Identifier: Apache-2.0
#include "tests/text/fixture.h"
#include "text/detokenizer.h"
#include "text/unicode.h"

#include <gtest/gtest.h>

#include <random>

namespace lr::text {
namespace {

std::vector<std::int32_t> ids_of_bytes(const Tokenizer& tokenizer, std::string_view bytes) {
    std::vector<std::int32_t> ids;
    for (char c : bytes)
        ids.push_back(*tokenizer.id_of(std::string(1, c)));
    return ids;
}

TEST(Detokenizer, HoldsBytesUntilACharacterIsWhole) {
    const Tokenizer tokenizer = small_tokenizer();
    Detokenizer detokenizer(tokenizer);
    const std::vector<std::int32_t> ids = ids_of_bytes(tokenizer, "\xF0\x9F\x98\x80x");
    EXPECT_EQ(detokenizer.push(ids[0]), "");
    EXPECT_EQ(detokenizer.push(ids[1]), "");
    EXPECT_EQ(detokenizer.push(ids[2]), "");
    EXPECT_EQ(detokenizer.held_bytes(), 3u);
    EXPECT_EQ(detokenizer.push(ids[3]), "\xF0\x9F\x98\x80");
    EXPECT_EQ(detokenizer.push(ids[4]), "x");
    EXPECT_EQ(detokenizer.flush(), "");
}

TEST(Detokenizer, ReplacesABrokenCharacterOnceAndKeepsTheOrder_B25) {
    const Tokenizer tokenizer = small_tokenizer();
    Detokenizer detokenizer(tokenizer);
    const std::vector<std::int32_t> half = ids_of_bytes(tokenizer, "\xE2\x82");
    EXPECT_EQ(detokenizer.push(half[0]), "");
    EXPECT_EQ(detokenizer.push(half[1]), "");
    EXPECT_EQ(detokenizer.push(*tokenizer.id_of(" a")), "\xEF\xBF\xBD a");
    EXPECT_EQ(detokenizer.push(half[0]), "");
    EXPECT_EQ(detokenizer.push(half[1]), "");
    EXPECT_EQ(detokenizer.flush(), "\xEF\xBF\xBD");
    EXPECT_EQ(detokenizer.held_bytes(), 0u);
    EXPECT_EQ(detokenizer.flush(), "");
}

TEST(Detokenizer, SkipsControlTokensAlsoInsideACharacter) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::int32_t end = *tokenizer.id_of("<|im_end|>");
    const std::int32_t think = *tokenizer.id_of("<think>");
    const std::vector<std::int32_t> euro = ids_of_bytes(tokenizer, "\xE2\x82\xAC");
    Detokenizer skipping(tokenizer);
    Detokenizer showing(tokenizer, false);
    std::string skipped;
    std::string shown;
    for (std::int32_t id : {euro[0], euro[1], end, euro[2], think}) {
        skipped += skipping.push(id);
        shown += showing.push(id);
    }
    EXPECT_EQ(skipped, "\xE2\x82\xAC<think>");
    EXPECT_EQ(shown, "\xEF\xBF\xBD<|im_end|>\xEF\xBF\xBD<think>");
}

TEST(Detokenizer, EmitsNoReplacementForValidTextTokenByToken_B23) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::string text =
        "\xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D"
        "\xF0\x9F\x91\xA7 "
        "\xC4\x8F\xC3\xA1"
        "belsk\xC3\xA9 \xEC\x82\xBC\xEA\xB2\xB9\xEC\x82\xB4";
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (std::int32_t id : encoded(tokenizer, text)) {
        const std::string piece = detokenizer.push(id);
        EXPECT_FALSE(first_invalid_utf8(piece).has_value());
        streamed += piece;
    }
    EXPECT_EQ(streamed + detokenizer.flush(), text);
}

TEST(Detokenizer, PiecesTogetherAreTheFullDecodeForAnyIds) {
    const Tokenizer tokenizer = small_tokenizer();
    std::mt19937 random(20240607);
    const std::string leads = "\xC2\xE0\xE2\xED\xF0\xF4\x80\x9F\xA0\xBF\x8F\x90\xFF\xC0 a";
    for (int round = 0; round < 4000; ++round) {
        std::vector<std::int32_t> ids;
        const unsigned count = random() % 20;
        for (unsigned i = 0; i < count; ++i) {
            if (round % 2 == 0)
                ids.push_back(static_cast<std::int32_t>(random() % 850) - 2);
            else
                ids.push_back(*tokenizer.id_of(std::string(1, leads[random() % leads.size()])));
        }
        const bool skip = round % 4 < 2;
        Detokenizer detokenizer(tokenizer, skip);
        std::string streamed;
        for (std::int32_t id : ids) {
            const std::string piece = detokenizer.push(id);
            ASSERT_FALSE(first_invalid_utf8(piece).has_value());
            ASSERT_LE(detokenizer.held_bytes(), 3u);
            streamed += piece;
        }
        ASSERT_EQ(streamed + detokenizer.flush(), tokenizer.decode(ids, skip)) << round;
    }
}

} // namespace
} // namespace lr::text
