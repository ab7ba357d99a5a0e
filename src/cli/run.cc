// SPDX-License-Identifier: Apache-2.0
//
// liverow run: text in, text out.
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/logprob_line.h"
#include "cli/npy.h"
#include "cli/sampling_flags.h"
#include "cli/text_input.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/log.h"
#include "cuda/device.h"
#include "engine/engine.h"
#include "model/open.h"
#include "text/detokenizer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace lr::cli {
namespace {

struct RunOptions {
    std::string model, ids, logits;
    TextInput prompt;
    std::int64_t tokens = 128, context = 0;
    EngineFlags engine;
    SamplingFlags sampling;
    bool special = false, ignore_eos = false, quiet = false;
    bool has_ids = false;
};

// The CPU runs everything today; say once why a GPU that may be there is not used.
void say_device(bool quiet) {
    if (quiet)
        return;
    const auto devices = cuda::list_devices();
    if (!devices)
        log_info("device: CPU ({})", devices.error().message());
    else
        log_info("device: CPU (this version runs no model on the GPU yet)");
}

// One run: prompt, generated tokens, and where they go.
class Run {
  public:
    explicit Run(const RunOptions& options) : options_(options) {}

    Status execute() {
        LR_TRY(load());
        LR_TRY(read_prompt());
        LR_TRY(start_engine());
        say_device(options_.quiet);
        if (!options_.quiet)
            log_info("sampling: {}", describe(sampling_));
        if (!options_.logits.empty()) {
            LR_TRY_ASSIGN(auto writer,
                          NpyWriter::create(options_.logits, engine_->config().vocab_size));
            logits_.emplace(std::move(writer));
        }
        LR_TRY_ASSIGN(sequence_, engine_->open_sequence());
        LR_TRY(prefill());
        LR_TRY(decode());
        if (logits_)
            LR_TRY(logits_->finish());
        report();
        return output_error_;
    }

  private:
    Status load() {
        start_ = monotonic_seconds();
        LR_TRY_ASSIGN(opened_, model::open_model(options_.model));
        for (const std::string& text : opened_.resolved.disagreements)
            log_warning("{}", text);
        std::error_code ignored;
        if (std::filesystem::exists(options_.model + "/tokenizer.json", ignored)) {
            LR_TRY_ASSIGN(auto tokenizer, text::Tokenizer::load(options_.model));
            tokenizer_.emplace(std::move(tokenizer));
        }
        const std::int64_t vocabulary = opened_.config().vocab_size;
        LR_TRY_ASSIGN(sampling_,
                      options_.sampling.sampling(
                          opened_.generation,
                          tokenizer_ ? std::min<std::int64_t>(tokenizer_->vocab_size(), vocabulary)
                                     : vocabulary));
        return {};
    }

    Status read_prompt() {
        if (options_.has_ids) {
            LR_TRY_ASSIGN(prompt_, parse_ids(options_.ids, "--ids"));
            return {};
        }
        if (!tokenizer_)
            return fail(Code::kNotFound,
                        "{}/tokenizer.json: not found; give the prompt as token ids with --ids",
                        options_.model);
        LR_TRY_ASSIGN(const std::string text, read_text_input(options_.prompt, "prompt"));
        LR_TRY_ASSIGN(prompt_, tokenizer_->encode(text, {.allow_special = options_.special}));
        if (prompt_.empty())
            return fail(Code::kInvalidArgument,
                        "prompt: expected at least one token, got an empty text");
        return {};
    }

    Status start_engine() {
        const auto needed = std::ssize(prompt_) + options_.tokens;
        const std::int64_t context = options_.context > 0 ? options_.context : needed;
        if (needed > context || needed > opened_.config().max_positions)
            return fail(Code::kInvalidArgument,
                        "prompt of {} tokens + {} to generate = {}: more than the context of {}",
                        prompt_.size(), options_.tokens, needed,
                        std::min(context, opened_.config().max_positions));
        engine::EngineOptions engine_options = options_.engine.options();
        engine_options.context = context;
        engine_options.vocab_limit = tokenizer_ ? tokenizer_->vocab_size() : 0;
        LR_TRY_ASSIGN(engine_, engine::Engine::load(opened_, engine_options));
        load_seconds_ = monotonic_seconds() - start_;
        return {};
    }

