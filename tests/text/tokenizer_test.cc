// SPDX-License-Identifier: Apache-2.0
#include "tests/text/fixture.h"
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace lr::text {
namespace {

constexpr EncodeOptions kAll{.allow_special = true, .allow_added = true};
constexpr EncodeOptions kNone{.allow_special = false, .allow_added = false};

// The fixture with the first `from` replaced.
std::string with(const std::string& from, const std::string& to) {
    std::string json = read_test_file("tokenizer.json");
    const std::size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return json.replace(at, from.size(), to);
}

std::string error_with(const std::string& from, const std::string& to) {
    const Result<Tokenizer> result = Tokenizer::parse(with(from, to), "t");
    return result ? "no error" : result.error().message();
}

TEST(Tokenizer, EncodesAsHuggingFaceDoes) {
    const Tokenizer tokenizer = small_tokenizer();
    const Json json = vectors();
    int count = 0;
    for (const Json& row : json.find("encode")->as_array()) {
        const std::string& text = row.find("text")->as_string();
        EXPECT_EQ(encoded(tokenizer, text, kAll), ids_of(*row.find("ids"))) << json_quote(text);
        EXPECT_EQ(encoded(tokenizer, text), ids_of(*row.find("plain"))) << json_quote(text);
        ++count;
    }
    EXPECT_GE(count, 70);
}

TEST(Tokenizer, EncodesOneLongTextLikeItsParts) {
    const Tokenizer tokenizer = small_tokenizer();
    const Json json = vectors();
    std::string text;
    std::vector<std::int32_t> ids;
    const std::int32_t separator = *tokenizer.id_of("<|im_end|>");
    for (int round = 0; round < 3; ++round)
        for (const Json& row : json.find("encode")->as_array()) {
            if (row.find("text")->as_string().find("<") != std::string::npos)
                continue; // tokens that take white space from behind the separator
            text += row.find("text")->as_string() + "<|im_end|>";
            for (std::int32_t id : ids_of(*row.find("ids")))
                ids.push_back(id);
            ids.push_back(separator);
        }
    EXPECT_EQ(encoded(tokenizer, text, kAll), ids);
}

TEST(Tokenizer, IgnoresMergesWhenTheFileSaysSo) {
    const Tokenizer tokenizer =
        parse_tokenizer(with("\"ignore_merges\":false", "\"ignore_merges\":true"));
    const Json json = vectors();
    for (const Json& row : json.find("ignore_merges")->as_array())
        EXPECT_EQ(encoded(tokenizer, row.find("text")->as_string(), kAll), ids_of(*row.find("ids")))
            << row.find("text")->as_string();
    EXPECT_EQ(tokenizer.encode(" zebra")->size(), 1u);
    EXPECT_GT(small_tokenizer().encode(" zebra")->size(), 1u);
}

TEST(Tokenizer, DecodesAsHuggingFaceDoes) {
    const Tokenizer tokenizer = small_tokenizer();
    const Json json = vectors();
    for (const Json& row : json.find("decode")->as_array()) {
        const std::vector<std::int32_t> ids = ids_of(*row.find("ids"));
        EXPECT_EQ(tokenizer.decode(ids, true), row.find("skip")->as_string());
        EXPECT_EQ(tokenizer.decode(ids, false), row.find("all")->as_string());
    }
}

TEST(Tokenizer, DecodesWhatItEncoded) {
    const Tokenizer tokenizer = small_tokenizer();
    for (const std::string text : {"The heron's feather \xF0\x9F\x98\x80 \xE4\xBD\xA0\xE5\xA5\xBD "
                                   "<|im_end|> caf\xC3\xA9\r\n",
                                   "<think>\n\n</think>"}) {
        EXPECT_EQ(tokenizer.decode(encoded(tokenizer, text, kAll), false), text);
        EXPECT_EQ(tokenizer.decode(encoded(tokenizer, text, kNone), true), text);
    }
}

TEST(Tokenizer, TextNeverBecomesAControlTokenUnlessAllowed) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::string text = "a<|im_end|>b<|endoftext|><think><both>";
    for (std::int32_t id : encoded(tokenizer, text))
        EXPECT_FALSE(tokenizer.is_special(id)) << id;
    const std::int32_t think = *tokenizer.id_of("<think>");
    const auto count = [&](EncodeOptions options, std::int32_t id) {
        const std::vector<std::int32_t> ids = encoded(tokenizer, text, options);
        return std::count(ids.begin(), ids.end(), id);
    };
    EXPECT_EQ(count({}, think), 1);
    EXPECT_EQ(count(kNone, think), 0);
    EXPECT_EQ(count(kAll, *tokenizer.id_of("<|im_end|>")), 1);
    EXPECT_EQ(count({.allow_special = true, .allow_added = false}, think), 0);
}

TEST(Tokenizer, RefusesInvalidUtf8AndNamesTheByte) {
    const Tokenizer tokenizer = small_tokenizer();
    const Result<std::vector<std::int32_t>> result = tokenizer.encode("caf\xC3\xA9 \xE2\x82 x");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(result.error().message(),
              "tokenizer: expected text in UTF-8, got an invalid sequence at byte 6");
    EXPECT_FALSE(tokenizer.encode("\xED\xA0\x80").has_value());
    EXPECT_FALSE(tokenizer.encode("x\xF0\x9F\x98").has_value());
}

TEST(Tokenizer, KnowsItsTokens) {
    const Tokenizer tokenizer = small_tokenizer();
    const std::int32_t end = *tokenizer.id_of("<|im_end|>");
    EXPECT_TRUE(tokenizer.is_special(end));
    EXPECT_EQ(tokenizer.token_bytes(end), "<|im_end|>");
    EXPECT_FALSE(tokenizer.is_special(*tokenizer.id_of("<think>")));
    EXPECT_EQ(tokenizer.token_bytes(*tokenizer.id_of(" the")), " the");
    EXPECT_EQ(tokenizer.token_bytes(*tokenizer.id_of("\x80")), "\x80");
    EXPECT_FALSE(tokenizer.id_of("no such token").has_value());
    EXPECT_EQ(tokenizer.added_tokens().size(), 18u);
    EXPECT_EQ(tokenizer.vocab_size(), tokenizer.added_tokens().back().id + 1);
    for (std::int32_t id : {-1, tokenizer.vocab_size(), 248319}) {
        EXPECT_EQ(tokenizer.token_bytes(id), "");
        EXPECT_FALSE(tokenizer.is_special(id));
        EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{id, end}, false), "<|im_end|>");
    }
}

