// SPDX-License-Identifier: Apache-2.0
//
// liverow chat: a conversation in the terminal.
#include "cli/chat_commands.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/sampling_flags.h"
#include "cli/terminal.h"
#include "core/log.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>

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

// What an answer looks like on the screen: reasoning dimmed, then the answer.
class Screen {
  public:
    Screen() : styles_(stdout_styles()) {}

    Status show(const text::AnswerDelta& delta) {
        if (!delta.reasoning.empty()) {
            if (!reasoning_)
                put(styles_.dim);
            reasoning_ = true;
            put(delta.reasoning);
        }
        if (!delta.content.empty()) {
            end_reasoning();
            put(delta.content);
        }
        return flush();
    }

    Status end(bool interrupted) {
        end_reasoning();
        if (interrupted)
            put(fmt::format("{} [stopped]{}", styles_.dim, styles_.off));
        put("\n");
        return flush();
    }

    Status note(const std::string& text) {
        put(fmt::format("{}{}{}\n", styles_.dim, text, styles_.off));
        return flush();
    }

  private:
    void end_reasoning() {
        if (!reasoning_)
            return;
        reasoning_ = false;
        put(styles_.off);
        put("\n\n");
    }

    void put(std::string_view text) {
        failed_ = failed_ || std::fwrite(text.data(), 1, text.size(), stdout) != text.size();
    }

    Status flush() {
        if (std::fflush(stdout) == 0 && !failed_)
            return {};
        return fail(Code::kInternal, "standard output: cannot be written: {}",
                    std::strerror(errno));
    }

    Styles styles_;
    bool reasoning_ = false, failed_ = false;
};

class Chat {
  public:
    explicit Chat(const ChatOptions& options) : options_(options) {}

    Status execute() {
        LR_TRY_ASSIGN(model_, LoadedModel::load(options_.model));
        LR_TRY(model_->need_chat());
        SamplingFlags flags = options_.sampling;
        flags.sample = flags.sample || (!options_.greedy && !flags.temperature);
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

    // false: leave. What a person can get wrong is said, and the chat goes on.
    Result<bool> handle(const std::string& line) {
        const Result<ChatLine> read = read_chat_line(line);
        if (!read) {
            log_error("{}", read.error().message());
            return true;
        }
        if (!read->command) {
            conversation_.ask(read->text);
            sampling_.stream = 0;
            LR_TRY(answer());
            return true;
        }
        if (*read->command == ChatCommand::kExit)
            return false;
        const Status status = carry_out(*read->command, read->text);
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
            return {};
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
            conversation_.undo(); // the template or the context refused it
            log_error("{}", result.error().message());
            return {};
        }
        const ChatAnswer& answer = result->choices[0];
        LR_TRY(screen_.end(answer.finish == Finish::kInterrupted));
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
        return answer();
    }

    Status set(const std::string& argument) {
        const std::size_t space = argument.find(' ');
        const std::string name = argument.substr(0, space);
        const std::string text = space == std::string::npos ? "" : argument.substr(space + 1);
        double value = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem != std::errc() || end != text.data() + text.size())
            return fail(Code::kInvalidArgument, "/set: expected NAME and a number, got \"{}\"",
                        argument);
        engine::Sampling changed = sampling_;
        std::int64_t tokens = tokens_;
        if (name == "temp")
            changed.temperature = static_cast<float>(value);
        else if (name == "top-k")
            changed.top_k = static_cast<std::int32_t>(std::clamp(value, -1.0, 1e9));
        else if (name == "top-p")
            changed.top_p = static_cast<float>(value);
        else if (name == "min-p")
            changed.min_p = static_cast<float>(value);
        else if (name == "seed")
            changed.seed = static_cast<std::uint64_t>(std::clamp(value, 0.0, 1e15));
        else if (name == "tokens")
            tokens = static_cast<std::int64_t>(std::clamp(value, 0.0, 1e9));
        else
            return fail(Code::kInvalidArgument,
                        "/set: expected temp, top-k, top-p, min-p, seed or tokens, got \"{}\"",
                        name);
        LR_TRY(engine::check(changed, model_->drawable()));
        sampling_ = changed;
        tokens_ = tokens;
        return screen_.note(describe(sampling_));
    }

    Status save(const std::string& path) const {
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file << to_json_string(conversation_.messages(), 2) << '\n';
        file.close();
        if (!file)
            return fail(Code::kInvalidArgument, "/save: {}: cannot be written: {}", path,
                        std::strerror(errno));
        return {};
    }

    const ChatOptions& options_;
    std::unique_ptr<LoadedModel> model_;
    std::unique_ptr<ChatSession> session_;
    engine::Sampling sampling_;
    Conversation conversation_;
    Screen screen_;
    std::vector<std::string> history_;
    std::string think_;
    std::int64_t tokens_ = 0;
    bool stats_ = false;
};

} // namespace

void add_chat(CLI::App& app, Action& action) {
    auto options = std::make_shared<ChatOptions>();
    CLI::App* chat = app.add_subcommand("chat", "Talk with a model in the terminal");
    add_model_flags(*chat, options->model);
    chat->add_option("-s,--system", options->system, "System message");
    chat->add_option("--think", options->think,
                     "Reason before answering: on, off, or auto as the model's template does")
        ->check(CLI::IsMember({"on", "off", "auto"}))
        ->capture_default_str();
    chat->add_option("-n,--tokens", options->tokens,
                     "Most tokens of an answer; 0: what the context has room for")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    chat->add_option("--stop", options->stop, "End an answer before this text (may be repeated)");
    chat->add_flag("--stats", options->stats, "Tokens and speed after each answer");
    chat->add_flag("--greedy", options->greedy,
                   "Always the likeliest token, not draws as generation_config.json recommends");
    add_sampling_flags(*chat, options->sampling);
    chat->footer(
        "In the chat, /help lists commands. Enter sends, Alt-Enter begins a new line, Ctrl-C "
        "stops an answer,\nCtrl-D leaves. Lines may also come from a pipe.\n"
        "Example: liverow chat models/tiny --system \"Answer in one sentence.\"");
    chat->callback([&action, options] { action = [options] { return Chat(*options).execute(); }; });
}

} // namespace lr::cli
