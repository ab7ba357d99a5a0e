// SPDX-License-Identifier: Apache-2.0
//
// core/json.h: JSON as an immutable value, a strict parser, a reader whose errors name the place,
// and a writer. Used for config.json, tokenizer.json, shard indexes, safetensors headers, requests.
//
// Strict means RFC 8259 and no more: no comments, trailing commas, NaN or Infinity; UTF-8 must be
// valid (no overlong forms, no surrogates, \u escapes of lone surrogates included); a key may
// occur once in an object; nothing but white space may follow the document.
//
// Integers keep 64 bits: kInt for what fits std::int64_t, kUint for what only fits std::uint64_t.
// A larger integer literal is a kDouble (model_max_length files hold 10^30), correctly rounded; a
// number too large for a double is an error.
#pragma once

#include "core/function_ref.h"
#include "core/status.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lr {

class Json;
struct JsonMember;
using JsonArray = std::vector<Json>;

// Members in the order of the text; find() is O(log size).
class JsonObject {
  public:
    JsonObject();
    JsonObject(const JsonObject&);
    JsonObject(JsonObject&&) noexcept;
    JsonObject& operator=(const JsonObject&);
    JsonObject& operator=(JsonObject&&) noexcept;
    ~JsonObject();
    // An error (code kInvalidArgument) names the first key that occurs twice.
    static Result<JsonObject> from_members(std::vector<JsonMember> members);

    std::size_t size() const;
    const std::vector<JsonMember>& members() const { return members_; }
    const Json* find(std::string_view key) const; // nullptr when absent

  private:
    std::vector<JsonMember> members_;
    std::vector<std::uint32_t> order_; // member indices by key; empty for small objects
};

class Json {
  public:
    enum class Kind { kNull, kBool, kInt, kUint, kDouble, kString, kArray, kObject };

    Json() = default; // null
    explicit Json(bool value) : value_(value) {}
    explicit Json(int value) : value_(std::int64_t{value}) {}
    explicit Json(std::int64_t value) : value_(value) {}
    explicit Json(std::uint64_t value); // kInt when it fits
    explicit Json(double value);        // finite (checked)
    explicit Json(std::string value) : value_(std::move(value)) {}
    explicit Json(std::string_view value) : value_(std::string(value)) {}
    explicit Json(const char* value) : value_(std::string(value)) {}
    explicit Json(JsonArray value) : value_(std::move(value)) {}
    explicit Json(JsonObject value) : value_(std::move(value)) {}
    static Json object(std::vector<JsonMember> members); // keys distinct (checked)

    Kind kind() const { return static_cast<Kind>(value_.index()); }
    bool is_null() const { return kind() == Kind::kNull; }
    bool is_bool() const { return kind() == Kind::kBool; }
    bool is_int() const { return kind() == Kind::kInt; }
    bool is_integer() const { return kind() == Kind::kInt || kind() == Kind::kUint; }
    bool is_number() const { return is_integer() || kind() == Kind::kDouble; }
    bool is_string() const { return kind() == Kind::kString; }
    bool is_array() const { return kind() == Kind::kArray; }
    bool is_object() const { return kind() == Kind::kObject; }

    // The kind must fit (checked): ask first, or read through a JsonCursor.
    bool as_bool() const;
    std::int64_t as_int() const;   // kInt
    std::uint64_t as_uint() const; // kUint, or kInt >= 0
    double as_double() const;      // any number, rounded to nearest
    const std::string& as_string() const;
    const JsonArray& as_array() const;
    const JsonObject& as_object() const;

    // The member of that name; nullptr when absent or when this is not an object.
    const Json* find(std::string_view key) const;

  private:
    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, JsonArray,
                 JsonObject>
        value_;
};

struct JsonMember {
    std::string key;
    Json value;
};

struct JsonLimits {
    int max_depth = 64;                   // nested arrays and objects
    Code error_code = Code::kInvalidFile; // kInvalidArgument for a request body
};

// `where` names the document in errors: "where:line:column: expected ..., got ...", columns in
// bytes from 1.
Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

// A large object or array, named by the keys that lead to it from the root. Its entries are handed
// out one by one as they are read, and in the document it is empty. Whoever takes the members of an
// object must see to it that no key comes twice.
struct JsonPart {
    std::vector<std::string_view> path;
    FunctionRef<void(std::string_view key, const Json& value)> take; // key "": of an array
};
Result<Json> parse_json(std::string_view text, std::string_view where,
                        std::span<const JsonPart> parts, JsonLimits limits = {});