TEST(Tokenizer, ReadsMergesInBothForms) {
    const Json json = *parse_json(read_test_file("tokenizer.json"), "t");
    const JsonArray& merges = json.find("model")->find("merges")->as_array();
    ASSERT_TRUE(merges[0].is_array());
    JsonArray joined;
    for (const Json& merge : merges)
        joined.push_back(
            Json(merge.as_array()[0].as_string() + " " + merge.as_array()[1].as_string()));
    const std::string pairs = to_json_string(Json(merges));
    const Tokenizer tokenizer = parse_tokenizer(with(pairs, to_json_string(Json(joined))));
    const std::string text = "The heron was there again in the morning.";
    EXPECT_EQ(encoded(tokenizer, text), encoded(small_tokenizer(), text));
}

TEST(Tokenizer, NormalizesOnlyWhenTheFileSaysSo) {
    const std::string decomposed = "e\xCC\x81";
    EXPECT_EQ(encoded(small_tokenizer(), decomposed), encoded(small_tokenizer(), "\xC3\xA9"));
    const std::string nfc = "\"normalizer\":{\"type\":\"NFC\"}";
    const Tokenizer none = parse_tokenizer(with(nfc, "\"normalizer\":null"));
    EXPECT_EQ(none.decode(encoded(none, decomposed), true), decomposed);
    const Tokenizer sequence = parse_tokenizer(
        with(nfc, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}"));
    EXPECT_EQ(encoded(sequence, decomposed), encoded(small_tokenizer(), decomposed));
}

TEST(Tokenizer, RefusesWhatItDoesNotSupport) {
    EXPECT_EQ(error_with("\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"NFKC\"}"),
              "t: normalizer.type: expected \"NFC\", got \"NFKC\"");
    EXPECT_EQ(error_with("\"type\":\"BPE\"", "\"type\":\"Unigram\""),
              "t: model.type: expected \"BPE\", got \"Unigram\"");
    EXPECT_EQ(error_with("\"byte_fallback\":false", "\"byte_fallback\":true"),
              "t: model.byte_fallback: expected it unused (null), got true");
    EXPECT_EQ(error_with("\"dropout\":null", "\"dropout\":0.1"),
              "t: model.dropout: expected it unused (null), got 0.1");
    EXPECT_EQ(error_with("\"truncation\":null", "\"truncation\":{\"max_length\":5}"),
              "t: truncation: expected it unused (null), got an object of 1 member");
    EXPECT_EQ(error_with("\"behavior\":\"Isolated\"", "\"behavior\":\"Removed\""),
              "t: pre_tokenizer.pretokenizers[0].behavior: expected \"Isolated\", got \"Removed\"");
    EXPECT_EQ(error_with("\"use_regex\":false", "\"use_regex\":true"),
              "t: pre_tokenizer.pretokenizers[1]: expected use_regex false, got true");
    EXPECT_NE(error_with("\\\\p{N}|", "\\\\p{N}{1,3}|").find("expected the Qwen3.5 split pattern"),
              std::string::npos);
    EXPECT_NE(
        error_with("\"decoder\":{\"type\":\"ByteLevel\"", "\"decoder\":{\"type\":\"WordPiece\"")
            .find("t: decoder.type: expected \"ByteLevel\""),
        std::string::npos);
    EXPECT_NE(error_with("\"post_processor\":{\"type\":\"ByteLevel\"",
                         "\"post_processor\":{\"type\":\"TemplateProcessing\"")
                  .find("t: post_processor.type: expected \"ByteLevel\""),
              std::string::npos);
}

TEST(Tokenizer, RefusesContradictoryFiles) {
    EXPECT_EQ(error_with("\"!\":0", "\"!\":1"),
              "t: model.vocab.\": expected an id of its own, got 1, the id of \"!\" too");
    EXPECT_EQ(error_with("\"!\":0", "\"!\":-1"),
              "t: model.vocab.!: expected an integer from 0 to 4194303, got -1");
    EXPECT_NE(error_with("\"!\":0", "\"!!!!!!!\":0").find("none for byte 0x21"), std::string::npos);
    EXPECT_EQ(
        error_with("\"merges\":[[", "\"merges\":[[\"never\",\"seen\"],["),
        "t: model.merges[0]: expected two ordinary tokens that make a third, got \"never\" and "
        "\"seen\"");
    EXPECT_EQ(
        error_with("\"merges\":[[", "\"merges\":[\"nospace\",["),
        "t: model.merges[0]: expected \"left right\" or [\"left\", \"right\"], got \"nospace\"");
    EXPECT_NE(error_with("\"content\":\"<think>\"", "\"content\":\"</think>\"")
                  .find("expected each content once"),
              std::string::npos);
    EXPECT_NE(
        error_with("\"content\":\"<think>\"", "\"content\":\"!\"").find("as in the vocabulary"),
        std::string::npos);
    EXPECT_NE(error_with("\"content\":\"<think>\"", "\"content\":\"\"").find("expected content"),
              std::string::npos);
    // Its entries are not kept as JSON, so repeated keys are found by other means.
    EXPECT_EQ(error_with("\"!\":0", "\"!\":0,\"!\":3000"),
              "t: model.vocab: expected each token once, got \"!\" again");
    EXPECT_EQ(error_with("\"!\":0", "\"!\":0,\"a b\":3000,\"a b\":3001"),
              "t: model.vocab.a b: expected each token once, got it again");
    EXPECT_EQ(error_with("\"!\":0", "\"!\":0,\"\":3000"),
              "t: model.vocab.: expected no empty token, got \"\"");
    EXPECT_EQ(error_with("\"merges\":[[", "\"merges\":{},\"unused\":[["),
              "t: model.merges: expected an array, got an object of 0 members");
    EXPECT_EQ(error_with("\"vocab\":{", "\"vocab\":[7],\"unused\":{"),
              "t: model.vocab: expected an object, got an array of 0");
    EXPECT_NE(error_with("{\"version\"", "{\"version\":1,\"version\"").find("twice"),
              std::string::npos);
}

TEST(Tokenizer, NamesAMissingFile) {
    const Result<Tokenizer> result = Tokenizer::load("no/such/folder");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), Code::kNotFound);
    EXPECT_EQ(result.error().message(),
              "no/such/folder: cannot be opened for reading: No such file or directory");
    EXPECT_TRUE(Tokenizer::load(std::string(LR_SOURCE_DIR) + "/tests/text/data").has_value());
}

TEST(Tokenizer, EncodesFromManyThreads) {
    const Tokenizer tokenizer = small_tokenizer();
    const Json json = vectors();
    std::string text;
    for (const Json& row : json.find("encode")->as_array())
        text += row.find("text")->as_string();
    const std::vector<std::int32_t> expected = encoded(small_tokenizer(), text);
    std::vector<std::vector<std::int32_t>> got(4);
    std::vector<std::thread> threads;
    for (std::vector<std::int32_t>& ids : got)
        threads.emplace_back([&] { ids = encoded(tokenizer, text); });
    for (std::thread& thread : threads)
        thread.join();
    for (const std::vector<std::int32_t>& ids : got)
        EXPECT_EQ(ids, expected);
}

} // namespace
} // namespace lr::text
