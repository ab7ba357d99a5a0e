// SPDX-License-Identifier: Apache-2.0
//
// liverow run: text in, text out.
#include "cli/answer_json.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/logprob_line.h"
#include "cli/npy.h"
#include "cli/run_options.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "core/buffer.h"
#include "core/log.h"
#include "text/answer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace lr::cli {
namespace {

// A prompt, the tokens that follow it, and where they go.
class Run {
  public:
    explicit Run(const RunOptions& options) : options_(options) {}

    Status execute() {
        LR_TRY_ASSIGN(model_, LoadedModel::load(options_.model));
        LR_TRY_ASSIGN(sampling_,
                      options_.sampling.sampling(model_->opened.generation, model_->drawable()));
        LR_TRY(read_prompt());
        LR_TRY(start_engine());
        if (!options_.quiet) {
            say_device(model_->engine->report());
            log_info("sampling: {}", describe(sampling_));
        }
        if (!options_.logits.empty()) {
            LR_TRY_ASSIGN(logits_,
                          NpyWriter::create(options_.logits, model_->engine->config().vocab_size));
        }
        if (!options_.stop.empty())
            LR_TRY(model_->need_tokenizer());
        LR_TRY_ASSIGN(stop_, text::StopStrings::compile(options_.stop));
        LR_TRY_ASSIGN(const Generated generated, generate_text());
        LR_TRY(finish(generated));
        if (logits_)
            LR_TRY(logits_->finish());
        if (!options_.quiet)
            report_run(*model_, generated.prompt_tokens, generated.prefill_seconds,
                       generated.decode_steps, generated.decode_seconds);
        return {};
    }

  private:
    Status read_prompt() {
        if (options_.has_ids) {
            LR_TRY_ASSIGN(prompt_, parse_ids(options_.ids, "--ids"));
            return {};
        }
        LR_TRY(model_->need_tokenizer());
        LR_TRY_ASSIGN(const std::string text, read_text_input(options_.prompt, "prompt"));
        auto encoded = model_->tokenizer->encode(text, {.allow_special = options_.special});
        if (!encoded)
            return fail(encoded.error().code(), "{}: {}", origin_of(options_.prompt, "prompt"),
                        encoded.error().message());
        prompt_ = std::move(*encoded);
        if (prompt_.empty())
            return fail(Code::kInvalidArgument,
                        "prompt: expected at least one token, got an empty text");
        return {};
    }

    Status start_engine() {
        const std::int64_t prompt = std::ssize(prompt_);
        const std::int64_t most = model_->opened.config().max_positions;
        const std::int64_t context =
            options_.model.context > 0 ? std::min(options_.model.context, most) : most;
        if (prompt > context)
            return fail(Code::kInvalidArgument,
                        "prompt: expected at most the context of {} tokens, got {}", context,
                        prompt);
        tokens_ = std::min(options_.tokens, context - prompt);
        return model_->start(prompt + tokens_, options_.choices);
    }

    Result<Generated> generate_text() {
        texts_.resize(static_cast<std::size_t>(options_.choices));
        const text::AnswerFormat format{
            .skip_special = !options_.special, .split_reasoning = false, .stop = &stop_};
        for (std::int32_t c = 0; model_->tokenizer && c < options_.choices; ++c)
            streams_.push_back(std::make_unique<text::AnswerStream>(*model_->tokenizer, format));
        LR_TRY_ASSIGN(const engine::SequenceId sequence, model_->engine->open_sequence());
        GenerationRequest request{
            .piece = {.sequence = sequence,
                      .tokens = prompt_,
                      .logits = logits_ ? engine::Logits::kAll : engine::Logits::kLast,
                      .sampling = sampling_,
                      .choices = options_.choices,
                      .logprobs = {.top = static_cast<std::int32_t>(options_.sampling.logprobs)}},
            .most_tokens = tokens_,
            .copy_logits = logits_.has_value(),
            .show_progress = options_.json};
        if (!options_.ignore_eos)
            request.end_tokens = model_->opened.generation.eos_ids;
        if (model_->tokenizer)
            for (std::int32_t id : text::stop_token_ids(*model_->tokenizer, options_.stop))
                request.end_tokens.push_back(id);
        const GenerationReceiver receiver{
            .on_output = [this](const engine::PieceOutput& output) -> Status {
                return logits_ ? logits_->append(output.logits) : Status();
            },
            .on_token =
                [this](std::int32_t choice, std::int32_t token,
                       const engine::RowLogprobs* logprobs) {
                    return take(static_cast<std::size_t>(choice), token, logprobs);
                }};
        return generate(*model_->engine, request, receiver);
    }