// indent < 0: one line, no spaces. Else one member or element a line, that many spaces a level.
// Doubles are written so that they read back equal and stay doubles.
std::string to_json_string(const Json& value, int indent = -1);
std::string json_quote(std::string_view utf8); // "\"...\"": escapes controls, quote, backslash
// What json_quote puts between the quotes; parts of a text give the parts of its escaped form.
void append_json_escaped(std::string& out, std::string_view utf8);
// A short form for messages: "abc", 3, null, "an array of 5", "an object of 2 members".
std::string json_excerpt(const Json& value);

// A value, the document it came from and the path to it. Getters return the value, or an error like
//   config.json: text_config.hidden_size: expected an integer >= 1, got "abc"
// optional_*: an absent key and a null give the fallback. The Json must outlive the cursor.
class JsonCursor {
  public:
    JsonCursor(std::string where, const Json& value, Code error_code = Code::kInvalidFile)
        : where_(std::move(where)), value_(&value), error_code_(error_code) {}
    // For a value that was taken out of its document (JsonPart).
    JsonCursor(std::string where, std::string path, const Json& value,
               Code error_code = Code::kInvalidFile)
        : where_(std::move(where)), path_(std::move(path)), value_(&value),
          error_code_(error_code) {}

    const Json& value() const { return *value_; }
    const std::string& where() const { return where_; }
    const std::string& path() const { return path_; } // "" at the root, "a.b[3]" below

    // "where: path: expected <expected>, got <the value here>", and the same with own words.
    Failure fail_expected(std::string_view expected) const;
    Failure fail_here(Code code, std::string_view message) const;

    // This value.
    static constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();
    static constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
    static constexpr double kMaxDouble = std::numeric_limits<double>::max();
    Result<bool> read_bool() const;
    Result<std::int64_t> read_int(std::int64_t min = kMinInt, std::int64_t max = kMaxInt) const;
    Result<double> read_double(double min = -kMaxDouble, double max = kMaxDouble) const;
    Result<std::string> read_string() const;
    Result<std::vector<JsonCursor>> read_array() const; // a cursor for each element
    Status expect_array() const;
    Status expect_object() const;
    // An object whose keys are all in `known`.
    Status expect_keys(std::initializer_list<std::string_view> known) const;

    // Element i (in range, checked) and member `key` (present, checked) of this value.
    JsonCursor element(std::size_t i) const;
    JsonCursor member(std::string_view key) const;

    // Members of this object.
    bool has(std::string_view key) const; // present and not null
    Result<JsonCursor> required(std::string_view key) const;
    Result<std::optional<JsonCursor>> optional(std::string_view key) const;
    Result<bool> required_bool(std::string_view key) const;
    Result<bool> optional_bool(std::string_view key, bool fallback) const;
    Result<std::int64_t> required_int(std::string_view key, std::int64_t min = kMinInt,
                                      std::int64_t max = kMaxInt) const;
    Result<std::int64_t> optional_int(std::string_view key, std::int64_t fallback,
                                      std::int64_t min = kMinInt, std::int64_t max = kMaxInt) const;
    Result<double> required_double(std::string_view key, double min = -kMaxDouble,
                                   double max = kMaxDouble) const;
    Result<double> optional_double(std::string_view key, double fallback, double min = -kMaxDouble,
                                   double max = kMaxDouble) const;
    Result<std::string> required_string(std::string_view key) const;
    Result<std::string> optional_string(std::string_view key, std::string_view fallback) const;
    Result<JsonCursor> required_object(std::string_view key) const;
    Result<std::optional<JsonCursor>> optional_object(std::string_view key) const;
    Result<JsonCursor> required_array(std::string_view key) const;
    Result<std::optional<JsonCursor>> optional_array(std::string_view key) const;
    Result<std::vector<std::string>> required_strings(std::string_view key) const;
    Result<std::vector<std::int64_t>> required_ints(std::string_view key,
                                                    std::int64_t min = kMinInt,
                                                    std::int64_t max = kMaxInt) const;

  private:
    std::string where_;
    std::string path_;
    const Json* value_;
    Code error_code_;
};

} // namespace lr
