// SPDX-License-Identifier: Apache-2.0
#include "cli/generation.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"

#include <algorithm>
#include <optional>

namespace lr::cli {
namespace {

class Generation {
  public:
    Generation(engine::Engine& engine, const GenerationRequest& request,
               const GenerationReceiver& receiver)
        : engine_(engine), request_(request), receiver_(receiver) {}

    Result<Generated> run() {
        const double start = monotonic_seconds();
        LR_TRY(prefill());
        const double prompt_end = monotonic_seconds();
        LR_TRY(decode());
        result_.prefill_seconds = prompt_end - start;
        result_.decode_seconds = monotonic_seconds() - prompt_end;
        return std::move(result_);
    }

    // After a failure: the sequences that were opened here.
    void close_forks() {
        for (const GeneratedChoice& choice : result_.choices)
            if (choice.sequence.index != request_.piece.sequence.index)
                static_cast<void>(engine_.close_sequence(choice.sequence));
    }

  private:
    // A choice while it runs.
    struct Running {
        std::int64_t asked = 0; // tokens drawn or under way
        bool ended = false;
    };
    // A decode step under way and whose rows it has.
    struct Ahead {
        engine::Ticket ticket;
        std::vector<std::size_t> choices;
    };

    std::size_t count() const { return result_.choices.size(); }

    bool interrupted() const { return request_.interrupted != nullptr && request_.interrupted(); }

    Status prefill() {
        const std::vector<std::int32_t>& prompt = request_.piece.tokens;
        result_.prompt_tokens = std::ssize(prompt);
        const std::int64_t most = engine_.options().prefill_rows;
        Progress progress("prompt", std::ssize(prompt), "tokens");
        for (std::int64_t first = 0; first < std::ssize(prompt); first += most) {
            const auto end = std::min<std::int64_t>(first + most, std::ssize(prompt));
            const bool last = end == std::ssize(prompt);
            if (interrupted())
                return give_up();
            engine::StepInput input{.phase = graph::Phase::kPrefill,
                                    .copy_logits = request_.copy_logits};
            input.pieces.push_back(prompt_piece(first, end, last));
            LR_TRY_ASSIGN(const engine::Ticket ticket, engine_.submit(std::move(input)));
            LR_TRY_ASSIGN(const engine::StepOutput output, engine_.wait(ticket));
            LR_TRY(check_output(output.pieces[0]));
            if (last)
                LR_TRY(start_choices(output.pieces[0]));
            progress.advance(end - first);
        }
        return {};
    }

    engine::Piece prompt_piece(std::int64_t first, std::int64_t end, bool last) const {
        engine::Piece piece = request_.piece;
        const auto begin = request_.piece.tokens.begin();
        piece.tokens.assign(begin + first, begin + end);
        if (!last) {
            piece.choices = 1;
            piece.logprobs = {};
            if (piece.logits == engine::Logits::kLast)
                piece.logits = engine::Logits::kNone;
        }
        return piece;
    }

    // Ctrl-C before the first token.
    Status give_up() {
        result_.choices.push_back(
            {.sequence = request_.piece.sequence, .finish = Finish::kInterrupted});
        running_.push_back({.ended = true});
        return {};
    }

    // The prompt's last row has drawn the first token of every choice.
    Status start_choices(const engine::PieceOutput& output) {
        const auto choices = static_cast<std::size_t>(request_.piece.choices);
        const std::size_t first = output.tokens.size() - choices;
        running_.resize(choices);
        for (std::size_t c = 0; c < choices; ++c)
            result_.choices.push_back({.sequence = request_.piece.sequence});
        if (request_.most_tokens == 0)
            return {};
        for (std::size_t c = 0; c < choices; ++c) {
            running_[c].asked = 1;
            LR_TRY(take(c, output, first + c));
        }
        // Whoever goes on needs a state of its own.
        for (std::size_t c = 1; c < choices; ++c) {
            if (running_[c].ended)
                continue;
            LR_TRY_ASSIGN(result_.choices[c].sequence,
                          engine_.fork_sequence(request_.piece.sequence));
        }
        return {};
    }

    Status decode() {
        std::optional<Ahead> ahead;
        std::optional<Progress> progress;
        if (request_.show_progress)
            progress.emplace("answer", request_.most_tokens * std::ssize(running_), "tokens");
        if (progress)
            progress->advance(drawn());
        while (true) {
            std::optional<Ahead> next;
            LR_TRY_ASSIGN(next, submit_next());
            const std::int64_t before = drawn();
            if (ahead)
                LR_TRY(take_step(*ahead));
            if (progress)
                progress->advance(drawn() - before);
            if (!next)
                return {};
            ahead = std::move(next);
        }
    }

    // Tokens of all choices so far.
    std::int64_t drawn() const {
        std::int64_t count = 0;
        for (const GeneratedChoice& choice : result_.choices)
            count += std::ssize(choice.tokens);
        return count;
    }

