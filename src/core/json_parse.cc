// SPDX-License-Identifier: Apache-2.0
//
// The grammar and the check of UTF-8 are those of Boost.JSON's basic_parser.
#include "core/json.h"

#include <boost/json/basic_parser_impl.hpp>

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace lr {

namespace {

namespace bj = boost::json;
using BoostError = bj::error_code;

// Builds the value. A refusal of our own is left in `refusal`; the parser then stops where it is.
class Builder {
  public:
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_object_size = UINT32_MAX;
    static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

    explicit Builder(std::span<const JsonPart> parts) : parts_(parts) {}

    std::string refusal;
    Json root;

    bool on_document_begin(BoostError&) { return true; }
    bool on_document_end(BoostError&) { return true; }
    bool on_array_begin(BoostError&) {
        const JsonPart* part = part_here();
        open_.emplace_back();
        open_.back().part = part;
        return true;
    }
    bool on_array_end(std::size_t, BoostError&) {
        Json array(std::move(open_.back().array));
        open_.pop_back();
        return add(std::move(array));
    }
    bool on_object_begin(BoostError&) {
        const JsonPart* part = part_here();
        open_.emplace_back();
        open_.back().part = part;
        open_.back().is_object = true;
        return true;
    }
    bool on_object_end(std::size_t, BoostError& error) {
        if (open_.back().part)
            open_.back().members.clear();
        Result<JsonObject> object = JsonObject::from_members(std::move(open_.back().members));
        open_.pop_back();
        if (!object)
            return refuse(object.error().message(), error);
        return add(Json(std::move(*object)));
    }
    bool on_string_part(bj::string_view part, std::size_t, BoostError&) {
        text_.append(part.data(), part.size());
        return true;
    }
    bool on_string(bj::string_view part, std::size_t, BoostError&) {
        return add(Json(take_text(part)));
    }
    bool on_key_part(bj::string_view part, std::size_t n, BoostError& error) {
        return on_string_part(part, n, error);
    }
    bool on_key(bj::string_view part, std::size_t, BoostError&) {
        if (open_.back().part)
            open_.back().members.clear();
        open_.back().members.push_back({take_text(part), Json()});
        return true;
    }
    bool on_number_part(bj::string_view part, BoostError&) {
        text_.append(part.data(), part.size());
        return true;
    }
    bool on_int64(std::int64_t value, bj::string_view, BoostError&) {
        text_.clear();
        return add(Json(value));
    }
    bool on_uint64(std::uint64_t value, bj::string_view, BoostError&) {
        text_.clear();
        return add(Json(value));
    }
    // The parser's own conversion may be off in the last place: convert the digits again.
    bool on_double(double, bj::string_view part, BoostError& error) {
        const std::string digits = take_text(part);
        double value = 0.0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (read.ec == std::errc::result_out_of_range)
            value = std::strtod(digits.c_str(), nullptr); // 0, a subnormal or an infinity
        if (!std::isfinite(value))
            return refuse(fmt::format("expected a number that fits a double, got {}", digits),
                          error);
        return add(Json(value));
    }
    bool on_bool(bool value, BoostError&) { return add(Json(value)); }
    bool on_null(BoostError&) { return add(Json()); }
    bool on_comment_part(bj::string_view, BoostError&) { return true; }
    bool on_comment(bj::string_view, BoostError&) { return true; }

  private:
    struct Open {                       // an array or object whose end has not been seen
        const JsonPart* part = nullptr; // whoever takes the entries
        bool is_object = false;
        JsonArray array;
        std::vector<JsonMember> members; // of a part: the key just read
    };

    // The part that a container which begins here is, if it is one.
    const JsonPart* part_here() const {
        for (const JsonPart& part : parts_) {
            bool here = part.path.size() == open_.size();
            for (std::size_t i = 0; here && i < open_.size(); ++i)
                here = open_[i].is_object && open_[i].members.back().key == part.path[i];
            if (here)
                return &part;
        }
        return nullptr;
    }

    // Most arrays of a large file are pairs.
    static void push(JsonArray& array, Json value) {
        if (array.empty())
            array.reserve(2);
        array.push_back(std::move(value));
    }

    bool add(Json value) {
        if (open_.empty())
            root = std::move(value);
        else if (open_.back().part)
            open_.back().part->take(
                open_.back().is_object ? std::string_view(open_.back().members.back().key) : "",
                value);
        else if (open_.back().is_object)
            open_.back().members.back().value = std::move(value);
        else
            push(open_.back().array, std::move(value));
        return true;
    }

    std::string take_text(bj::string_view last_part) {
        std::string text = std::move(text_);
        text_.clear();
        text.append(last_part.data(), last_part.size());
        return text;
    }

    bool refuse(std::string message, BoostError& error) {
        refusal = std::move(message);
        error = bj::make_error_code(bj::error::input_error);
        return false;
    }

    std::span<const JsonPart> parts_;
    std::vector<Open> open_;
    std::string text_; // parts of the string or number being read
};

struct Position {
    std::size_t line = 1;
    std::size_t column = 1;
};

Position position_of(std::string_view text, std::size_t offset) {
    Position position;
    for (char c : text.substr(0, offset)) {
        ++position.column;
        if (c == '\n') {
            ++position.line;
            position.column = 1;
        }
    }
    return position;
}

std::string byte_at(std::string_view text, std::size_t offset) {
    if (offset >= text.size())
        return "the end of the text";
    const auto byte = static_cast<unsigned char>(text[offset]);
    if (byte >= 0x20 && byte < 0x7F)
        return fmt::format("'{}'", text[offset]);
    return fmt::format("byte 0x{:02X}", byte);
}

// What the grammar wanted where the parser stopped.
std::string expected_words(const BoostError& error, int max_depth) {
    if (error == bj::error::extra_data)
        return "nothing after the document";
    if (error == bj::error::incomplete)
        return "the rest of the document";
    if (error == bj::error::too_deep)
        return fmt::format("at most {} nested arrays and objects", max_depth);
    if (error == bj::error::illegal_leading_surrogate ||
        error == bj::error::illegal_trailing_surrogate || error == bj::error::expected_utf16_escape)
        return "a surrogate pair in \\u escapes";
    if (error == bj::error::expected_hex_digit)
        return "four hexadecimal digits after \\u";
    if (error == bj::error::exponent_overflow)
        return "a number that fits a double";
    return "valid JSON in UTF-8";
}

} // namespace

Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
    return parse_json(text, where, std::span<const JsonPart>(), limits);
}

Result<Json> parse_json(std::string_view text, std::string_view where,
                        std::span<const JsonPart> parts, JsonLimits limits) {
    bj::parse_options options;
    options.max_depth = static_cast<std::size_t>(limits.max_depth);
    bj::basic_parser<Builder> parser(options, parts);
    BoostError error;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
    if (!error && used < text.size())
        error = bj::make_error_code(bj::error::extra_data);
    if (!error && !parser.done())
        error = bj::make_error_code(bj::error::incomplete);
    if (!error)
        return std::move(parser.handler().root);

    const Position position = position_of(text, used);
    std::string message = parser.handler().refusal;
    if (message.empty())
        message = fmt::format("expected {}, got {}", expected_words(error, limits.max_depth),
                              byte_at(text, used));
    return fail(limits.error_code, "{}:{}:{}: {}", where, position.line, position.column, message);
}

} // namespace lr
