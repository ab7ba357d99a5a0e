// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include "core/text_file.h"

#include <algorithm>
#include <iterator>

namespace lr::text {

namespace {

constexpr std::string_view kTokenNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                            "pad_token", "cls_token", "mask_token"};
constexpr std::string_view kReserved[] = {"messages", "tools", "documents",
                                          "add_generation_prompt"};

// A file's text; nothing when there is no such file.
Result<std::optional<std::string>> read_if_there(const std::filesystem::path& path) {
    Result<std::string> text = read_text_file(path.string());
    if (text)
        return std::optional(std::move(*text));
    if (text.error().code() == Code::kNotFound)
        return std::optional<std::string>();
    return fail(std::move(text).error());
}

// A token is a string or an object with its content; null means there is none.
Result<std::vector<JsonMember>> read_tokens(const JsonCursor& config) {
    std::vector<JsonMember> tokens;
    for (std::string_view name : kTokenNames) {
        LR_TRY_ASSIGN(const std::optional<JsonCursor> token, config.optional(name));
        if (!token)
            continue;
        const bool is_object = token->value().is_object();
        LR_TRY_ASSIGN(std::string text,
                      is_object ? token->required_string("content") : token->read_string());
        tokens.push_back({std::string(name), Json(std::move(text))});
    }
    return tokens;
}

struct Sources {
    std::string usual, name; // the template and what errors call it
    std::optional<std::string> with_tools;
};

// `chat_template` of tokenizer_config.json, which is not null.
Result<Sources> read_templates(const JsonCursor& given) {
    Sources sources;
    sources.name = given.where() + " chat_template";
    if (given.value().is_string()) {
        sources.usual = given.value().as_string();
        return sources;
    }
    std::optional<std::string> usual;
    if (!given.value().is_array())
        return given.fail_expected("a string or an array of {name, template}");
    LR_TRY_ASSIGN(const std::vector<JsonCursor> list, given.read_array());
    for (const JsonCursor& each : list) {
        LR_TRY_ASSIGN(const std::string name, each.required_string("name"));
        LR_TRY_ASSIGN(std::string text, each.required_string("template"));
        if (name == "default")
            usual = std::move(text);
        else if (name == "tool_use")
            sources.with_tools = std::move(text);
    }
    if (!usual)
        return given.fail_here(Code::kInvalidFile, "expected a template named \"default\"");
    sources.usual = std::move(*usual);
    return sources;
}

Result<Sources> find_templates(const std::filesystem::path& folder,
                               const std::optional<std::filesystem::path>& file,
                               const std::optional<JsonCursor>& config) {
    if (file) {
        LR_TRY_ASSIGN(std::string text, read_text_file(file->string()));
        return Sources{std::move(text), file->string(), {}};
    }
    const std::filesystem::path usual = folder / "chat_template.jinja";
    LR_TRY_ASSIGN(std::optional<std::string> text, read_if_there(usual));
    if (text)
        return Sources{std::move(*text), usual.string(), {}};
    if (config && config->has("chat_template"))
        return read_templates(config->member("chat_template"));
    return fail(Code::kNotFound,
                "{}: expected chat_template.jinja, or chat_template in tokenizer_config.json, got "
                "neither: name a template file",
                folder.string());
}

Status expect_objects(std::string_view name, const Json* value) {
    if (value == nullptr || value->is_null())
        return {};
    if (!value->is_array())
        return fail(Code::kInvalidArgument, "{}: expected an array or null, got {}", name,
                    json_excerpt(*value));
    for (std::size_t i = 0; i < value->as_array().size(); ++i)
        if (!value->as_array()[i].is_object())
            return fail(Code::kInvalidArgument, "{}[{}]: expected an object, got {}", name, i,
                        json_excerpt(value->as_array()[i]));
    return {};
}

Status check_kwargs(const Json* kwargs) {
    if (kwargs == nullptr || kwargs->is_null())
        return {};
    if (!kwargs->is_object())
        return fail(Code::kInvalidArgument, "chat_template_kwargs: expected an object, got {}",
                    json_excerpt(*kwargs));
    for (std::string_view name : kReserved)
        if (kwargs->find(name) != nullptr)
            return fail(Code::kInvalidArgument,
                        "chat_template_kwargs: expected none of the request's own members, got "
                        "{}",
                        json_quote(name));
    return {};
}

} // namespace

