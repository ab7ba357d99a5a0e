// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"
#include "text/byte_level.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace lr::text {
namespace {

struct Model {
    struct Token {
        std::string bytes;
        bool searchable;
    };
    std::vector<Token> tokens;
    std::vector<MergeRule> merges;

    BytePairEncoder encoder(bool ignore_merges = false) const {
        std::vector<VocabularyToken> by_id;
        for (const Token& token : tokens)
            by_id.push_back({token.bytes, token.searchable});
        MergeTable table(merges.size());
        for (const MergeRule& rule : merges)
            EXPECT_TRUE(table.add(rule));
        return BytePairEncoder(Vocabulary(by_id), std::move(table), ignore_merges);
    }
};

Model all_bytes() {
    Model model;
    for (int byte = 0; byte < 256; ++byte)
        model.tokens.push_back({std::string(1, static_cast<char>(byte)), true});
    return model;
}

// Joins tokens at random; equal bytes reached twice are one token with two rules.
Model random_model(std::mt19937& random, int rules) {
    Model model = all_bytes();
    std::vector<std::int32_t> usable{'a', 'b', 'c'};
    for (int i = 0; i < rules; ++i) {
        const std::int32_t left = usable[random() % usable.size()];
        const std::int32_t right = usable[random() % usable.size()];
        bool known = false;
        for (const MergeRule& rule : model.merges)
            known |= rule.left == left && rule.right == right;
        if (known)
            continue;
        const std::string bytes = model.tokens[static_cast<std::size_t>(left)].bytes +
                                  model.tokens[static_cast<std::size_t>(right)].bytes;
        std::int32_t result = -1;
        for (std::size_t id = 0; id < model.tokens.size(); ++id)
            if (model.tokens[id].bytes == bytes)
                result = static_cast<std::int32_t>(id);
        if (result < 0) {
            result = static_cast<std::int32_t>(model.tokens.size());
            model.tokens.push_back({bytes, true});
            usable.push_back(result);
        }
        model.merges.push_back({left, right, result});
    }
    return model;
}

// The definition: the lowest rank, leftmost, again and again.
std::vector<std::int32_t> merge_slowly(const Model& model, std::string_view word) {
    std::vector<std::int32_t> ids;
    for (char c : word)
        ids.push_back(static_cast<unsigned char>(c));
    for (;;) {
        std::size_t best = model.merges.size();
        std::size_t at = 0;
        for (std::size_t i = 0; i + 1 < ids.size(); ++i)
            for (std::size_t rank = 0; rank < best; ++rank)
                if (model.merges[rank].left == ids[i] && model.merges[rank].right == ids[i + 1]) {
                    best = rank;
                    at = i;
                }
        if (best == model.merges.size())
            return ids;
        ids[at] = model.merges[best].result;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
}

std::vector<std::int32_t> encode(const BytePairEncoder& encoder, std::string_view word) {
    BytePairEncoder::Scratch scratch;
    std::vector<std::int32_t> ids;
    encoder.encode(word, hash_bytes(word), scratch, ids);
    return ids;
}

TEST(BytePairEncoder, MergesByRankThenFromTheLeft) {
    Model model = all_bytes();
    model.tokens.insert(model.tokens.end(), {{"bc", true}, {"ab", true}, {"aa", true}});
    model.merges = {{'b', 'c', 256}, {'a', 'b', 257}, {'a', 'a', 258}};
    const BytePairEncoder encoder = model.encoder();
    EXPECT_EQ(encode(encoder, "abc"), (std::vector<std::int32_t>{'a', 256}));
    EXPECT_EQ(encode(encoder, "abd"), (std::vector<std::int32_t>{257, 'd'}));
    EXPECT_EQ(encode(encoder, "aaa"), (std::vector<std::int32_t>{258, 'a'}));
    EXPECT_EQ(encode(encoder, "\xFF"), (std::vector<std::int32_t>{255}));
}

TEST(BytePairEncoder, AgreesWithTheDefinitionOnRandomRules) {
    std::mt19937 random(11);
    BytePairEncoder::Scratch scratch;
    for (int round = 0; round < 60; ++round) {
        const Model model = random_model(random, 5 + round);
        const BytePairEncoder encoder = model.encoder();
        for (int i = 0; i < 60; ++i) {
            std::string word;
            for (unsigned n = 1 + random() % 30; n > 0; --n)
                word += static_cast<char>('a' + random() % 3);
            const std::vector<std::int32_t> expected = merge_slowly(model, word);
            for (int again = 0; again < 2; ++again) { // the second may use what the first learnt
                std::vector<std::int32_t> ids{-7};
                encoder.encode(word, hash_bytes(word), scratch, ids);
                ASSERT_EQ(ids.front(), -7);
                ids.erase(ids.begin());
                ASSERT_EQ(ids, expected) << word;
            }
        }
    }
}

TEST(BytePairEncoder, TakesAWholeTokenOnlyIfMergesLeadToItOrAreIgnored) {
    Model model = all_bytes();
    model.tokens.push_back({"xyz", true});
    model.tokens.push_back({"hidden", false});
    EXPECT_EQ(encode(model.encoder(), "xyz"), (std::vector<std::int32_t>{'x', 'y', 'z'}));
    EXPECT_EQ(encode(model.encoder(true), "xyz"), (std::vector<std::int32_t>{256}));
    EXPECT_EQ(encode(model.encoder(true), "hidden").size(), 6u);
}

TEST(BytePairEncoder, EncodesAMegabyteWordInTime) {
    std::mt19937 random(5);
    const Model model = random_model(random, 60);
    const BytePairEncoder encoder = model.encoder();
    std::string word;
    for (int i = 0; i < 1000000; ++i)
        word += i % 1000 < 500 ? 'a' : static_cast<char>('a' + random() % 3);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::int32_t> ids = encode(encoder, word);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    std::string bytes;
    for (std::int32_t id : ids)
        bytes += encoder.vocabulary().bytes(id);
    EXPECT_EQ(bytes, word);
}

TEST(MergeTable, FindsRulesByTheirPairsAndTakesNoPairTwice) {
    MergeTable table(3);
    EXPECT_EQ(table.find(1, 2), nullptr);
    EXPECT_TRUE(table.add({1, 2, 7}));
    EXPECT_TRUE(table.add({2, 1, 8}));
    EXPECT_FALSE(table.add({1, 2, 9}));
    EXPECT_EQ(table.find(1, 2)->result, 7);
    EXPECT_EQ(table.find(2, 1)->rank, 1u);
    EXPECT_EQ(MergeTable().find(0, 0), nullptr);
}

TEST(Vocabulary, FindsSearchableTokensOnly) {
    const Vocabulary vocabulary(
        {{"a", true}, {"", false}, {"<|x|>", false}, {"longer than eight bytes", true}});
    EXPECT_EQ(vocabulary.size(), 4);
    EXPECT_EQ(vocabulary.find("a"), 0);
    EXPECT_EQ(vocabulary.find("longer than eight bytes"), 3);
    EXPECT_EQ(vocabulary.find("longer than eight byteS"), -1);
    EXPECT_EQ(vocabulary.find("<|x|>"), -1);
    EXPECT_EQ(vocabulary.find(""), -1);
    EXPECT_EQ(vocabulary.bytes(2), "<|x|>");
    EXPECT_EQ(vocabulary.bytes(1), "");
    EXPECT_EQ(vocabulary.repeated(), -1);
    EXPECT_EQ(Vocabulary({{"a", true}, {"b", true}, {"a", false}, {"a", true}}).repeated(), 3);
    EXPECT_EQ(Vocabulary().find("a"), -1);
    EXPECT_EQ(Vocabulary().size(), 0);
}

TEST(ByteLevel, WritesEveryByteAsOnePrintableCharacter) {
    std::string all;
    for (int byte = 0; byte < 256; ++byte)
        all += static_cast<char>(byte);
    std::string bytes = ">";
    EXPECT_TRUE(append_bytes_of_token(bytes, token_of_bytes(all)));
    EXPECT_EQ(bytes, ">" + all);
    EXPECT_EQ(token_of_bytes(" a\n\xE9\xAD\x7F"), "\xC4\xA0"
                                                  "a\xC4\x8A\xC3\xA9\xC5\x83\xC4\xA1");
    bytes = ">";
    EXPECT_TRUE(append_bytes_of_token(bytes, ""));
    EXPECT_FALSE(append_bytes_of_token(bytes, "a b"));
    EXPECT_FALSE(append_bytes_of_token(bytes, "x\xC5\x84")); // U+0144, one behind the alphabet
    EXPECT_EQ(bytes, ">");
}

} // namespace
} // namespace lr::text
