// SPDX-License-Identifier: Apache-2.0
//
// liverow chat: a conversation in the terminal.
#include "cli/answer_printer.h"
#include "cli/chat_commands.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/sampling_flags.h"
#include "cli/terminal.h"
#include "cli/text_input.h"
#include "cli/usage.h"
#include "core/log.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <type_traits>

namespace lr::cli {
namespace {

constexpr std::int64_t kContext = 8192; // where --context says nothing and the model allows it

struct ChatOptions {
    ModelFlags model;
    SamplingFlags sampling;
    std::string system, think = "auto";
    std::int64_t tokens = 0;
    std::vector<std::string> stop;
    bool stats = false, greedy = false;
};

class Chat {
  public:
    explicit Chat(const ChatOptions& options) : options_(options) {}

    Status execute() {
        LR_TRY(check_utf8(options_.system, "--system"));
        LR_TRY_ASSIGN(template_kwargs_, template_kwargs(options_.model));
        LR_TRY_ASSIGN(model_, LoadedModel::load(options_.model));
        LR_TRY(model_->need_chat());
        SamplingFlags flags = options_.sampling;
        if (options_.greedy && (flags.sample || flags.temperature.value_or(0) > 0))
            return fail(Code::kInvalidArgument,
                        "--greedy: expected neither --sample nor --temp with it, which draw");
        flags.sample = !options_.greedy;
        LR_TRY_ASSIGN(sampling_, flags.sampling(model_->opened.generation, model_->drawable()));
        LR_TRY(model_->start(kContext, 2));
        session_ = std::make_unique<ChatSession>(*model_, ChatSession::Reuse::kKeep);
        conversation_.set_system(options_.system);
        think_ = options_.think;
        tokens_ = options_.tokens;
        stats_ = options_.stats;
        log_info("{}, context {} tokens, {}; /help lists what can be done", options_.model.folder,
                 model_->engine->options().context, describe(sampling_));
        return converse();
    }

  private:
    Status converse() {
        const InterruptGuard guard;
        while (true) {
            const TypedLine line = read_line("> ", history_);
            if (line.state == LineState::kEnded)
                return {};
            if (line.state == LineState::kInterrupted) {
                log_info("Ctrl-D or /exit leaves");
                continue;
            }
            if (line.text.find_first_not_of(" \t\n") == std::string::npos)
                continue;
            if (history_.empty() || history_.back() != line.text)
                history_.push_back(line.text);
            LR_TRY_ASSIGN(const bool more, handle(line.text));
            if (!more)
                return {};
        }
    }

    // false: leave.
    Result<bool> handle(const std::string& line) {
        const Result<ChatLine> read = read_chat_line(line);
        if (!read) {
            log_error("{}", read.error().message());
            return true;
        }
        if (!read->command) {
            conversation_.ask(read->text);
            sampling_.stream = 0;
            const Status status = answer();
            if (!status.ok())
                conversation_.undo();
            return go_on(status);
        }
        if (*read->command == ChatCommand::kExit)
            return false;
        return go_on(carry_out(*read->command, read->text));
    }

    // What a person can get wrong is said, and the chat goes on.
    static Result<bool> go_on(const Status& status) {
        if (status.ok() || status.code() == Code::kInvalidArgument ||
            status.code() == Code::kNotFound) {
            if (!status.ok())
                log_error("{}", status.message());
            return true;
        }
        return fail(status);
    }