Result<ChatTemplate> ChatTemplate::compile(std::string_view source, std::string_view name,
                                           std::vector<JsonMember> tokens) {
    LR_TRY_ASSIGN(jinja::Template usual, jinja::Template::compile(source, name));
    return ChatTemplate(std::move(usual), std::nullopt, std::move(tokens));
}

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& folder,
                                        const std::optional<std::filesystem::path>& file) {
    const std::string config_path = (folder / "tokenizer_config.json").string();
    LR_TRY_ASSIGN(const std::optional<std::string> text, read_if_there(config_path));
    Json json;
    std::optional<JsonCursor> config;
    std::vector<JsonMember> tokens;
    if (text) {
        LR_TRY_ASSIGN(json, parse_json(*text, config_path));
        config.emplace(config_path, json);
        LR_TRY(config->expect_object());
        LR_TRY_ASSIGN(tokens, read_tokens(*config));
    }
    LR_TRY_ASSIGN(const Sources sources, find_templates(folder, file, config));
    LR_TRY_ASSIGN(ChatTemplate made, compile(sources.usual, sources.name, std::move(tokens)));
    if (sources.with_tools) {
        LR_TRY_ASSIGN(made.with_tools_,
                      jinja::Template::compile(*sources.with_tools, sources.name + " tool_use"));
    }
    return made;
}

Result<MarkedText> ChatTemplate::render(const ChatRequest& request,
                                        const jinja::RenderOptions& options) const {
    static const Json kNull;
    LR_TRY(expect_objects("tools", request.tools));
    LR_TRY(expect_objects("documents", request.documents));
    LR_TRY(check_kwargs(request.kwargs));
    LR_TRY_ASSIGN(const Json messages,
                  prepare_messages(request.messages == nullptr ? kNull : *request.messages,
                                   request.late_system));
    const Json generation(request.add_generation_prompt);
    const Json thinking(request.enable_thinking.value_or(false));
    const auto or_null = [](const Json* value) { return value == nullptr ? &kNull : value; };
    std::vector<jinja::RenderVariable> variables{
        {"messages", &messages},
        {"tools", or_null(request.tools)},
        {"documents", or_null(request.documents)},
        {"add_generation_prompt", &generation},
    };
    if (request.enable_thinking)
        variables.push_back({"enable_thinking", &thinking});
    if (request.kwargs != nullptr && request.kwargs->is_object())
        for (const JsonMember& member : request.kwargs->as_object().members())
            variables.push_back({member.key, &member.value});
    // Last: of two variables of one name the first counts.
    for (const JsonMember& token : tokens_)
        variables.push_back({token.key, &token.value, false});
    const bool tools =
        request.tools != nullptr && request.tools->is_array() && !request.tools->as_array().empty();
    return (tools && with_tools_ ? *with_tools_ : usual_).render(variables, options);
}

bool leaves_open(const MarkedText& prompt, std::string_view tag) {
    const std::size_t last = prompt.text.find_last_not_of(" \t\r\n");
    const std::size_t end = last == std::string::npos ? 0 : last + 1;
    if (!std::string_view(prompt.text).substr(0, end).ends_with(tag))
        return false;
    const std::size_t begin = end - tag.size();
    return std::none_of(prompt.outside.begin(), prompt.outside.end(), [&](const ByteRange& range) {
        return range.begin < end && range.end > begin;
    });
}

} // namespace lr::text
