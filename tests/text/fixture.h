// SPDX-License-Identifier: Apache-2.0
//
// tests/text/fixture.h: the small tokenizer of tests/text/data and its vectors, made by
// tools/goldens/tokenizer_vectors.py.
#pragma once

#include "core/json.h"
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace lr::text {

inline std::string read_test_file(const std::string& name) {
    std::ifstream in(std::string(LR_SOURCE_DIR) + "/tests/text/data/" + name, std::ios::binary);
    EXPECT_TRUE(in.good()) << name;
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline Tokenizer parse_tokenizer(const std::string& json) {
    Result<Tokenizer> tokenizer = Tokenizer::parse(json, "tokenizer.json");
    if (!tokenizer)
        ADD_FAILURE() << tokenizer.error().message();
    return std::move(tokenizer.value());
}

inline Tokenizer small_tokenizer() {
    return parse_tokenizer(read_test_file("tokenizer.json"));
}

inline std::vector<std::int32_t> encoded(const Tokenizer& tokenizer, std::string_view text,
                                         EncodeOptions options = {}) {
    Result<std::vector<std::int32_t>> ids = tokenizer.encode(text, options);
    EXPECT_TRUE(ids.has_value());
    return ids ? std::move(*ids) : std::vector<std::int32_t>();
}

inline Json vectors() {
    Result<Json> json = parse_json(read_test_file("vectors.json"), "vectors.json");
    EXPECT_TRUE(json.has_value());
    return json ? std::move(*json) : Json();
}

inline std::vector<std::int32_t> ids_of(const Json& array) {
    std::vector<std::int32_t> ids;
    for (const Json& id : array.as_array())
        ids.push_back(static_cast<std::int32_t>(id.as_int()));
    return ids;
}

} // namespace lr::text
