// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lr {
namespace {

Json parsed(std::string_view text) {
    Result<Json> json = parse_json(text, "test.json");
    EXPECT_TRUE(json.has_value()) << (json ? "" : json.error().message());
    return json ? std::move(*json) : Json();
}

std::string error_of(std::string_view text, JsonLimits limits = {}) {
    Result<Json> json = parse_json(text, "t", limits);
    return json ? "no error: " + to_json_string(*json) : json.error().message();
}

TEST(Json, ParsesEveryKind) {
    const Json json = parsed(R"( {"n":null,"t":true,"f":false,"i":-12,"u":18446744073709551615,)"
                             R"("d":2.5,"s":"a\u00e9\n","a":[1,[]],"o":{}} )");
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json.as_object().size(), 9u);
    EXPECT_TRUE(json.find("n")->is_null());
    EXPECT_TRUE(json.find("t")->as_bool());
    EXPECT_FALSE(json.find("f")->as_bool());
    EXPECT_EQ(json.find("i")->as_int(), -12);
    EXPECT_EQ(json.find("u")->as_uint(), 18446744073709551615u);
    EXPECT_FALSE(json.find("u")->is_int());
    EXPECT_EQ(json.find("d")->as_double(), 2.5);
    EXPECT_EQ(json.find("s")->as_string(), "a\xC3\xA9\n");
    EXPECT_EQ(json.find("a")->as_array().size(), 2u);
    EXPECT_EQ(json.find("o")->as_object().size(), 0u);
    EXPECT_EQ(json.find("absent"), nullptr);
    EXPECT_EQ(json.find("a")->find("absent"), nullptr);
}

TEST(Json, ParsesScalarsAtTheRoot) {
    EXPECT_EQ(parsed("7").as_int(), 7);
    EXPECT_EQ(parsed(" \"x\" ").as_string(), "x");
    EXPECT_TRUE(parsed("null").is_null());
}

TEST(Json, KeepsMemberOrderAndFindsInLargeObjects) {
    std::string text = "{";
    for (int i = 0; i < 5000; ++i)
        text += fmt::format("{}\"common prefix {}\":{}", i ? "," : "", (i * 7919) % 5000, i);
    const Json json = parsed(text + ",\"\":-1,\"common\":-2}");
    ASSERT_EQ(json.as_object().size(), 5002u);
    for (int i = 0; i < 5000; ++i) {
        const std::string key = fmt::format("common prefix {}", (i * 7919) % 5000);
        EXPECT_EQ(json.as_object().members()[static_cast<std::size_t>(i)].key, key);
        ASSERT_NE(json.find(key), nullptr);
        EXPECT_EQ(json.find(key)->as_int(), i);
    }
    EXPECT_EQ(json.find("")->as_int(), -1);
    EXPECT_EQ(json.find("common")->as_int(), -2);
    EXPECT_EQ(json.find("common prefix 5000"), nullptr);
}

TEST(Json, RejectsDuplicateKeysInSmallAndLargeObjects) {
    EXPECT_EQ(error_of("{\n \"a\":1, \"b\":2,\"\\u0061\":3}"),
              "t:2:25: expected every key once in an object, got \"a\" twice");
    std::string large = "{\"x5\":0";
    for (int i = 0; i < 100; ++i)
        large += fmt::format(",\"x{}\":0", i);
    EXPECT_NE(error_of(large + "}").find("got \"x5\" twice"), std::string::npos);
    EXPECT_NE(error_of("[{\"a\":{\"k\":1,\"k\":1}}]").find("got \"k\" twice"), std::string::npos);
    EXPECT_EQ(parsed("[{\"a\":1},{\"a\":2}]").as_array().size(), 2u);
}

TEST(Json, RejectsWhatIsNotJson) {
    for (const char* text :
         {"",        " ",     "{",           "[1,]",     "{\"a\":1,}", "{a:1}",  "{'a':1}",
          "[1 2]",   "nul",   "NaN",         "Infinity", "-Infinity",  "[1]//c", "/*c*/1",
          "01",      "1.",    ".5",          "+1",       "-",          "1e",     "\"\t\"",
          "\"\\x\"", "\"abc", "\"\\u12g4\"", "1 2",      "{}{}",       "[]]",    "\xEF\xBB\xBF{}",
          "tru",     "TRUE"})
        EXPECT_EQ(error_of(text).find("t:1:"), 0u) << text << " -> " << error_of(text);
}