    Status carry_out(ChatCommand command, const std::string& argument) {
        switch (command) {
        case ChatCommand::kHelp:
            return screen_.note(chat_help());
        case ChatCommand::kNew:
            conversation_.clear();
            return screen_.note("a new conversation");
        case ChatCommand::kSystem:
            conversation_.set_system(argument);
            return screen_.note(argument.empty() ? "no system message" : "system message set");
        case ChatCommand::kThink:
            think_ = argument;
            return screen_.note("thinking: " + argument);
        case ChatCommand::kRetry:
            return retry();
        case ChatCommand::kUndo: {
            const std::string question = conversation_.undo();
            return screen_.note(question.empty() ? "nothing to take back"
                                                 : "taken back: " + question);
        }
        case ChatCommand::kSet:
            return set(argument);
        case ChatCommand::kStats:
            stats_ = argument == "on";
            return screen_.note("statistics: " + argument);
        case ChatCommand::kSave:
            return save(argument);
        case ChatCommand::kExit:
            return {};
        }
        return {};
    }

    Status answer() {
        InterruptGuard::clear();
        const ChatRequest request{.messages = conversation_.messages(),
                                  .template_kwargs = template_kwargs_,
                                  .thinking = think_ == "auto" ? std::optional<bool>()
                                                               : std::optional(think_ == "on"),
                                  .most_tokens = tokens_ > 0 ? tokens_ : -1,
                                  .sampling = sampling_,
                                  .stop = options_.stop,
                                  .interrupted = &InterruptGuard::interrupted};
        const auto result =
            session_->answer(request, [this](std::int32_t, const text::AnswerDelta& delta) {
                return screen_.show(delta);
            });
        if (!result) {
            if (result.error().code() != Code::kInvalidArgument)
                return fail(result.error());
            LR_TRY(screen_.break_off());
            return fail(result.error()); // the template or the context refused it
        }
        const ChatAnswer& answer = result->choices[0];
        LR_TRY(screen_.end(answer));
        conversation_.reply(answer.reasoning, answer.answer.text);
        if (answer.finish == Finish::kLength)
            LR_TRY(screen_.note("[the answer was cut at its longest]"));
        return stats_ ? screen_.note(stats_line(*result)) : Status();
    }

    static std::string stats_line(const ChatResult& result) {
        const auto rate = [](std::int64_t count, double seconds) {
            return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
        };
        const std::int64_t fresh = result.prompt_tokens - result.cached_tokens;
        return fmt::format("[prompt {} tokens, {} of them known, {:.0f} tok/s | answer {} tokens, "
                           "{:.1f} tok/s]",
                           result.prompt_tokens, result.cached_tokens,
                           rate(fresh, result.prefill_seconds), result.choices[0].tokens.size(),
                           rate(result.decode_steps, result.decode_seconds));
    }

    Status retry() {
        if (conversation_.empty())
            return fail(Code::kInvalidArgument, "/retry: nothing has been asked");
        conversation_.undo_reply();
        ++sampling_.stream; // other draws for the same places
        if (sampling_.temperature <= 0)
            LR_TRY(screen_.note("[greedy: the same answer comes again; /set temp 0.8 draws]"));
        return answer();
    }

    Status set(const std::string& argument) {
        const std::size_t space = argument.find(' ');
        const std::string name = argument.substr(0, space);
        const std::string text = space == std::string::npos ? "" : argument.substr(space + 1);
        engine::Sampling changed = sampling_;
        std::int64_t tokens = tokens_;
        if (name == "temp") {
            LR_TRY_ASSIGN(changed.temperature, number<float>(argument, text));
        } else if (name == "top-k") {
            LR_TRY_ASSIGN(changed.top_k, number<std::int32_t>(argument, text));
        } else if (name == "top-p") {
            LR_TRY_ASSIGN(changed.top_p, number<float>(argument, text));
        } else if (name == "min-p") {
            LR_TRY_ASSIGN(changed.min_p, number<float>(argument, text));
        } else if (name == "seed") {
            LR_TRY_ASSIGN(changed.seed, number<std::uint64_t>(argument, text));
        } else if (name == "tokens") {
            LR_TRY_ASSIGN(tokens, number<std::int64_t>(argument, text));
            if (tokens < 0)
                return fail(Code::kInvalidArgument, "/set tokens: expected 0 or more, got {}",
                            tokens);
        } else {
            return fail(Code::kInvalidArgument,
                        "/set: expected temp, top-k, top-p, min-p, seed or tokens, got \"{}\"",
                        name);
        }
        LR_TRY(engine::check(changed, model_->drawable()));
        sampling_ = changed;
        tokens_ = tokens;
        return screen_.note(describe(sampling_) +
                            (tokens_ > 0 ? fmt::format(", at most {} tokens", tokens_) : ""));
    }

