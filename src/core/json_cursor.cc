// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"
#include "core/json.h"

#include <algorithm>

namespace lr {

namespace {

// "an integer", "an integer >= 1", "an integer from 0 to 9", with the words of the type.
template <typename T>
std::string expected_range(std::string_view what, T min, T max, T lowest, T highest) {
    if (min > lowest && max < highest)
        return fmt::format("{} from {} to {}", what, min, max);
    if (min > lowest)
        return fmt::format("{} >= {}", what, min);
    if (max < highest)
        return fmt::format("{} <= {}", what, max);
    return std::string(what);
}

} // namespace

Failure JsonCursor::fail_here(Code code, std::string_view message) const {
    if (path_.empty())
        return fail(code, "{}: {}", where_, message);
    return fail(code, "{}: {}: {}", where_, path_, message);
}

Failure JsonCursor::fail_expected(std::string_view expected) const {
    return fail_here(error_code_,
                     fmt::format("expected {}, got {}", expected, json_excerpt(*value_)));
}

Result<bool> JsonCursor::read_bool() const {
    if (!value_->is_bool())
        return fail_expected("true or false");
    return value_->as_bool();
}

Result<std::int64_t> JsonCursor::read_int(std::int64_t min, std::int64_t max) const {
    if (!value_->is_int() || value_->as_int() < min || value_->as_int() > max)
        return fail_expected(expected_range("an integer", min, max, kMinInt, kMaxInt));
    return value_->as_int();
}

Result<double> JsonCursor::read_double(double min, double max) const {
    if (!value_->is_number() || value_->as_double() < min || value_->as_double() > max)
        return fail_expected(expected_range("a number", min, max, -kMaxDouble, kMaxDouble));
    return value_->as_double();
}

Result<std::string> JsonCursor::read_string() const {
    if (!value_->is_string())
        return fail_expected("a string");
    return value_->as_string();
}

Result<std::vector<JsonCursor>> JsonCursor::read_array() const {
    LR_TRY(expect_array());
    std::vector<JsonCursor> cursors;
    cursors.reserve(value_->as_array().size());
    for (std::size_t i = 0; i < value_->as_array().size(); ++i)
        cursors.push_back(element(i));
    return cursors;
}

Status JsonCursor::expect_array() const {
    if (!value_->is_array())
        return fail_expected("an array");
    return {};
}

Status JsonCursor::expect_object() const {
    if (!value_->is_object())
        return fail_expected("an object");
    return {};
}

Status JsonCursor::expect_keys(std::initializer_list<std::string_view> known) const {
    LR_TRY(expect_object());
    for (const JsonMember& member : value_->as_object().members()) {
        if (std::find(known.begin(), known.end(), member.key) != known.end())
            continue;
        return fail_here(error_code_, fmt::format("expected only the keys {}, got {}",
                                                  fmt::join(known, ", "), json_quote(member.key)));
    }
    return {};
}

JsonCursor JsonCursor::element(std::size_t i) const {
    LR_CHECK_LT(i, value_->as_array().size());
    JsonCursor cursor(where_, value_->as_array()[i], error_code_);
    cursor.path_ = fmt::format("{}[{}]", path_, i);
    return cursor;
}

JsonCursor JsonCursor::member(std::string_view key) const {
    const Json* value = value_->find(key);
    LR_CHECK(value != nullptr);
    JsonCursor cursor(where_, *value, error_code_);
    cursor.path_ = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    return cursor;
}

bool JsonCursor::has(std::string_view key) const {
    const Json* value = value_->find(key);
    return value != nullptr && !value->is_null();
}

Result<JsonCursor> JsonCursor::required(std::string_view key) const {
    LR_TRY(expect_object());
    if (value_->find(key) == nullptr)
        return fail_here(error_code_, fmt::format("expected the key \"{}\", got none", key));
    return member(key);
}

Result<std::optional<JsonCursor>> JsonCursor::optional(std::string_view key) const {
    LR_TRY(expect_object());
    if (!has(key))
        return std::optional<JsonCursor>();
    return std::optional<JsonCursor>(member(key));
}

Result<bool> JsonCursor::required_bool(std::string_view key) const {
    LR_TRY_ASSIGN(JsonCursor cursor, required(key));
    return cursor.read_bool();
}

Result<bool> JsonCursor::optional_bool(std::string_view key, bool fallback) const {
    LR_TRY_ASSIGN(std::optional<JsonCursor> cursor, optional(key));
    return cursor ? cursor->read_bool() : fallback;
}

Result<std::int64_t> JsonCursor::required_int(std::string_view key, std::int64_t min,
                                              std::int64_t max) const {
    LR_TRY_ASSIGN(JsonCursor cursor, required(key));
    return cursor.read_int(min, max);
}

Result<std::int64_t> JsonCursor::optional_int(std::string_view key, std::int64_t fallback,
                                              std::int64_t min, std::int64_t max) const {
    LR_TRY_ASSIGN(std::optional<JsonCursor> cursor, optional(key));
    return cursor ? cursor->read_int(min, max) : fallback;
}

Result<double> JsonCursor::required_double(std::string_view key, double min, double max) const {
    LR_TRY_ASSIGN(JsonCursor cursor, required(key));
    return cursor.read_double(min, max);
}

Result<double> JsonCursor::optional_double(std::string_view key, double fallback, double min,
                                           double max) const {
    LR_TRY_ASSIGN(std::optional<JsonCursor> cursor, optional(key));
    return cursor ? cursor->read_double(min, max) : fallback;
}

Result<std::string> JsonCursor::required_string(std::string_view key) const {
    LR_TRY_ASSIGN(JsonCursor cursor, required(key));
    return cursor.read_string();
}

Result<std::string> JsonCursor::optional_string(std::string_view key,
                                                std::string_view fallback) const {
    LR_TRY_ASSIGN(std::optional<JsonCursor> cursor, optional(key));
    return cursor ? cursor->read_string() : std::string(fallback);
}

Result<JsonCursor> JsonCursor::required_object(std::string_view key) const {
    LR_TRY_ASSIGN(JsonCursor cursor, required(key));
    LR_TRY(cursor.expect_object());
    return cursor;
}

Result<std::optional<JsonCursor>> JsonCursor::optional_object(std::string_view key) const {
    LR_TRY_ASSIGN(std::optional<JsonCursor> cursor, optional(key));
    if (cursor)
        LR_TRY(cursor->expect_object());
    return cursor;
}

Result<JsonCursor> JsonCursor::required_array(std::string_view key) const {
    LR_TRY_ASSIGN(JsonCursor cursor, required(key));
    LR_TRY(cursor.expect_array());
    return cursor;
}

Result<std::optional<JsonCursor>> JsonCursor::optional_array(std::string_view key) const {
    LR_TRY_ASSIGN(std::optional<JsonCursor> cursor, optional(key));
    if (cursor)
        LR_TRY(cursor->expect_array());
    return cursor;
}

Result<std::vector<std::string>> JsonCursor::required_strings(std::string_view key) const {
    LR_TRY_ASSIGN(JsonCursor array, required_array(key));
    std::vector<std::string> strings;
    for (std::size_t i = 0; i < array.value().as_array().size(); ++i) {
        LR_TRY_ASSIGN(std::string text, array.element(i).read_string());
        strings.push_back(std::move(text));
    }
    return strings;
}

Result<std::vector<std::int64_t>> JsonCursor::required_ints(std::string_view key, std::int64_t min,
                                                            std::int64_t max) const {
    LR_TRY_ASSIGN(JsonCursor array, required_array(key));
    std::vector<std::int64_t> ints;
    for (std::size_t i = 0; i < array.value().as_array().size(); ++i) {
        LR_TRY_ASSIGN(const std::int64_t value, array.element(i).read_int(min, max));
        ints.push_back(value);
    }
    return ints;
}

} // namespace lr
