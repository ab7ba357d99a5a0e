// SPDX-License-Identifier: Apache-2.0
//
// liverow score: log-likelihoods of continuations, as evaluation harnesses ask for them.
#include "cli/commands.h"
#include "cli/model_loader.h"
#include "cli/text_input.h"
#include "core/clock.h"
#include "core/log.h"
#include "text/unicode.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace lr::cli {
namespace {

struct Options {
    ModelFlags model;
    TextInput input;
    bool special = false;
};

// A context and what follows it, as one row of tokens of which the last `scored` count.
struct Item {
    std::vector<std::int32_t> tokens;
    std::int64_t scored = 0;
    double logprob = 0;
    bool greedy = true; // every scored token is the likeliest one
};

constexpr std::size_t kTogether = 16; // sequences in one step

class Score {
  public:
    explicit Score(const Options& options) : options_(options) {}

    Status execute() {
        LR_TRY_ASSIGN(model_, LoadedModel::load(options_.model));
        LR_TRY(model_->need_tokenizer());
        LR_TRY_ASSIGN(const std::string lines, read_text_input(options_.input, "requests"));
        LR_TRY(read_items(lines));
        std::int64_t longest = 1, tokens = 0;
        for (const Item& item : items_) {
            longest = std::max<std::int64_t>(longest, std::ssize(item.tokens));
            tokens += std::ssize(item.tokens);
        }
        LR_TRY(check_longest(longest));
        LR_TRY(model_->start(longest, static_cast<std::int64_t>(kTogether)));
        const double start = monotonic_seconds();
        {
            Progress progress("scoring", std::ssize(items_), "items");
            for (std::size_t first = 0; first < items_.size();) {
                const std::size_t count = pack(first);
                LR_TRY(score(std::span(items_).subspan(first, count)));
                progress.advance(static_cast<std::int64_t>(count));
                first += count;
            }
        }
        for (const Item& item : items_)
            fmt::print("{}\n", to_json_string(Json::object({{"logprob", Json(item.logprob)},
                                                            {"tokens", Json(item.scored)},
                                                            {"greedy", Json(item.greedy)}})));
        const double seconds = monotonic_seconds() - start;
        log_info("{} items, {} tokens, {:.1f} s, {:.0f} tok/s", items_.size(), tokens, seconds,
                 seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0);
        return {};
    }

  private:
    Status read_items(std::string_view lines) {
        for (const TextLine& line : lines_of(lines)) {
            LR_TRY_ASSIGN(Item item, read_item(line.text, fmt::format("line {}", line.number)));
            items_.push_back(std::move(item));
        }
        return {};
    }

    // The white space between the two belongs to the continuation, and both are tokenised as one
    // text. Without a context the model's end token stands in for one.
    Result<Item> read_item(std::string_view line, const std::string& where) const {
        LR_TRY_ASSIGN(const Json json,
                      parse_json(line, where, {.error_code = Code::kInvalidArgument}));
        const JsonCursor cursor(where, json, Code::kInvalidArgument);
        LR_TRY_ASSIGN(const std::string context, cursor.required_string("context"));
        LR_TRY_ASSIGN(const std::string continuation, cursor.required_string("continuation"));
        const std::string whole_text = context + continuation;
        Item item;
        LR_TRY_ASSIGN(item.tokens, encode(whole_text, where));
        LR_TRY_ASSIGN(std::vector<std::int32_t> before,
                      encode(std::string(text::without_trailing_space(context)), where));
        const auto& ends = model_->opened.generation.eos_ids;
        if (before.empty() && !ends.empty()) {
            before = {ends.front()};
            item.tokens.insert(item.tokens.begin(), ends.front());
        }
        item.scored = std::ssize(item.tokens) - std::ssize(before);
        if (before.empty() || item.scored < 1)
            return fail(Code::kInvalidArgument,
                        "{}: expected a context and a continuation of at least a token each, got "
                        "{} and {}",
                        where, before.size(), item.scored);
        return item;
    }

    Result<std::vector<std::int32_t>> encode(const std::string& text,
                                             const std::string& where) const {
        auto ids = model_->tokenizer->encode(text, {.allow_special = options_.special});
        if (!ids)
            return fail(ids.error().code(), "{}: {}", where, ids.error().message());
        return ids;
    }

