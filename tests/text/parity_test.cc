// SPDX-License-Identifier: Apache-2.0
//
// The ids of 20,000 drawn strings against those of Hugging Face tokenizers, which the fixture holds
// as hashes (tools/goldens/tokenizer_parity.py says how strings are drawn and ids hashed).
#include "numerics/counter_rng.h"
#include "tests/text/fixture.h"
#include "text/tokenizer.h"

#include <gtest/gtest.h>

namespace lr::text {
namespace {

std::string drawn_string(const JsonArray& pieces, std::uint64_t number) {
    const numerics::CounterRng rng("text", 1);
    const auto bits = [&](std::uint64_t i) { return rng.bits(64 * number + i); };
    std::string text;
    const std::uint64_t count = 1 + bits(0) % 12;
    for (std::uint64_t j = 0; j < count; ++j) {
        const std::uint64_t repeat = bits(2 * j + 2);
        const std::uint64_t times = (repeat >> 32) % 16 == 0 ? 1 + repeat % 40 : 1;
        for (std::uint64_t n = 0; n < times; ++n)
            text += pieces[bits(2 * j + 1) % pieces.size()].as_string();
    }
    return text;
}

std::uint64_t hashed(std::uint64_t hash, const std::vector<std::int32_t>& ids) {
    const auto add = [&](std::uint32_t value) {
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ (value >> shift & 0xFF)) * 0x100000001B3u;
    };
    for (std::int32_t id : ids)
        add(static_cast<std::uint32_t>(id));
    add(0xFFFFFFFFu);
    return hash;
}

void expect_hashes(const Tokenizer& tokenizer, const Json& fixture, const JsonArray& hashes,
                   EncodeOptions options) {
    const JsonArray& pieces = fixture.find("pieces")->as_array();
    const auto group = static_cast<std::uint64_t>(fixture.find("group")->as_int());
    ASSERT_GE(group * hashes.size(), 20000u);
    for (std::uint64_t i = 0; i < hashes.size(); ++i) {
        std::uint64_t hash = 0xCBF29CE484222325u;
        for (std::uint64_t s = i * group; s < (i + 1) * group; ++s)
            hash = hashed(hash, encoded(tokenizer, drawn_string(pieces, s), options));
        ASSERT_EQ(fmt::format("{:016x}", hash), hashes[i].as_string())
            << "in strings " << i * group << " to " << (i + 1) * group - 1;
    }
}

TEST(Tokenizer, AgreesWithHuggingFaceOnDrawnStrings) {
    const Result<Json> fixture = parse_json(read_test_file("parity.json"), "parity.json");
    ASSERT_TRUE(fixture.has_value()) << fixture.error().message();
    const JsonArray& tokenizers = fixture->find("tokenizers")->as_array();
    ASSERT_EQ(tokenizers.size(), 2u); // the shipped one, and the one with every kind of added token
    for (const Json& entry : tokenizers) {
        const Result<Tokenizer> tokenizer = Tokenizer::load(entry.find("file")->as_string());
        ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message();
        for (const bool special : {false, true}) {
            SCOPED_TRACE(entry.find("file")->as_string() +
                         (special ? ", control tokens read" : ""));
            expect_hashes(*tokenizer, *fixture,
                          entry.find(special ? "special" : "plain")->as_array(),
                          {.allow_special = special});
        }
    }
}

} // namespace
} // namespace lr::text
