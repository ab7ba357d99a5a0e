// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace lr {

namespace {

// Up to here a scan over the keys is as fast as a search in a sorted index.
constexpr std::size_t kScannedMembers = 16;

// The first 8 bytes of a key as one number, ordered as the bytes are: most comparisons of a sort
// over a vocabulary of 250k keys end here without touching the strings.
std::uint64_t key_prefix(std::string_view key) {
    std::uint64_t prefix = 0;
    for (std::size_t i = 0; i < 8; ++i)
        prefix = prefix << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
    return prefix;
}

std::vector<std::uint32_t> sorted_by_key(const std::vector<JsonMember>& members) {
    struct Entry {
        std::uint64_t prefix;
        std::uint32_t index;
    };
    std::vector<Entry> entries;
    entries.reserve(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
        entries.push_back({key_prefix(members[i].key), static_cast<std::uint32_t>(i)});
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        if (a.prefix != b.prefix)
            return a.prefix < b.prefix;
        return members[a.index].key < members[b.index].key;
    });
    std::vector<std::uint32_t> order;
    order.reserve(entries.size());
    for (const Entry& entry : entries)
        order.push_back(entry.index);
    return order;
}

Failure duplicate_key(const std::string& key) {
    return fail(Code::kInvalidArgument, "expected every key once in an object, got {} twice",
                json_quote(key));
}

} // namespace

// Defined here because JsonMember, which holds a Json, is incomplete in the header's class.
JsonObject::JsonObject() = default;
JsonObject::JsonObject(const JsonObject&) = default;
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(const JsonObject&) = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

std::size_t JsonObject::size() const {
    return members_.size();
}

