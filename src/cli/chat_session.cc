// SPDX-License-Identifier: Apache-2.0
#include "cli/chat_session.h"

#include "core/clock.h"

#include <algorithm>

namespace lr::cli {
namespace {

// The streams of one request's choices, and what they add up to.
class Answers {
  public:
    Answers(const text::Tokenizer& tokenizer, const text::AnswerFormat& format, std::int32_t count,
            const ChatSession::Show& show)
        : show_(show), answers_(static_cast<std::size_t>(count)) {
        for (std::int32_t c = 0; c < count; ++c)
            streams_.push_back(std::make_unique<text::AnswerStream>(tokenizer, format));
    }

    // false: a stop string ends this choice.
    Result<bool> take(std::int32_t choice, std::int32_t token,
                      const engine::RowLogprobs* logprobs) {
        const auto c = static_cast<std::size_t>(choice);
        if (logprobs)
            answers_[c].logprobs.push_back(*logprobs);
        LR_TRY(add(c, streams_[c]->push(token)));
        return !streams_[c]->stopped();
    }

    Result<std::vector<ChatAnswer>> finish(const Generated& generated) {
        for (std::size_t c = 0; c < answers_.size(); ++c) {
            LR_TRY(add(c, streams_[c]->finish()));
            answers_[c].finish = generated.choices[c].finish;
            answers_[c].tokens = generated.choices[c].tokens;
        }
        return std::move(answers_);
    }

  private:
    Status add(std::size_t c, const text::AnswerDelta& delta) {
        answers_[c].reasoning += delta.reasoning;
        answers_[c].answer.text += delta.content;
        answers_[c].answer.add(delta.calls);
        return show_ ? show_(static_cast<std::int32_t>(c), delta) : Status();
    }

    const ChatSession::Show& show_;
    std::vector<std::unique_ptr<text::AnswerStream>> streams_;
    std::vector<ChatAnswer> answers_;
};

// The prompt of a request's messages.
struct Prompt {
    std::vector<std::int32_t> tokens;
    std::size_t common = 0;    // so many begin every longer prompt of the conversation
    bool in_reasoning = false; // it leaves <think> open
};

Result<std::vector<std::int32_t>> render(const LoadedModel& model, const ChatRequest& request,
                                         bool invite, bool& in_reasoning) {
    LR_TRY_ASSIGN(
        const text::MarkedText rendered,
        model.chat->render({.messages = &request.messages,
                            .tools = request.tools ? &*request.tools : nullptr,
                            .add_generation_prompt = invite,
                            .enable_thinking = request.thinking,
                            .kwargs = request.template_kwargs ? &*request.template_kwargs : nullptr,
                            .late_system = request.late_system}));
    in_reasoning = text::leaves_open(rendered);
    return model.tokenizer->encode(rendered, {.allow_special = true});
}

Result<Prompt> make_prompt(const LoadedModel& model, const ChatRequest& request) {
    Prompt prompt;
    LR_TRY_ASSIGN(prompt.tokens, render(model, request, true, prompt.in_reasoning));
    if (prompt.tokens.empty())
        return fail(Code::kInvalidArgument,
                    "chat template: expected a prompt of at least one token, got an empty one from "
                    "these messages");
    bool ignored = false;
    const auto common = render(model, request, false, ignored);
    // A template that cannot do without the invitation costs time only.
    const bool begins = common && common->size() < prompt.tokens.size() &&
                        std::equal(common->begin(), common->end(), prompt.tokens.begin());
    prompt.common = begins ? common->size() : 0;
    return prompt;
}

// Closes the sequences of an answer.
class Closer {
  public:
    Closer(engine::Engine& engine, engine::SequenceId sequence)
        : engine_(engine), sequences_{sequence} {}
    ~Closer() {
        for (engine::SequenceId sequence : sequences_)
            static_cast<void>(engine_.close_sequence(sequence)); // open, so it closes
    }
    Closer(const Closer&) = delete;
    Closer& operator=(const Closer&) = delete;

    void add(const Generated& generated) {
        for (const GeneratedChoice& choice : generated.choices)
            if (choice.sequence.index != sequences_.front().index)
                sequences_.push_back(choice.sequence);
    }