    engine::Piece piece() const {
        return {.sequence = sequence_,
                .tokens = {},
                .sampling = sampling_,
                .logprobs = {.top = static_cast<std::int32_t>(options_.sampling.logprobs)}};
    }

    Status prefill() {
        const double start = monotonic_seconds();
        const std::int64_t most = engine_->options().prefill_rows;
        Progress progress("prompt", std::ssize(prompt_), "tokens");
        for (std::int64_t first = 0; first < std::ssize(prompt_); first += most) {
            const auto end = std::min<std::int64_t>(first + most, std::ssize(prompt_));
            engine::StepInput input{.phase = graph::Phase::kPrefill,
                                    .copy_logits = logits_.has_value()};
            input.pieces.push_back(piece());
            input.pieces[0].tokens.assign(prompt_.begin() + first, prompt_.begin() + end);
            if (logits_)
                input.pieces[0].logits = engine::Logits::kAll;
            LR_TRY_ASSIGN(const engine::Ticket ticket, engine_->submit(std::move(input)));
            LR_TRY_ASSIGN(const engine::StepOutput output, engine_->wait(ticket));
            LR_TRY(take(output, end == std::ssize(prompt_)));
            progress.advance(end - first);
        }
        prefill_seconds_ = monotonic_seconds() - start;
        return {};
    }

    // One step ahead: the next step is under way while this token is printed.
    Status decode() {
        const double start = monotonic_seconds();
        std::optional<engine::Ticket> ahead;
        while (!done()) {
            // The last token needs no step of its own.
            const std::int64_t more = options_.tokens - generated_;
            std::optional<engine::Ticket> next;
            if (more > (ahead ? 1 : 0)) {
                engine::StepInput input{.phase = graph::Phase::kDecode,
                                        .copy_logits = logits_.has_value()};
                input.pieces.push_back(piece());
                LR_TRY_ASSIGN(next, engine_->submit(std::move(input)));
            }
            if (ahead) {
                LR_TRY_ASSIGN(const engine::StepOutput output, engine_->wait(*ahead));
                LR_TRY(take(output, true));
                ++decode_steps_;
            }
            ahead = next;
            if (!ahead)
                break;
        }
        print(detokenizer_flush());
        print("\n");
        for (const engine::RowLogprobs& row : logprobs_)
            print(logprob_line(row, tokenizer_ ? &*tokenizer_ : nullptr) + "\n");
        decode_seconds_ = monotonic_seconds() - start;
        return {};
    }

    bool done() const { return ended_ || generated_ >= options_.tokens || !output_error_.ok(); }

    Status take(const engine::StepOutput& output, bool drawn) {
        const engine::PieceOutput& piece = output.pieces.front();
        if (!piece.finite)
            return fail(Code::kInternal,
                        "the model's logits are not finite after {} tokens; the weights or the "
                        "prompt produce NaN or infinity",
                        prompt_.size() + static_cast<std::size_t>(generated_));
        if (logits_)
            LR_TRY(logits_->append(piece.logits));
        if (drawn && !done())
            emit(piece);
        return {};
    }

    void emit(const engine::PieceOutput& piece) {
        const std::int32_t token = piece.tokens.back();
        ++generated_;
        if (!piece.logprobs.empty())
            logprobs_.push_back(piece.logprobs.back());
        const auto& eos = opened_.generation.eos_ids;
        if (!options_.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end()) {
            ended_ = true;
            return;
        }
        if (!tokenizer_) {
            print(fmt::format("{}{}", generated_ > 1 ? "," : "", token));
            return;
        }
        if (!detokenizer_)
            detokenizer_.emplace(*tokenizer_, !options_.special);
        print(detokenizer_->push(token));
    }

