// SPDX-License-Identifier: Apache-2.0
#include "text/chat_messages.h"

#include "text/unicode.h"

#include <algorithm>

namespace lr::text {

namespace {

// A value of the conversation and where it stands, which is put into words only for an error.
class Place {
  public:
    Place(std::string_view name, const Json& json) : value(json), key_(name) {}

    Failure expected(std::string_view what, Code code = Code::kInvalidArgument) const {
        return fail(code, "{}: expected {}, got {}", path(), what, json_excerpt(value));
    }
    std::string path() const { // "messages[2].content"
        if (outer_ == nullptr)
            return std::string(key_);
        if (key_.empty())
            return fmt::format("{}[{}]", outer_->path(), index_);
        return fmt::format("{}.{}", outer_->path(), key_);
    }

    // This one must outlive what these two return.
    Place element(std::size_t i) const {
        Place place({}, value.as_array()[i]);
        place.outer_ = this;
        place.index_ = i;
        return place;
    }
    Place member(std::string_view key) const { // null when absent
        static const Json kNull;
        const Json* found = value.find(key);
        Place place(key, found == nullptr ? kNull : *found);
        place.outer_ = this;
        return place;
    }

    const Json& value;

  private:
    std::string_view key_; // "" for an element of an array
    const Place* outer_ = nullptr;
    std::size_t index_ = 0;
};

Status check_utf8(const Place& string) {
    if (const std::optional<std::size_t> offset = first_invalid_utf8(string.value.as_string()))
        return fail(Code::kInvalidArgument,
                    "{}: expected UTF-8, got an invalid sequence at byte {}", string.path(),
                    *offset);
    return {};
}

Result<std::string> text_of(const Place& content) {
    if (content.value.is_null())
        return std::string();
    if (content.value.is_string()) {
        LR_TRY(check_utf8(content));
        return content.value.as_string();
    }
    if (!content.value.is_array())
        return content.expected("a string, an array of text parts or null");
    std::string text;
    for (std::size_t i = 0; i < content.value.as_array().size(); ++i) {
        const Place part = content.element(i);
        if (!part.value.is_object())
            return part.expected("an object with a type");
        const Place type = part.member("type");
        if (!type.value.is_string())
            return type.expected("a string");
        if (type.value.as_string() != "text")
            return type.expected("\"text\"", Code::kUnsupported);
        const Place words = part.member("text");
        if (!words.value.is_string())
            return words.expected("a string");
        LR_TRY(check_utf8(words));
        text += words.value.as_string();
    }
    return text;
}

// The members of an object, to be changed one by one.
class Members {
  public:
    explicit Members(const Json& object)
        : members_(object.as_object().members().begin(), object.as_object().members().end()) {}

    void set(std::string_view key, Json value) {
        const auto found = find(key);
        if (found == members_.end())
            members_.push_back({std::string(key), std::move(value)});
        else
            found->value = std::move(value);
    }
    void remove(std::string_view key) {
        if (const auto found = find(key); found != members_.end())
            members_.erase(found);
    }
    Json take() { return Json::object(std::move(members_)); }

  private:
    std::vector<JsonMember>::iterator find(std::string_view key) {
        return std::find_if(members_.begin(), members_.end(),
                            [&](const JsonMember& member) { return member.key == key; });
    }
    std::vector<JsonMember> members_;
};

// {"name": ..., "arguments": ...}
Result<Json> prepare_function(const Place& function) {
    const Place name = function.member("name");
    if (!name.value.is_string())
        return name.expected("a string");
    const Place arguments = function.member("arguments");
    Members members(function.value);
    if (arguments.value.is_null()) {
        members.remove("arguments");
        return members.take();
    }
    if (arguments.value.is_string()) {
        Result<Json> parsed = parse_json(arguments.value.as_string(), "arguments");
        if (parsed && parsed->is_object())
            members.set("arguments", std::move(*parsed));
    } else if (!arguments.value.is_object()) {
        return arguments.expected("an object, or a string of JSON");
    }
    return members.take();
}

Result<Json> prepare_calls(const Place& calls) {
    if (!calls.value.is_array())
        return calls.expected("an array or null");
    JsonArray prepared;
    for (std::size_t i = 0; i < calls.value.as_array().size(); ++i) {
        const Place call = calls.element(i);
        if (!call.value.is_object())
            return call.expected("an object");
        const Place function = call.member("function");
        if (function.value.is_null()) { // the name and the arguments may stand in the call itself
            LR_TRY_ASSIGN(Json flat, prepare_function(call));
            prepared.push_back(std::move(flat));
            continue;
        }
        if (!function.value.is_object())
            return function.expected("an object");
        Members members(call.value);
        LR_TRY_ASSIGN(Json inner, prepare_function(function));
        members.set("function", std::move(inner));
        prepared.push_back(members.take());
    }
    return Json(std::move(prepared));
}

// A member that is a string or null; null goes.
Status prepare_string(const Place& message, std::string_view key, Members& members) {
    const Place member = message.member(key);
    if (member.value.is_null())
        members.remove(key);
    else if (!member.value.is_string())
        return member.expected("a string or null");
    else
        return check_utf8(member);
    return {};
}

Result<Json> prepare_message(const Place& message) {
    if (!message.value.is_object())
        return message.expected("an object");
    Members members(message.value);
    const Place role = message.member("role");
    if (!role.value.is_string())
        return role.expected("a string");
    if (role.value.as_string() == "developer")
        members.set("role", Json("system"));
    LR_TRY_ASSIGN(std::string content, text_of(message.member("content")));
    members.set("content", Json(std::move(content)));
    for (const char* key : {"name", "tool_call_id", "reasoning_content", "reasoning"})
        LR_TRY(prepare_string(message, key, members));
    const Json& reasoning = message.member("reasoning").value;
    members.remove("reasoning");
    if (reasoning.is_string() && message.member("reasoning_content").value.is_null())
        members.set("reasoning_content", reasoning);
    const Place calls = message.member("tool_calls");
    if (calls.value.is_null()) {
        members.remove("tool_calls");
    } else {
        LR_TRY_ASSIGN(Json prepared, prepare_calls(calls));
        members.set("tool_calls", std::move(prepared));
    }
    return members.take();
}

bool is_system(const Json& message) {
    return message.find("role")->as_string() == "system";
}

JsonArray merged_systems(JsonArray messages) {
    const auto others = std::stable_partition(messages.begin(), messages.end(), is_system);
    if (others - messages.begin() < 2)
        return messages;
    std::string text;
    for (auto message = messages.begin(); message != others; ++message) {
        text += message == messages.begin() ? "" : "\n\n";
        text += message->find("content")->as_string();
    }
    Members first(messages.front());
    first.set("content", Json(std::move(text)));
    messages.front() = first.take();
    messages.erase(messages.begin() + 1, others);
    return messages;
}

} // namespace

Result<Json> prepare_messages(const Json& messages, LateSystem late_system) {
    const Place all{"messages", messages};
    if (!messages.is_array() || messages.as_array().empty())
        return all.expected("an array of one or more messages");
    JsonArray prepared;
    for (std::size_t i = 0; i < messages.as_array().size(); ++i) {
        LR_TRY_ASSIGN(Json message, prepare_message(all.element(i)));
        prepared.push_back(std::move(message));
    }
    if (late_system == LateSystem::kMerge)
        prepared = merged_systems(std::move(prepared));
    return Json(std::move(prepared));
}

} // namespace lr::text
