// SPDX-License-Identifier: Apache-2.0
//
// text/tool_schema.h: which JSON values a function's parameters take, and how the text that a model
// wrote for one becomes such a value. The chat template writes strings as they are and everything
// else as JSON; only the schema tells the string "5" from the number.
#pragma once

#include "core/json.h"
#include "core/status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lr::text {

// A set of JSON types.
using JsonTypes = std::uint8_t;
inline constexpr JsonTypes kStringType = 1, kNumberType = 2, kBooleanType = 4, kNullType = 8,
                           kArrayType = 16, kObjectType = 32, kAnyType = 63;

// What a JSON schema lets a value be: `type` (one or a list), enum, const, anyOf, oneOf, allOf and
// references into `root` ("#/$defs/Colour"). kAnyType when it says nothing. An integer is a number.
JsonTypes schema_types(const Json& schema, const Json& root);

// The JSON of a parameter's text.
//   of one type only   a string as it is; else the JSON value of that type that the text, stripped
//   of
//                      white space, is, to the digit
//   of several types   a JSON value of one of the types other than string, else the string
// Python's words stand for JSON's: None where null is allowed or strings are not, True and False
// where strings are not. An empty text or "null" where neither strings nor null are allowed is no
// value: nullopt, the parameter is left out (null where it is allowed and strings are not). Text
// that is no value of any type is given as a string, so that nothing is lost.
std::optional<std::string> json_of_text(std::string_view text, JsonTypes types);

// The functions of a request's `tools`.
class ToolSet {
  public:
    ToolSet() = default;
    // [{"type": "function", "function": {"name", "parameters"}}, ...], or the inner objects alone.
    static Result<ToolSet> from_json(const JsonCursor& tools);

    bool has(std::string_view function) const {
        return functions_.find(function) != functions_.end();
    }
    // kStringType for what no schema speaks of.
    JsonTypes types(std::string_view function, std::string_view parameter) const;
    // Whether the name can be a parameter: true too where no schema says which there are.
    bool may_have(std::string_view function, std::string_view parameter) const;

  private:
    struct Function {
        std::map<std::string, JsonTypes, std::less<>> parameters;
        JsonTypes others = kStringType; // of parameters that are not listed
        bool open = true;               // there may be such
    };
    static Function read_function(const Json* schema);

    std::map<std::string, Function, std::less<>> functions_;
};

} // namespace lr::text