  private:
    engine::Engine& engine_;
    std::vector<engine::SequenceId> sequences_;
};

} // namespace

ChatSession::~ChatSession() {
    forget();
}

Result<std::int64_t> ChatSession::prompt_tokens(const LoadedModel& model,
                                                const ChatRequest& request) {
    LR_TRY_ASSIGN(const Prompt prompt, make_prompt(model, request));
    return std::ssize(prompt.tokens);
}

Result<ChatResult> ChatSession::answer(const ChatRequest& request, const Show& show) {
    const double start = monotonic_seconds();
    LR_TRY_ASSIGN(Prompt prompt, make_prompt(model_, request));
    if (reuse_ == Reuse::kNone)
        prompt.common = 0;
    const std::int64_t room = engine_.options().context - std::ssize(prompt.tokens);
    if (room < std::min<std::int64_t>(1, request.most_tokens < 0 ? 1 : request.most_tokens))
        return fail(
            Code::kInvalidArgument,
            "conversation: {} tokens, and the context has room for {} with an answer; start "
            "anew or give a larger --context",
            prompt.tokens.size(), engine_.options().context);
    text::ToolSet tools;
    if (request.tools) {
        LR_TRY_ASSIGN(tools, text::ToolSet::from_json(
                                 JsonCursor("tools", *request.tools, Code::kInvalidArgument)));
    }
    LR_TRY_ASSIGN(const text::StopStrings stop, text::StopStrings::compile(request.stop));
    const text::AnswerFormat format{.in_reasoning = prompt.in_reasoning,
                                    .stop = &stop,
                                    .tools = request.tools ? &tools : nullptr};
    Answers answers(*model_.tokenizer, format, request.choices, show);

    ChatResult result;
    result.prompt_tokens = std::ssize(prompt.tokens);
    const std::span<const std::int32_t> tokens = prompt.tokens;
    LR_TRY_ASSIGN(result.cached_tokens, keep(tokens.first(prompt.common), request.interrupted));
    LR_TRY_ASSIGN(const engine::SequenceId sequence, engine_.fork_sequence(*kept_));
    Closer closer(engine_, sequence);
    GenerationRequest generation =
        generation_of(request, tokens.subspan(kept_tokens_.size()), room);
    generation.piece.sequence = sequence;
    generation.show_progress = !show;
    LR_TRY_ASSIGN(const Generated generated,
                  generate(engine_, generation,
                           {.on_token = [&](std::int32_t choice, std::int32_t token,
                                            const engine::RowLogprobs* logprobs) {
                               return answers.take(choice, token, logprobs);
                           }}));
    closer.add(generated);
    LR_TRY_ASSIGN(result.choices, answers.finish(generated));
    result.decode_steps = generated.decode_steps;
    result.prefill_seconds = monotonic_seconds() - start - generated.decode_seconds;
    result.decode_seconds = generated.decode_seconds;
    return result;
}

GenerationRequest ChatSession::generation_of(const ChatRequest& request,
                                             std::span<const std::int32_t> tokens,
                                             std::int64_t room) const {
    GenerationRequest generation{
        .piece = {.tokens = {tokens.begin(), tokens.end()},
                  .sampling = request.sampling,
                  .choices = request.choices,
                  .logprobs = request.logprobs},
        .most_tokens = request.most_tokens >= 0 ? std::min(request.most_tokens, room) : room,
        .interrupted = request.interrupted};
    if (!request.ignore_end)
        generation.end_tokens = model_.opened.generation.eos_ids;
    for (std::int32_t id : text::stop_token_ids(*model_.tokenizer, request.stop))
        generation.end_tokens.push_back(id);
    return generation;
}

// Makes the kept state hold `common`; how many of them it held before.
Result<std::int64_t> ChatSession::keep(std::span<const std::int32_t> common,
                                       bool (*interrupted)()) {
    const bool continues = kept_ && kept_tokens_.size() <= common.size() &&
                           std::equal(kept_tokens_.begin(), kept_tokens_.end(), common.begin());
    if (!continues) {
        forget();
        LR_TRY_ASSIGN(kept_, engine_.open_sequence());
    }
    const std::int64_t held = std::ssize(kept_tokens_);
    const Result<bool> all =
        append_tokens(engine_, *kept_, common.subspan(kept_tokens_.size()), interrupted);
    const Result<std::int64_t> length = engine_.length(*kept_);
    if (!all || !length) {
        forget();
        return fail(all ? length.error() : all.error());
    }
    kept_tokens_.assign(common.begin(), common.begin() + *length);
    return held;
}

void ChatSession::forget() {
    if (kept_)
        static_cast<void>(engine_.close_sequence(*kept_)); // open, so it closes
    kept_.reset();
    kept_tokens_.clear();
}

} // namespace lr::cli