    // Whole numbers are read as such: "2.7" and "nan" are none.
    template <typename T>
    static Result<T> number(const std::string& argument, const std::string& text) {
        T value{};
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool good = problem == std::errc() && end == text.data() + text.size() && !text.empty();
        if constexpr (std::is_floating_point_v<T>)
            good = good && std::isfinite(value);
        if (!good)
            return fail(Code::kInvalidArgument, "/set: expected NAME and a {}number, got \"{}\"",
                        std::is_floating_point_v<T> ? "" : "whole ", argument);
        return value;
    }

    Status save(const std::string& path) {
        if (std::filesystem::exists(path))
            return fail(Code::kInvalidArgument, "/save: {}: exists; expected a new file", path);
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file << to_json_string(conversation_.messages(), 2) << '\n';
        file.close();
        if (!file)
            return fail(Code::kInvalidArgument, "/save: {}: cannot be written: {}", path,
                        std::strerror(errno));
        return screen_.note("saved to " + path);
    }

    const ChatOptions& options_;
    std::unique_ptr<LoadedModel> model_;
    std::unique_ptr<ChatSession> session_;
    engine::Sampling sampling_;
    Conversation conversation_;
    AnswerPrinter screen_{AnswerPrinter::Reasoning::kMarked};
    std::vector<std::string> history_;
    std::optional<Json> template_kwargs_;
    std::string think_;
    std::int64_t tokens_ = 0;
    bool stats_ = false;
};

void add_conversation_flags(CLI::App& chat, ChatOptions& options) {
    const FlagGroup group(chat, kChatFlags);
    chat.add_option("-s,--system", options.system, "System message");
    chat.add_option("--think", options.think,
                    "Reason before answering: on, off, or auto as the model's template does")
        ->check(CLI::IsMember({"on", "off", "auto"}))
        ->capture_default_str();
    add_template_flags(chat, options.model);
}

void add_answer_flags(CLI::App& chat, ChatOptions& options) {
    const FlagGroup group(chat, kOutputFlags);
    chat.add_option("-n,--tokens", options.tokens,
                    "Most tokens of an answer; 0: what the context has room for")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    chat.add_option("--stop", options.stop, "End an answer before this text (may be repeated)")
        ->allow_extra_args(false);
    chat.add_flag("--stats", options.stats, "Tokens and speed after each answer");
}

void add_greedy_flag(CLI::App& chat, ChatOptions& options) {
    const FlagGroup group(chat, kSamplingFlags);
    chat.add_flag("--greedy", options.greedy,
                  "Always the likeliest token, not draws as generation_config.json recommends");
}

} // namespace

void add_chat(CLI::App& app, Action& action) {
    auto options = std::make_shared<ChatOptions>();
    CLI::App* chat = app.add_subcommand("chat", "Talk with a model in the terminal");
    add_conversation_flags(*chat, *options);
    add_greedy_flag(*chat, *options);
    add_sampling_flags(*chat, options->sampling, "the model's");
    add_answer_flags(*chat, *options);
    add_model_flags(*chat, options->model);
    chat->footer(
        "In the chat, /help lists commands. Enter sends, Alt-Enter begins a new line, Ctrl-C "
        "stops an answer,\nCtrl-D leaves. Lines may also come from a pipe.\n"
        "Example: liverow chat models/tiny --system \"Answer in one sentence.\"");
    chat->callback([&action, options] { action = [options] { return Chat(*options).execute(); }; });
}

} // namespace lr::cli
