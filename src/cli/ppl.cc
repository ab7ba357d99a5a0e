// SPDX-License-Identifier: Apache-2.0
//
// liverow ppl: perplexity of a text under a model.
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/text_input.h"
#include "core/clock.h"
#include "core/log.h"
#include "engine/engine.h"
#include "model/open.h"
#include "text/tokenizer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace lr::cli {
namespace {

struct Options {
    std::string model;
    TextInput input;
    std::int64_t window = 512;
    EngineFlags engine;
    bool special = false;
};

class Perplexity {
  public:
    explicit Perplexity(const Options& options) : options_(options) {}

    Status execute() {
        LR_TRY_ASSIGN(opened_, model::open_model(options_.model));
        LR_TRY_ASSIGN(const text::Tokenizer tokenizer, text::Tokenizer::load(options_.model));
        const std::string file = origin_of(options_.input, "text");
        LR_TRY_ASSIGN(const std::string text, read_text_input(options_.input, "text"));
        const auto encoded = tokenizer.encode(text, {.allow_special = options_.special});
        if (!encoded)
            return fail(encoded.error().code(), "{}: {}", file, encoded.error().message());
        ids_ = *encoded;
        if (ids_.size() < 2)
            return fail(Code::kInvalidArgument,
                        "{}: expected at least two tokens, got {}; nothing can be scored", file,
                        ids_.size());
        engine::EngineOptions engine_options = options_.engine.options();
        engine_options.context = std::min<std::int64_t>(options_.window, std::ssize(ids_));
        LR_TRY_ASSIGN(engine_, engine::Engine::load(opened_, engine_options));
        return score(tokenizer);
    }

  private:
    Status score(const text::Tokenizer& tokenizer) {
        const double start = monotonic_seconds();
        {
            Progress progress("scoring", std::ssize(ids_), "tokens");
            for (std::int64_t first = 0; first < std::ssize(ids_); first += options_.window) {
                const auto end = std::min<std::int64_t>(first + options_.window, std::ssize(ids_));
                LR_TRY(score_window(std::span(ids_).subspan(
                    static_cast<std::size_t>(first), static_cast<std::size_t>(end - first))));
                progress.advance(end - first);
            }
        }
        const double seconds = monotonic_seconds() - start;
        const double mean = sum_ / static_cast<double>(scored_);
        fmt::print("perplexity  {:.6f}\n", std::exp(mean));
        fmt::print("nll         {:.9f} a token, {} tokens scored of {}, windows of {}\n", mean,
                   scored_, ids_.size(), options_.window);
        const std::int64_t bytes = scored_bytes(tokenizer);
        fmt::print("bits        {:.6f} a byte of the {} scored\n",
                   sum_ / std::log(2.0) / static_cast<double>(bytes), bytes);
        log_info("{:.1f} s, {:.0f} tok/s, {}, {} threads", seconds,
                 static_cast<double>(ids_.size()) / seconds, options_.engine.precision,
                 engine_->report().threads);
        return {};
    }

    std::int64_t scored_bytes(const text::Tokenizer& tokenizer) const {
        std::int64_t bytes = 0;
        for (std::size_t i = 0; i < ids_.size(); ++i)
            if (i % static_cast<std::size_t>(options_.window) != 0)
                bytes += std::ssize(tokenizer.token_bytes(ids_[i]));
        return bytes;
    }

    // A window starts from an empty state; its first token is not scored.
    Status score_window(std::span<const std::int32_t> window) {
        LR_TRY_ASSIGN(const engine::SequenceId sequence, engine_->open_sequence());
        const std::int64_t most = engine_->options().prefill_rows;
        for (std::int64_t first = 0; first < std::ssize(window); first += most) {
            const auto end = std::min<std::int64_t>(first + most, std::ssize(window));
            engine::StepInput input{.phase = graph::Phase::kPrefill};
            input.pieces.push_back({.sequence = sequence,
                                    .tokens = {window.begin() + first, window.begin() + end},
                                    .logits = engine::Logits::kAll,
                                    .logprobs = {.top = 0}});
            // Each row is to foretell the token after it; behind the window's last there is none.
            auto& targets = input.pieces.front().logprobs.targets;
            targets.assign(window.begin() + first + 1,
                           window.begin() + std::min(end + 1, std::ssize(window)));
            const std::size_t scored = targets.size();
            targets.resize(static_cast<std::size_t>(end - first), -1);
            LR_TRY_ASSIGN(const engine::Ticket ticket, engine_->submit(std::move(input)));
            LR_TRY_ASSIGN(const engine::StepOutput output, engine_->wait(ticket));
            for (std::size_t i = 0; i < scored; ++i) {
                const engine::RowLogprobs& row = output.pieces.front().logprobs[i];
                if (row.rank == 0)
                    return fail(Code::kInternal, "position {}: the logits are not finite",
                                first + static_cast<std::int64_t>(i));
                sum_ -= row.token.logprob;
                ++scored_;
            }
        }
        return engine_->close_sequence(sequence);
    }

    const Options& options_;
    model::OpenModel opened_;
    std::unique_ptr<engine::Engine> engine_;
    std::vector<std::int32_t> ids_;
    double sum_ = 0;
    std::int64_t scored_ = 0;
};

} // namespace

void add_ppl(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("ppl", "Perplexity of a text file");
    command->add_option("MODEL", options->model, "Model folder")->required();
    command->add_option("FILE", options->input.file, "Text, UTF-8; else standard input");
    command
        ->add_option("--window", options->window,
                     "Tokens a window; each starts from an empty state")
        ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 31))
        ->capture_default_str();
    command->add_flag("--special", options->special, "Read control tokens in the text");
    add_engine_flags(*command, options->engine);
    command->footer("Examples: liverow ppl models/tiny README.md --window 256\n"
                    "          head -c 4000 README.md | liverow ppl models/tiny");
    command->callback(
        [&action, options] { action = [options] { return Perplexity(*options).execute(); }; });
}

} // namespace lr::cli