    Result<bool> take(std::size_t choice, std::int32_t token, const engine::RowLogprobs* logprobs) {
        if (logprobs)
            texts_[choice].logprobs.push_back(*logprobs);
        if (streams_.empty()) {
            LR_TRY(add(choice, fmt::format("{}{}", texts_[choice].text.empty() ? "" : ",", token)));
            return true;
        }
        LR_TRY(add(choice, streams_[choice]->push(token).content));
        return !streams_[choice]->stopped();
    }

    Status add(std::size_t choice, const std::string& text) {
        texts_[choice].text += text;
        return options_.json ? Status() : print_out(for_stdout(text));
    }

    Status finish(const Generated& generated) {
        for (std::size_t c = 0; c < texts_.size(); ++c) {
            if (!streams_.empty())
                LR_TRY(add(c, streams_[c]->finish().content));
            texts_[c].tokens = generated.choices[c].tokens;
            texts_[c].finish = generated.choices[c].finish;
        }
        const text::Tokenizer* tokenizer = model_->tokenizer ? &*model_->tokenizer : nullptr;
        if (options_.json)
            return print_out(to_json_string(completion_json(options_.model.folder, texts_,
                                                            times(generated), tokenizer),
                                            1) +
                             "\n");
        LR_TRY(print_out("\n"));
        for (const engine::RowLogprobs& row : texts_[0].logprobs)
            LR_TRY(print_out(logprob_line(row, tokenizer) + "\n"));
        return {};
    }

    AnswerTimes times(const Generated& generated) const {
        return {.prompt_tokens = generated.prompt_tokens,
                .decode_steps = generated.decode_steps,
                .load_seconds = model_->load_seconds(),
                .prefill_seconds = generated.prefill_seconds,
                .decode_seconds = generated.decode_seconds};
    }