Result<JsonObject> JsonObject::from_members(std::vector<JsonMember> members) {
    LR_CHECK_LE(members.size(), std::numeric_limits<std::uint32_t>::max());
    JsonObject object;
    if (members.size() <= kScannedMembers) {
        for (std::size_t i = 0; i < members.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (members[i].key == members[j].key)
                    return duplicate_key(members[i].key);
    } else {
        object.order_ = sorted_by_key(members);
        for (std::size_t i = 1; i < object.order_.size(); ++i)
            if (members[object.order_[i]].key == members[object.order_[i - 1]].key)
                return duplicate_key(members[object.order_[i]].key);
    }
    object.members_ = std::move(members);
    return object;
}

const Json* JsonObject::find(std::string_view key) const {
    if (order_.empty()) {
        for (const JsonMember& member : members_)
            if (member.key == key)
                return &member.value;
        return nullptr;
    }
    auto found = std::lower_bound(
        order_.begin(), order_.end(), key,
        [&](std::uint32_t index, std::string_view wanted) { return members_[index].key < wanted; });
    if (found == order_.end() || members_[*found].key != key)
        return nullptr;
    return &members_[*found].value;
}

Json::Json(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        value_ = static_cast<std::int64_t>(value);
    else
        value_ = value;
}

Json::Json(double value) : value_(value) {
    LR_CHECK(std::isfinite(value));
}

Json Json::object(std::vector<JsonMember> members) {
    Result<JsonObject> object = JsonObject::from_members(std::move(members));
    LR_CHECK(object.has_value());
    return Json(std::move(*object));
}

bool Json::as_bool() const {
    LR_CHECK(is_bool());
    return std::get<bool>(value_);
}

std::int64_t Json::as_int() const {
    LR_CHECK(is_int());
    return std::get<std::int64_t>(value_);
}

std::uint64_t Json::as_uint() const {
    LR_CHECK(is_integer());
    if (kind() == Kind::kUint)
        return std::get<std::uint64_t>(value_);
    LR_CHECK_GE(as_int(), 0);
    return static_cast<std::uint64_t>(as_int());
}

double Json::as_double() const {
    LR_CHECK(is_number());
    if (kind() == Kind::kInt)
        return static_cast<double>(std::get<std::int64_t>(value_));
    if (kind() == Kind::kUint)
        return static_cast<double>(std::get<std::uint64_t>(value_));
    return std::get<double>(value_);
}

const std::string& Json::as_string() const {
    LR_CHECK(is_string());
    return std::get<std::string>(value_);
}

const JsonArray& Json::as_array() const {
    LR_CHECK(is_array());
    return std::get<JsonArray>(value_);
}

const JsonObject& Json::as_object() const {
    LR_CHECK(is_object());
    return std::get<JsonObject>(value_);
}

const Json* Json::find(std::string_view key) const {
    return is_object() ? as_object().find(key) : nullptr;
}

void append_json_escaped(std::string& out, std::string_view utf8) {
    for (char c : utf8) {
        switch (c) {
        case '"':
            out += "\\\"";
            break;
        case '\\':
            out += "\\\\";
            break;
        case '\n':
            out += "\\n";
            break;
        case '\r':
            out += "\\r";
            break;
        case '\t':
            out += "\\t";
            break;
        default:
            if (static_cast<unsigned char>(c) < 0x20)
                fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
            else
                out += c;
        }
    }
}

namespace {

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    append_json_escaped(out, text);
    out += '"';
}

class Writer {
  public:
    Writer(std::string& out, int indent) : out_(out), indent_(indent) {}

    void write(const Json& value) {
        switch (value.kind()) {
        case Json::Kind::kNull:
            out_ += "null";
            return;
        case Json::Kind::kBool:
            out_ += value.as_bool() ? "true" : "false";
            return;
        case Json::Kind::kInt:
            fmt::format_to(std::back_inserter(out_), "{}", value.as_int());
            return;
        case Json::Kind::kUint:
            fmt::format_to(std::back_inserter(out_), "{}", value.as_uint());
            return;
        case Json::Kind::kDouble:
            write_double(value.as_double());
            return;
        case Json::Kind::kString:
            append_quoted(out_, value.as_string());
            return;
        case Json::Kind::kArray:
            write_array(value.as_array());
            return;
        case Json::Kind::kObject:
            write_object(value.as_object());
            return;
        }
    }

  private:
    void write_double(double value) {
        std::string text = fmt::format("{}", value);
        if (text.find_first_of(".e") == std::string::npos)
            text += ".0";
        out_ += text;
    }

    void write_array(const JsonArray& array) {
        out_ += '[';
        ++depth_;
        for (std::size_t i = 0; i < array.size(); ++i) {
            if (i > 0)
                out_ += ',';
            new_line();
            write(array[i]);
        }
        --depth_;
        if (!array.empty())
            new_line();
        out_ += ']';
    }

    void write_object(const JsonObject& object) {
        out_ += '{';
        ++depth_;
        bool first = true;
        for (const JsonMember& member : object.members()) {
            if (!first)
                out_ += ',';
            first = false;
            new_line();
            append_quoted(out_, member.key);
            out_ += indent_ < 0 ? ":" : ": ";
            write(member.value);
        }
        --depth_;
        if (object.size() > 0)
            new_line();
        out_ += '}';
    }

    void new_line() {
        if (indent_ < 0)
            return;
        out_ += '\n';
        out_.append(static_cast<std::size_t>(depth_) * static_cast<std::size_t>(indent_), ' ');
    }

    std::string& out_;
    int indent_;
    int depth_ = 0;
};

} // namespace

std::string to_json_string(const Json& value, int indent) {
    std::string out;
    Writer(out, indent).write(value);
    return out;
}

std::string json_quote(std::string_view utf8) {
    std::string out;
    append_quoted(out, utf8);
    return out;
}

std::string json_excerpt(const Json& value) {
    constexpr std::size_t kShownBytes = 60;
    if (value.is_array())
        return fmt::format("an array of {}", value.as_array().size());
    if (value.is_object()) {
        const std::size_t n = value.as_object().size();
        return fmt::format("an object of {} member{}", n, n == 1 ? "" : "s");
    }
    if (!value.is_string() || value.as_string().size() <= kShownBytes)
        return to_json_string(value);
    std::size_t cut = kShownBytes; // never inside a UTF-8 character
    while (cut > 0 && (static_cast<unsigned char>(value.as_string()[cut]) & 0xC0) == 0x80)
        --cut;
    return json_quote(value.as_string().substr(0, cut)) + "...";
}

} // namespace lr
