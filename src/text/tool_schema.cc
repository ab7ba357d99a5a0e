// SPDX-License-Identifier: Apache-2.0
#include "text/tool_schema.h"

#include <array>
#include <utility>

namespace lr::text {

namespace {

// References may go round in circles, and schemas may nest as deeply as the JSON parser allows.
constexpr int kMaxSchemaDepth = 32;
// Unions of references could multiply without end.
constexpr int kMaxSchemas = 1000;

JsonTypes type_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, JsonTypes>, 7> kNames = {
        {{"string", kStringType},
         {"integer", kNumberType},
         {"number", kNumberType},
         {"boolean", kBooleanType},
         {"null", kNullType},
         {"array", kArrayType},
         {"object", kObjectType}}};
    for (const auto& [known, type] : kNames)
        if (known == name)
            return type;
    return kAnyType;
}

JsonTypes type_of(const Json& value) {
    switch (value.kind()) {
    case Json::Kind::kNull:
        return kNullType;
    case Json::Kind::kBool:
        return kBooleanType;
    case Json::Kind::kInt:
    case Json::Kind::kUint:
    case Json::Kind::kDouble:
        return kNumberType;
    case Json::Kind::kString:
        return kStringType;
    case Json::Kind::kArray:
        return kArrayType;
    case Json::Kind::kObject:
        return kObjectType;
    }
    return kAnyType;
}

// The value at a JSON pointer "#/a/b" into the root; nullptr where there is none. Escapes (~0, ~1)
// occur in no schema seen and find nothing.
const Json* referenced(const Json& root, std::string_view reference) {
    if (!reference.starts_with('#'))
        return nullptr;
    reference.remove_prefix(1);
    const Json* at = &root;
    while (at != nullptr && reference.starts_with('/')) {
        reference.remove_prefix(1);
        const std::size_t end = std::min(reference.find('/'), reference.size());
        at = at->find(reference.substr(0, end));
        reference.remove_prefix(end);
    }
    return reference.empty() ? at : nullptr;
}

class SchemaReader {
  public:
    explicit SchemaReader(const Json& root) : root_(root) {}

    JsonTypes read(const Json& schema, int depth) {
        if (depth > kMaxSchemaDepth || ++schemas_ > kMaxSchemas)
            return kAnyType;
        JsonTypes types = kAnyType;
        const auto narrow = [&](JsonTypes to) { types &= to; };
        if (const Json* reference = schema.find("$ref"); reference && reference->is_string())
            if (const Json* target = referenced(root_, reference->as_string()))
                narrow(read(*target, depth + 1));
        if (const Json* type = schema.find("type"))
            narrow(named(*type));
        if (const Json* values = schema.find("enum"); values && values->is_array()) {
            JsonTypes listed = 0;
            for (const Json& value : values->as_array())
                listed |= type_of(value);
            narrow(listed);
        }
        if (const Json* value = schema.find("const"))
            narrow(type_of(*value));
        for (const char* key : {"anyOf", "oneOf"})
            if (const Json* list = schema.find(key); list && list->is_array()) {
                JsonTypes any = 0;
                for (const Json& item : list->as_array())
                    any |= read(item, depth + 1);
                narrow(any);
            }
        if (const Json* list = schema.find("allOf"); list && list->is_array())
            for (const Json& item : list->as_array())
                narrow(read(item, depth + 1));
        return types == 0 ? kAnyType : types;
    }

  private:
    static JsonTypes named(const Json& type) {
        if (type.is_string())
            return type_named(type.as_string());
        if (!type.is_array())
            return kAnyType;
        JsonTypes types = 0;
        for (const Json& item : type.as_array())
            types |= item.is_string() ? type_named(item.as_string()) : kAnyType;
        return types;
    }

    const Json& root_;
    int schemas_ = 0;
};

std::string_view stripped(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

} // namespace

JsonTypes schema_types(const Json& schema, const Json& root) {
    return SchemaReader(root).read(schema, 0);
}

std::optional<std::string> json_of_text(std::string_view text, JsonTypes types) {
    if (types == kStringType)
        return json_quote(text);
    std::string_view word = stripped(text);
    const bool strings = (types & kStringType) != 0, nulls = (types & kNullType) != 0;
    if (word == "None" && (nulls || !strings))
        word = "null";
    if (!strings)
        word = word == "True" ? "true" : word == "False" ? "false" : word;
    if (word.empty() && nulls && !strings)
        return "null";
    if ((word.empty() || word == "null") && !strings && !nulls)
        return std::nullopt;
    if (!word.empty()) {
        const Result<Json> json = parse_json(word, "");
        if (json && !json->is_string() && (type_of(*json) & types) != 0)
            return std::string(word);
    }
    return json_quote(text);
}

ToolSet::Function ToolSet::read_function(const Json* schema) {
    Function function;
    if (schema == nullptr || !schema->is_object())
        return function;
    const Json* properties = schema->find("properties");
    if (properties != nullptr && properties->is_object()) {
        for (const JsonMember& property : properties->as_object().members())
            function.parameters[property.key] = schema_types(property.value, *schema);
        function.open = false;
    }
    if (const Json* others = schema->find("additionalProperties")) {
        if (others->is_object())
            function.others = schema_types(*others, *schema);
        function.open =
            function.open || others->is_object() || (others->is_bool() && others->as_bool());
    }
    return function;
}

Result<ToolSet> ToolSet::from_json(const JsonCursor& tools) {
    ToolSet set;
    LR_TRY_ASSIGN(const std::vector<JsonCursor> items, tools.read_array());
    for (const JsonCursor& item : items) {
        LR_TRY(item.expect_object());
        LR_TRY_ASSIGN(const std::optional<JsonCursor> inner, item.optional_object("function"));
        const JsonCursor& function = inner ? *inner : item;
        LR_TRY_ASSIGN(const std::string name, function.required_string("name"));
        if (name.empty())
            return function.fail_here(Code::kInvalidArgument, "expected a name, got \"\"");
        LR_TRY_ASSIGN(const std::optional<JsonCursor> schema,
                      function.optional_object("parameters"));
        if (!set.functions_.emplace(name, read_function(schema ? &schema->value() : nullptr))
                 .second)
            return function.fail_here(
                Code::kInvalidArgument,
                fmt::format("expected each name once, got {} again", json_quote(name)));
    }
    return set;
}

JsonTypes ToolSet::types(std::string_view function, std::string_view parameter) const {
    const auto found = functions_.find(function);
    if (found == functions_.end())
        return kStringType;
    const auto listed = found->second.parameters.find(parameter);
    return listed == found->second.parameters.end() ? found->second.others : listed->second;
}

bool ToolSet::may_have(std::string_view function, std::string_view parameter) const {
    const auto found = functions_.find(function);
    return found == functions_.end() || found->second.open ||
           found->second.parameters.find(parameter) != found->second.parameters.end();
}

} // namespace lr::text