    const RunOptions& options_;
    std::unique_ptr<LoadedModel> model_;
    engine::Sampling sampling_;
    text::StopStrings stop_;
    std::optional<NpyWriter> logits_;
    std::vector<std::int32_t> prompt_;
    std::int64_t tokens_ = 0; // --tokens, as far as the context has room
    std::vector<std::unique_ptr<text::AnswerStream>> streams_; // none without a tokenizer
    std::vector<CompletedText> texts_;
};

Status check_options(const RunOptions& options) {
    if (options.choices > 1 && !options.json)
        return fail(
            Code::kInvalidArgument,
            "--choices {}: several answers would mix on the screen; expected --json with it",
            options.choices);
    if (options.choices > 1 && !options.logits.empty())
        return fail(Code::kInvalidArgument, "--logits: expected --choices 1, got {}",
                    options.choices);
    if (options.chat && (options.has_ids || !options.logits.empty()))
        return fail(Code::kInvalidArgument,
                    "--chat: the template makes the prompt; expected neither --ids nor --logits");
    if (options.chat && options.special)
        return fail(Code::kInvalidArgument,
                    "--special: the template says which control tokens a conversation has; "
                    "expected it without --chat");
    if (options.chat && options.sampling.logprobs >= 0 && !options.json)
        return fail(Code::kInvalidArgument,
                    "--logprobs: expected --json with it and --chat, where they have a place");
    const bool of_chat = !options.system.empty() || !options.messages.empty() ||
                         !options.tools.empty() || options.think != "auto" ||
                         options.merge_system || !options.model.chat_template.empty() ||
                         !options.model.template_kwargs.empty();
    if (!options.chat && of_chat)
        return fail(Code::kInvalidArgument,
                    "--system, --messages, --tools, --think, --merge-system, --chat-template and "
                    "--template-kwargs speak of a conversation; expected --chat with them");
    return {};
}

void add_prompt_flags(CLI::App& run, RunOptions& options) {
    const FlagGroup group(run, kPromptFlags);
    auto* prompt = run.add_option("-p,--prompt", options.prompt.text, "Prompt text");
    auto* file = run.add_option("-f,--file", options.prompt.file, "Read the prompt from a file")
                     ->type_name("FILE");
    auto* ids = run.add_option("--ids", options.ids, "Prompt as token ids")->type_name("1,2,3");
    prompt->excludes(file)->excludes(ids);
    file->excludes(ids);
    run.add_flag("--special", options.special,
                 "Read control tokens such as <|im_start|> in the prompt, and print them");
}

void add_chat_flags(CLI::App& run, RunOptions& options) {
    const FlagGroup group(run, kChatFlags);
    run.add_flag("--chat", options.chat,
                 "The prompt is a user's message: the model's chat template makes the prompt");
    run.add_option("-s,--system", options.system, "System message");
    run.add_option("--messages", options.messages,
                   "A JSON file with the messages before the prompt")
        ->type_name("FILE");
    run.add_option("--tools", options.tools, "A JSON file with the tools")->type_name("FILE");
    run.add_option("--think", options.think,
                   "Reason before answering: on, off, or auto as the template does")
        ->check(CLI::IsMember({"on", "off", "auto"}))
        ->capture_default_str();
    run.add_flag("--merge-system", options.merge_system,
                 "Several system messages become one at the front");
    add_template_flags(run, options.model);
}

void add_output_flags(CLI::App& run, RunOptions& options) {
    const FlagGroup group(run, kOutputFlags);
    run.add_option("-n,--tokens", options.tokens,
                   "Most tokens to generate; fewer where the context ends")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    run.add_option("--stop", options.stop, "End before this text (may be repeated)")
        ->allow_extra_args(false);
    run.add_flag("--ignore-eos", options.ignore_eos, "Go on after an end token");
    run.add_flag("--json", options.json,
                 "Print one JSON object, as the OpenAI API has it, instead of text");
    run.add_option("--choices", options.choices,
                   "So many answers to one prompt, 1..128, with draws of their own (with --json)")
        ->check(CLI::Range(1, 128))
        ->capture_default_str();
    add_logprobs_flag(run, options.sampling);
    run.add_option("--logits", options.logits,
                   "Write float32 logits [positions, vocabulary] to this .npy file")
        ->type_name("FILE");
    run.add_flag("-q,--quiet", options.quiet, "Print the text alone");
}

} // namespace

void say_device(const engine::LoadReport& load) {
    log_info("device: {}", load.device);
}

void report_run(const LoadedModel& model, std::int64_t prompt_tokens, double prefill_seconds,
                std::int64_t decode_steps, double decode_seconds) {
    const auto rate = [](std::int64_t count, double seconds) {
        return count > 0 && seconds > 0
                   ? fmt::format("{:.1f}", static_cast<double>(count) / seconds)
                   : std::string("-");
    };
    const engine::LoadReport& load = model.engine->report();
    log_info(
        "load {:.2f} s ({} weights, {} state) | prefill {} tokens, {} tok/s | decode {} steps, "
        "{} tok/s | {}, {}{}",
        model.load_seconds(), format_bytes(load.weight_bytes), format_bytes(load.state_bytes),
        prompt_tokens, rate(prompt_tokens, prefill_seconds), decode_steps,
        rate(decode_steps, decode_seconds), load.device, model.flags.engine.precision,
        load.ranks > 1 ? fmt::format(", {} ranks", load.ranks) : std::string());
}

void add_run(CLI::App& app, Action& action) {
    auto options = std::make_shared<RunOptions>();
    CLI::App* run = app.add_subcommand("run", "Generate text from a prompt");
    add_prompt_flags(*run, *options);
    add_sampling_flags(*run, options->sampling, "0");
    add_chat_flags(*run, *options);
    add_output_flags(*run, *options);
    add_model_flags(*run, options->model);
    run->footer("Without -p, -f or --ids the prompt is read from standard input.\n"
                "Examples: liverow run models/tiny -p \"Once upon a time\" -n 100 --temp 0.8\n"
                "          liverow run models/tiny --chat -p \"What is a fox?\" --json");
    run->callback([&action, options, run] {
        options->prompt.has_text = run->count("--prompt") > 0;
        options->has_ids = run->count("--ids") > 0;
        action = [options]() -> Status {
            LR_TRY(check_options(*options));
            return options->chat ? run_chat(*options) : Run(*options).execute();
        };
    });
}

} // namespace lr::cli