    std::string detokenizer_flush() { return detokenizer_ ? detokenizer_->flush() : std::string(); }

    void print(const std::string& text) {
        const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                             std::fflush(stdout) == 0;
        if (!written && output_error_.ok())
            output_error_ = fail(Code::kInternal, "standard output: cannot be written: {}",
                                 std::strerror(errno));
    }

    void report() const {
        if (options_.quiet)
            return;
        const auto rate = [](std::int64_t count, double seconds) {
            return count > 0 && seconds > 0
                       ? fmt::format("{:.1f}", static_cast<double>(count) / seconds)
                       : std::string("-");
        };
        const engine::LoadReport& load = engine_->report();
        log_info(
            "load {:.2f} s ({} weights, {} state) | prefill {} tokens, {} tok/s | decode {} steps, "
            "{} tok/s | CPU reference, {}, {} threads{}",
            load_seconds_, format_bytes(load.weight_bytes), format_bytes(load.state_bytes),
            prompt_.size(), rate(std::ssize(prompt_), prefill_seconds_), decode_steps_,
            rate(decode_steps_, decode_seconds_), options_.engine.precision, load.threads,
            load.ranks > 1 ? fmt::format(", {} ranks", load.ranks) : std::string());
    }

    const RunOptions& options_;
    model::OpenModel opened_;
    std::optional<text::Tokenizer> tokenizer_;
    std::optional<text::Detokenizer> detokenizer_;
    std::unique_ptr<engine::Engine> engine_;
    std::optional<NpyWriter> logits_;
    engine::Sampling sampling_;
    std::vector<engine::RowLogprobs> logprobs_; // of the generated tokens
    engine::SequenceId sequence_;
    std::vector<std::int32_t> prompt_;
    std::int64_t generated_ = 0;
    std::int64_t decode_steps_ = 0; // the first token came with the prompt
    bool ended_ = false;
    Status output_error_;
    double start_ = 0, load_seconds_ = 0, prefill_seconds_ = 0, decode_seconds_ = 0;
};

} // namespace

void add_run(CLI::App& app, Action& action) {
    auto options = std::make_shared<RunOptions>();
    CLI::App* run = app.add_subcommand("run", "Generate text from a prompt");
    run->add_option("MODEL", options->model, "Model folder: config.json, *.safetensors, tokenizer")
        ->required();
    auto* prompt = run->add_option("-p,--prompt", options->prompt.text, "Prompt text");
    auto* file = run->add_option("-f,--file", options->prompt.file, "Read the prompt from a file");
    auto* ids = run->add_option("--ids", options->ids, "Prompt as token ids: 1,2,3");
    prompt->excludes(file)->excludes(ids);
    file->excludes(ids);
    run->add_option("-n,--tokens", options->tokens, "Most tokens to generate")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    add_sampling_flags(*run, options->sampling);
    run->add_option("--context", options->context,
                    "Tokens to make room for; 0: what prompt and -n need")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    run->add_option("--logits", options->logits,
                    "Write float32 logits [positions, vocabulary] to this .npy file");
    add_engine_flags(*run, options->engine);
    run->add_flag("--special", options->special,
                  "Read control tokens such as <|im_start|> in the prompt, and print them");
    run->add_flag("--ignore-eos", options->ignore_eos, "Go on after an end token");
    run->add_flag("-q,--quiet", options->quiet, "Print the text alone");
    run->footer("Without -p, -f or --ids the prompt is read from standard input.\n"
                "Example: liverow run models/tiny -p \"Once upon a time\" -n 100 --temp 0.8");
    run->callback([&action, options, prompt, ids] {
        options->prompt.has_text = prompt->count() > 0;
        options->has_ids = ids->count() > 0;
        action = [options] { return Run(*options).execute(); };
    });
}

} // namespace lr::cli
