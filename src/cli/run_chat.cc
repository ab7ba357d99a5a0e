// SPDX-License-Identifier: Apache-2.0
//
// liverow run --chat: one answer to a conversation.
#include "cli/answer_json.h"
#include "cli/answer_printer.h"
#include "cli/chat_session.h"
#include "cli/run_options.h"
#include "cli/terminal.h"
#include "core/log.h"
#include "core/text_file.h"

namespace lr::cli {
namespace {

Result<Json> read_json(const std::string& path) {
    LR_TRY_ASSIGN(const std::string text, read_text_file(path));
    return parse_json(text, path, {.error_code = Code::kInvalidArgument});
}

// --messages, then --system in front and the prompt behind, as far as they are given.
Result<Json> conversation(const RunOptions& options) {
    JsonArray messages;
    const auto say = [&](const char* role, const std::string& content,
                         std::string_view from) -> Status {
        LR_TRY(check_utf8(content, from));
        messages.push_back(Json::object({{"role", Json(role)}, {"content", Json(content)}}));
        return {};
    };
    if (!options.system.empty())
        LR_TRY(say("system", options.system, "--system"));
    if (!options.messages.empty()) {
        LR_TRY_ASSIGN(const Json file, read_json(options.messages));
        if (!file.is_array())
            return fail(Code::kInvalidArgument, "{}: expected an array of messages, got {}",
                        options.messages, json_excerpt(file));
        for (const Json& message : file.as_array())
            messages.push_back(message);
    }
    const bool asks = options.prompt.has_text || !options.prompt.file.empty();
    if (asks || options.messages.empty()) {
        LR_TRY_ASSIGN(const std::string text, read_text_input(options.prompt, "question"));
        LR_TRY(say("user", text, origin_of(options.prompt, "question")));
    }
    return Json(std::move(messages));
}

std::optional<bool> thinking(const std::string& think) {
    return think == "auto" ? std::nullopt : std::optional(think == "on");
}

} // namespace

Status run_chat(const RunOptions& options) {
    LR_TRY_ASSIGN(const std::unique_ptr<LoadedModel> model, LoadedModel::load(options.model));
    LR_TRY(model->need_chat());
    ChatRequest request{.messages = {},
                        .tools = {},
                        .template_kwargs = {},
                        .thinking = thinking(options.think),
                        .late_system = options.merge_system ? text::LateSystem::kMerge
                                                            : text::LateSystem::kKeep,
                        .most_tokens = options.tokens,
                        .choices = options.choices,
                        .logprobs = {.top = static_cast<std::int32_t>(options.sampling.logprobs)},
                        .stop = options.stop,
                        .ignore_end = options.ignore_eos};
    LR_TRY_ASSIGN(request.messages, conversation(options));
    LR_TRY_ASSIGN(request.template_kwargs, template_kwargs(options.model));
    if (!options.tools.empty()) {
        LR_TRY_ASSIGN(request.tools, read_json(options.tools));
    }
    LR_TRY_ASSIGN(request.sampling,
                  options.sampling.sampling(model->opened.generation, model->drawable()));
    LR_TRY_ASSIGN(const std::int64_t prompt, ChatSession::prompt_tokens(*model, request));
    LR_TRY(model->start(prompt + options.tokens, options.choices + 1));
    if (!options.quiet) {
        say_device(model->engine->report());
        log_info("sampling: {}", describe(request.sampling));
    }
    ChatSession session(*model, ChatSession::Reuse::kNone);
    AnswerPrinter printer(AnswerPrinter::Reasoning::kLeftOut);
    ChatSession::Show show;
    if (!options.json)
        show = [&](std::int32_t, const text::AnswerDelta& delta) { return printer.show(delta); };
    LR_TRY_ASSIGN(const ChatResult result, session.answer(request, show));
    if (options.json)
        LR_TRY(print_out(to_json_string(chat_json(options.model.folder, result,
                                                  model->load_seconds(), *model->tokenizer),
                                        1) +
                         "\n"));
    else
        LR_TRY(printer.end(result.choices[0]));
    if (!options.quiet)
        report_run(*model, result.prompt_tokens, result.prefill_seconds, result.decode_steps,
                   result.decode_seconds);
    return {};
}

} // namespace lr::cli