    Status check_longest(std::int64_t longest) const {
        const std::int64_t most = model_->opened.config().max_positions;
        if (longest <= most)
            return {};
        return fail(Code::kInvalidArgument, "requests: expected at most {} tokens, got one of {}",
                    most, longest);
    }

    // Items from `first` on that fit into one step; one longer than a step stands alone.
    std::size_t pack(std::size_t first) const {
        std::size_t count = 0;
        std::int64_t rows = 0;
        while (count < kTogether && first + count < items_.size()) {
            rows += std::ssize(items_[first + count].tokens);
            if (count > 0 && rows > model_->engine->options().prefill_rows)
                break;
            ++count;
        }
        return count;
    }

    Status score(std::span<Item> items) {
        engine::Engine& engine = *model_->engine;
        std::vector<engine::SequenceId> sequences;
        std::int64_t longest = 0;
        for (const Item& item : items) {
            LR_TRY_ASSIGN(const engine::SequenceId id, engine.open_sequence());
            sequences.push_back(id);
            longest = std::max<std::int64_t>(longest, std::ssize(item.tokens));
        }
        const std::int64_t most = engine.options().prefill_rows;
        for (std::int64_t first = 0; first < longest; first += most) {
            engine::StepInput input{.phase = graph::Phase::kPrefill};
            for (std::size_t i = 0; i < items.size(); ++i)
                input.pieces.push_back(piece_of(items[i], sequences[i], first, most));
            LR_TRY_ASSIGN(const engine::Ticket ticket, engine.submit(std::move(input)));
            LR_TRY_ASSIGN(const engine::StepOutput output, engine.wait(ticket));
            for (std::size_t i = 0; i < items.size(); ++i)
                LR_TRY(take(output.pieces[i], first, items[i]));
        }
        for (engine::SequenceId id : sequences)
            LR_TRY(engine.close_sequence(id));
        return {};
    }

    // Each row foretells the token behind it.
    static engine::Piece piece_of(const Item& item, engine::SequenceId sequence, std::int64_t first,
                                  std::int64_t most) {
        const auto end = std::min<std::int64_t>(first + most, std::ssize(item.tokens));
        engine::Piece piece{.sequence = sequence,
                            .tokens = {item.tokens.begin() + first, item.tokens.begin() + end},
                            .logits = engine::Logits::kAll,
                            .logprobs = {.top = 0}};
        for (std::int64_t i = first; i < end; ++i)
            piece.logprobs.targets.push_back(i + 1 < std::ssize(item.tokens)
                                                 ? item.tokens[static_cast<std::size_t>(i + 1)]
                                                 : -1);
        return piece;
    }

    static Status take(const engine::PieceOutput& output, std::int64_t first, Item& item) {
        const auto rows = std::ssize(output.logprobs);
        const std::int64_t begin = std::ssize(item.tokens) - item.scored - 1 - first;
        const std::int64_t end = std::ssize(item.tokens) - 1 - first;
        for (std::int64_t i = std::max<std::int64_t>(begin, 0); i < std::min(end, rows); ++i) {
            const engine::RowLogprobs& row = output.logprobs[static_cast<std::size_t>(i)];
            if (row.rank == 0)
                return fail(Code::kInternal, "position {}: the logits are not finite", first + i);
            item.logprob += row.token.logprob;
            item.greedy = item.greedy && row.rank == 1;
        }
        return {};
    }

    const Options& options_;
    std::unique_ptr<LoadedModel> model_;
    std::vector<Item> items_;
};

} // namespace

void add_score(CLI::App& app, Action& action) {
    auto options = std::make_shared<Options>();
    CLI::App* command =
        app.add_subcommand("score", "Log-likelihoods of continuations, for evaluations");
    command->add_option("-f,--file", options->input.file, "Requests; else standard input")
        ->type_name("FILE");
    command->add_flag("--special", options->special, "Read control tokens in the texts");
    add_model_flags(*command, options->model);
    command->footer("Example: liverow score models/tiny -f requests.jsonl\n"
                    "Requests are lines of JSON: {\"context\": \"A fox is an\", \"continuation\": "
                    "\" animal\"}\n"
                    "Answers, in the same order: {\"logprob\": -2.25, \"tokens\": 1, \"greedy\": "
                    "false}: natural\n"
                    "logarithm of the continuation's probability, its tokens, and whether each is "
                    "the likeliest. Blank lines are skipped.");
    command->callback(
        [&action, options] { action = [options] { return Score(*options).execute(); }; });
}

} // namespace lr::cli
