// SPDX-License-Identifier: Apache-2.0
//
// text/chat_template.h: the prompt of a conversation, as the model's own chat template writes it.
//
//   LR_TRY_ASSIGN(const ChatTemplate chat, ChatTemplate::load(folder));
//   LR_TRY_ASSIGN(const MarkedText prompt, chat.render({.messages = &messages}));
//   tokenizer.encode(prompt, ...)   // control tokens only where the template wrote them
//   const bool thinking = leaves_open(prompt);
#pragma once

#include "text/chat_messages.h"
#include "text/jinja/template.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lr::text {

// Everything pointed to outlives the render.
struct ChatRequest {
    const Json* messages = nullptr;  // as text/chat_messages.h takes them
    const Json* tools = nullptr;     // an array of objects, null, or nothing
    const Json* documents = nullptr; // likewise
    bool add_generation_prompt = true;
    std::optional<bool> enable_thinking; // absent: the template's own default
    // An object: more variables for the template. It may name none of those above but
    // enable_thinking, which counts where the member above is absent.
    const Json* kwargs = nullptr;
    LateSystem late_system = LateSystem::kKeep;
};

// Immutable; render may be called from many threads at once.
class ChatTemplate {
  public:
    // `file` when it is given, else folder/chat_template.jinja, else `chat_template` in
    // folder/tokenizer_config.json: a text, or a list of {name, template} with a "default" and
    // maybe a "tool_use", which serves requests with tools. kNotFound: there is none.
    // tokenizer_config.json also gives bos_token, eos_token and the like, which templates may use.
    static Result<ChatTemplate> load(const std::filesystem::path& folder,
                                     const std::optional<std::filesystem::path>& file = {});
    // `name` stands in errors. `tokens`: bos_token and so on.
    static Result<ChatTemplate> compile(std::string_view source, std::string_view name,
                                        std::vector<JsonMember> tokens = {});

    // The prompt. Marked as from outside: all that the request says (contents, names, arguments,
    // schemas, kwargs); not: the template's own text, and tokens. Errors: of prepare_messages; of
    // the template (what its raise_exception says stands alone), see jinja::Template::render.
    Result<MarkedText> render(const ChatRequest& request,
                              const jinja::RenderOptions& options = {}) const;

  private:
    ChatTemplate(jinja::Template usual, std::optional<jinja::Template> with_tools,
                 std::vector<JsonMember> tokens)
        : usual_(std::move(usual)), with_tools_(std::move(with_tools)), tokens_(std::move(tokens)) {
    }

    jinja::Template usual_;
    std::optional<jinja::Template> with_tools_;
    std::vector<JsonMember> tokens_;
};

// The prompt ends inside of what `tag` opens: its last word is the tag, written by the template.
// The answer then begins with reasoning, whatever model it is.
bool leaves_open(const MarkedText& prompt, std::string_view tag = "<think>");

} // namespace lr::text