TEST(Json, NamesPlaceExpectedAndGot) {
    EXPECT_EQ(error_of("{\n  \"a\": tru!\n}"), "t:2:8: expected valid JSON in UTF-8, got 't'");
    EXPECT_EQ(error_of("{}\n x"), "t:2:2: expected nothing after the document, got 'x'");
    EXPECT_EQ(error_of("[1, 2"),
              "t:1:6: expected the rest of the document, got the end of the text");
    EXPECT_EQ(error_of("[\"\x01\"]"), "t:1:3: expected valid JSON in UTF-8, got byte 0x01");
    const Result<Json> request = parse_json("{", "request", {.error_code = Code::kInvalidArgument});
    EXPECT_EQ(request.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(parse_json("{", "file").error().code(), Code::kInvalidFile);
}

TEST(Json, RejectsInvalidUtf8) {
    EXPECT_EQ(parsed("\"\xF0\x9F\x98\x80\"").as_string(), "\xF0\x9F\x98\x80");
    for (const char* bytes :
         {"\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
          "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
          "\xE2\x82", "a\xE2(\xA1"}) {
        const std::string text = std::string("[\"") + bytes + "\"]";
        EXPECT_EQ(error_of(text).find("t:1:"), 0u) << error_of(text);
        const std::string key = std::string("{\"") + bytes + "\":1}";
        EXPECT_EQ(error_of(key).find("t:1:"), 0u) << error_of(key);
    }
}

TEST(Json, PairsSurrogateEscapesAndRejectsLoneOnes) {
    EXPECT_EQ(parsed("\"\\ud83d\\ude00\"").as_string(), "\xF0\x9F\x98\x80");
    EXPECT_EQ(parsed("\"\\u0000\"").as_string(), std::string(1, '\0'));
    for (const char* text : {R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("\ud83dx")"})
        EXPECT_EQ(error_of(text).find("t:1:"), 0u) << error_of(text);
}

TEST(Json, LimitsDepth) {
    const auto nested = [](int depth) {
        return std::string(static_cast<std::size_t>(depth), '[') +
               std::string(static_cast<std::size_t>(depth), ']');
    };
    EXPECT_TRUE(parse_json(nested(64), "t").has_value());
    EXPECT_EQ(error_of(nested(65)).find("t:1:65: expected at most 64 nested arrays and objects"),
              0u)
        << error_of(nested(65));
    EXPECT_NE(error_of(nested(1000000)).find("at most 64"), std::string::npos);
    EXPECT_TRUE(parse_json("[[1]]", "t", {.max_depth = 2}).has_value());
    EXPECT_FALSE(parse_json("[{\"a\":[]}]", "t", {.max_depth = 2}).has_value());
}

TEST(Json, ReadsNumbersExactly) {
    EXPECT_EQ(parsed("9223372036854775807").as_int(), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(parsed("-9223372036854775808").as_int(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(parsed("9223372036854775808").as_uint(), 9223372036854775808u);
    EXPECT_EQ(parsed("18446744073709551616").as_double(), 18446744073709551616.0);
    EXPECT_EQ(parsed("1000000000000000019884624838656").as_double(), 1e30);
    EXPECT_EQ(parsed("-1e3").as_double(), -1000.0);
    EXPECT_EQ(parsed("[1e0]").as_array()[0].kind(), Json::Kind::kDouble);
    for (const char* text :
         {"0.1", "1e-06", "3.4028234663852886e38", "2.2250738585072014e-308", "5e-324",
          "1.7976931348623157e308", "123456789012345678.9", "0.30000000000000004", "7.2e-317",
          "9007199254740993.0", "1.00000000000000011102230246251565404236316680908203126"})
        EXPECT_EQ(parsed(text).as_double(), std::strtod(text, nullptr)) << text;
    EXPECT_EQ(parsed("1e-999").as_double(), 0.0);
    EXPECT_EQ(error_of("[1e309]"), "t:1:7: expected a number that fits a double, got 1e309");
    EXPECT_NE(error_of("-1e99999999999999").find("t:1:"), std::string::npos);
}

TEST(Json, HandsOutLargePartsEntryByEntry) {
    std::string taken;
    const auto take = [&](std::string_view key, const Json& value) {
        taken += fmt::format("{}={};", key, to_json_string(value));
    };
    const JsonPart parts[] = {{{"a", "b"}, take}, {{"c"}, take}};
    const auto parsed = [&](std::string_view text) {
        taken.clear();
        const Result<Json> json = parse_json(text, "t", parts);
        return json ? to_json_string(*json) : json.error().message();
    };
    EXPECT_EQ(
        parsed(R"({"c":[1,[2],{"b":3}],"a":{"x":{"b":[4]},"b":{"k":5,"l":{"m":[6]}},"c":[7]}})"),
        R"({"c":[],"a":{"x":{"b":[4]},"b":{},"c":[7]}})");
    EXPECT_EQ(taken, R"(=1;=[2];={"b":3};k=5;l={"m":[6]};)");
    EXPECT_EQ(parsed(R"([{"c":[1]}])"), R"([{"c":[1]}])");
    EXPECT_EQ(taken, "");
    EXPECT_EQ(parsed(R"({"c":3,"a":{"b":"text"}})"), R"({"c":3,"a":{"b":"text"}})");
    EXPECT_EQ(parsed(R"({"a":{"b":{},"b":{}}})"),
              "t:1:20: expected every key once in an object, got \"b\" twice");
    EXPECT_EQ(parsed(R"({"c":[1,})"), "t:1:9: expected valid JSON in UTF-8, got '}'");
}

TEST(Json, WritesWhatItReads) {
    const std::string text =
        R"({"a":[1,-2,18446744073709551615,1.0,0.1,1e+300],"b":"q\"\\\n\u0001é",)"
        R"("c":{},"d":[],"e":null,"f":true})";
    const Json json = parsed(text);
    EXPECT_EQ(to_json_string(json), text);
    EXPECT_EQ(to_json_string(parsed(to_json_string(json, 2))), text);
    EXPECT_EQ(to_json_string(parsed(R"({"a":[1,{}],"b":[]})"), 2),
              "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    const Json built = Json::object({{"x", Json(JsonArray{Json(1), Json("s"), Json()})}});
    EXPECT_EQ(to_json_string(built), R"({"x":[1,"s",null]})");
    EXPECT_EQ(json_quote("tab\t\x1F/"), "\"tab\\t\\u001f/\"");
}

TEST(Json, ExcerptIsShortAndCutsBetweenCharacters) {
    EXPECT_EQ(json_excerpt(parsed("[1,2]")), "an array of 2");
    EXPECT_EQ(json_excerpt(parsed("{\"a\":1}")), "an object of 1 member");
    EXPECT_EQ(json_excerpt(parsed("\"abc\"")), "\"abc\"");
    std::string wide(59, 'a');
    EXPECT_EQ(json_excerpt(Json(wide + "\xC3\xA9tail")), "\"" + wide + "\"...");
}

TEST(JsonCursor, NamesThePathOfAWrongValue) {
    const Json json = parsed(R"({"text_config":{"hidden_size":"abc","eps":1e-6,"n":0,"big":1e30},)"
                             R"("types":["full",3],"nothing":null})");
    const JsonCursor root("config.json", json);
    const JsonCursor text = *root.required_object("text_config");
    EXPECT_EQ(text.required_int("hidden_size", 1).error().message(),
              "config.json: text_config.hidden_size: expected an integer >= 1, got \"abc\"");
    EXPECT_EQ(text.required_int("n", 1, 9).error().message(),
              "config.json: text_config.n: expected an integer from 1 to 9, got 0");
    EXPECT_EQ(text.required_int("big").error().message(),
              "config.json: text_config.big: expected an integer, got 1e+30");
    EXPECT_EQ(text.required_int("heads").error().message(),
              "config.json: text_config: expected the key \"heads\", got none");
    EXPECT_EQ(root.required_strings("types").error().message(),
              "config.json: types[1]: expected a string, got 3");
    EXPECT_EQ(root.required_object("types").error().message(),
              "config.json: types: expected an object, got an array of 2");
    EXPECT_EQ(root.required_string("nothing").error().message(),
              "config.json: nothing: expected a string, got null");
    EXPECT_EQ(root.required_int("types", 1).error().code(), Code::kInvalidFile);
}

TEST(JsonCursor, ReadsTypedMembers) {
    const Json json = parsed(R"({"i":3,"d":2,"b":true,"s":"x","l":[4,5],"o":{"k":1},"z":null})");
    const JsonCursor root("t", json);
    EXPECT_EQ(*root.required_int("i", 3, 3), 3);
    EXPECT_EQ(*root.required_double("d"), 2.0);
    EXPECT_EQ(root.required_double("d", 3.0).error().message(),
              "t: d: expected a number >= 3, got 2");
    EXPECT_TRUE(*root.required_bool("b"));
    EXPECT_EQ(*root.required_string("s"), "x");
    EXPECT_EQ(*root.required_ints("l"), (std::vector<std::int64_t>{4, 5}));
    EXPECT_EQ(root.required_array("l")->read_array()->at(1).path(), "l[1]");
    EXPECT_EQ(*root.required_object("o")->required_int("k"), 1);
}

TEST(JsonCursor, GivesTheFallbackForAbsentAndNull) {
    const Json json = parsed(R"({"z":null,"i":"3"})");
    const JsonCursor root("t", json);
    for (const char* key : {"z", "absent"}) {
        EXPECT_FALSE(root.has(key));
        EXPECT_EQ(*root.optional_int(key, 9), 9);
        EXPECT_EQ(*root.optional_double(key, 0.5), 0.5);
        EXPECT_TRUE(*root.optional_bool(key, true));
        EXPECT_EQ(*root.optional_string(key, "f"), "f");
        EXPECT_FALSE(root.optional_object(key)->has_value());
        EXPECT_FALSE(root.optional_array(key)->has_value());
    }
    EXPECT_EQ(root.optional_int("i", 9).error().message(), "t: i: expected an integer, got \"3\"");
    EXPECT_EQ(root.optional_array("i").error().message(), "t: i: expected an array, got \"3\"");
}

TEST(JsonCursor, RefusesUnknownKeysAndNonObjects) {
    const Json json = parsed(R"({"a":1,"typo":2})");
    const JsonCursor root("t", json);
    EXPECT_TRUE(root.expect_keys({"a", "typo", "b"}).ok());
    EXPECT_EQ(root.expect_keys({"a", "b"}).message(),
              "t: expected only the keys a, b, got \"typo\"");
    EXPECT_EQ(root.member("a").required_int("x").error().message(),
              "t: a: expected an object, got 1");
}

} // namespace
} // namespace lr