    // One more token for every choice that may need one.
    Result<std::optional<Ahead>> submit_next() {
        Ahead step;
        engine::StepInput input{.phase = graph::Phase::kDecode,
                                .copy_logits = request_.copy_logits};
        for (std::size_t c = 0; c < count(); ++c) {
            Running& running = running_[c];
            if (interrupted() && !running.ended)
                end(c, Finish::kInterrupted);
            if (running.ended || running.asked >= request_.most_tokens)
                continue;
            input.pieces.push_back(next_piece(c));
            step.choices.push_back(c);
            ++running.asked;
        }
        if (step.choices.empty())
            return std::optional<Ahead>();
        LR_TRY_ASSIGN(step.ticket, engine_.submit(std::move(input)));
        ++result_.decode_steps;
        return std::optional<Ahead>(std::move(step));
    }

    engine::Piece next_piece(std::size_t c) const {
        engine::Piece piece = request_.piece;
        piece.sequence = result_.choices[c].sequence;
        piece.tokens.clear();
        piece.logits = engine::Logits::kLast;
        piece.choices = 1;
        piece.logprobs.targets.clear();
        piece.sampling.stream += static_cast<std::int32_t>(c);
        // A fork stands where choice 0 does: its own first token is handed to it.
        if (c > 0 && running_[c].asked == 1)
            piece.tokens = {result_.choices[c].tokens.front()};
        return piece;
    }

    Status take_step(const Ahead& step) {
        LR_TRY_ASSIGN(const engine::StepOutput output, engine_.wait(step.ticket));
        for (std::size_t i = 0; i < step.choices.size(); ++i) {
            const std::size_t c = step.choices[i];
            if (running_[c].ended)
                continue; // it ended while this step was under way
            LR_TRY(check_output(output.pieces[i]));
            LR_TRY(take(c, output.pieces[i], output.pieces[i].tokens.size() - 1));
        }
        return {};
    }

    Status check_output(const engine::PieceOutput& output) {
        if (!output.finite)
            return fail(Code::kInternal,
                        "the model's logits are not finite after {} tokens; the weights or the "
                        "prompt produce NaN or infinity",
                        result_.prompt_tokens +
                            (count() ? std::ssize(result_.choices[0].tokens) : 0));
        return receiver_.on_output ? receiver_.on_output(output) : Status();
    }

    // Token `row` of the output is the next of choice c.
    Status take(std::size_t c, const engine::PieceOutput& output, std::size_t row) {
        const std::int32_t token = output.tokens[row];
        std::vector<std::int32_t>& tokens = result_.choices[c].tokens;
        tokens.push_back(token);
        const auto& ends = request_.end_tokens;
        if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
            end(c, Finish::kEnd);
            return {};
        }
        const engine::RowLogprobs* logprobs =
            output.logprobs.empty() ? nullptr : &output.logprobs[row];
        LR_TRY_ASSIGN(const bool more,
                      receiver_.on_token(static_cast<std::int32_t>(c), token, logprobs));
        if (!more)
            end(c, Finish::kStopped);
        else if (std::ssize(tokens) >= request_.most_tokens)
            end(c, Finish::kLength);
        return {};
    }

    void end(std::size_t c, Finish finish) {
        running_[c].ended = true;
        result_.choices[c].finish = finish;
    }

    engine::Engine& engine_;
    const GenerationRequest& request_;
    const GenerationReceiver& receiver_;
    std::vector<Running> running_;
    Generated result_;
};

} // namespace

std::string_view finish_name(Finish finish) {
    switch (finish) {
    case Finish::kEnd:
    case Finish::kStopped:
        return "stop";
    case Finish::kLength:
        return "length";
    case Finish::kInterrupted:
        return "interrupted";
    }
    return "stop";
}

Result<bool> append_tokens(engine::Engine& engine, engine::SequenceId sequence,
                           std::span<const std::int32_t> tokens, bool (*interrupted)()) {
    const auto most = static_cast<std::size_t>(engine.options().prefill_rows);
    Progress progress("prompt", std::ssize(tokens), "tokens");
    while (!tokens.empty()) {
        if (interrupted != nullptr && interrupted())
            return false;
        const auto part = tokens.first(std::min(most, tokens.size()));
        engine::StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back({.sequence = sequence,
                                .tokens = {part.begin(), part.end()},
                                .logits = engine::Logits::kNone});
        LR_TRY_ASSIGN(const engine::Ticket ticket, engine.submit(std::move(input)));
        LR_TRY_ASSIGN(const engine::StepOutput output, engine.wait(ticket));
        progress.advance(std::ssize(part));
        tokens = tokens.subspan(part.size());
    }
    return true;
}

Result<Generated> generate(engine::Engine& engine, const GenerationRequest& request,
                           const GenerationReceiver& receiver) {
    LR_CHECK(!request.piece.tokens.empty());
    Generation generation(engine, request, receiver);
    Result<Generated> generated = generation.run();
    if (!generated)
        generation.close_forks();
    return generated;
}

} // namespace lr::cli
