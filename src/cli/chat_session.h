// SPDX-License-Identifier: Apache-2.0
//
// cli/chat_session.h: conversations with a loaded model: messages in, answers out while they
// arrive.
//
// A chat asks with ever longer prompts, so the state of what they have in common is kept: the
// prompt without its last lines, which invite an answer and which templates do not repeat when that
// answer has become history. An answer is drawn from a copy of that state; the next prompt appends
// the answer, as the template now writes it, and the new question.
#pragma once

#include "cli/generation.h"
#include "cli/model_loader.h"
#include "core/json.h"
#include "text/answer.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lr::cli {

struct ChatRequest {
    Json messages;                       // an array, as the OpenAI API has it
    std::optional<Json> tools;           // the same
    std::optional<Json> template_kwargs; // an object: more variables for the template
    std::optional<bool> thinking;        // unset: the template's default
    text::LateSystem late_system = text::LateSystem::kKeep;
    std::int64_t most_tokens = -1; // of an answer; -1: all that the context has room for
    std::int32_t choices = 1;
    engine::Sampling sampling = {};
    engine::LogprobWish logprobs = {};
    std::vector<std::string> stop = {};
    bool ignore_end = false;
    bool (*interrupted)() = nullptr;
};

struct ChatAnswer {
    std::string reasoning;
    text::ToolAnswer answer;
    Finish finish = Finish::kLength;
    std::vector<std::int32_t> tokens;
    std::vector<engine::RowLogprobs> logprobs; // of each token but an end token, when wished
};

struct ChatResult {
    std::vector<ChatAnswer> choices;
    std::int64_t prompt_tokens = 0, cached_tokens = 0; // cached: already in the state
    std::int64_t decode_steps = 0;
    double prefill_seconds = 0, decode_seconds = 0;
};

class ChatSession {
  public:
    // What an answer shows as it arrives.
    using Show = std::function<Status(std::int32_t choice, const text::AnswerDelta&)>;

    // The model has a chat template and an engine, and outlives this. The engine has room for a
    // sequence for each choice and one more.
    // Without kKeep every prompt is computed from its beginning, and an answer has the same bits
    // whatever was asked before.
    enum class Reuse { kNone, kKeep };
    ChatSession(LoadedModel& model, Reuse reuse)
        : model_(model), engine_(*model.engine), reuse_(reuse) {}
    ~ChatSession();
    ChatSession(const ChatSession&) = delete;
    ChatSession& operator=(const ChatSession&) = delete;

    // kInvalidArgument for what the template refuses and for a prompt longer than the context.
    Result<ChatResult> answer(const ChatRequest& request, const Show& show);

    // How long the prompt of these messages is; needs no engine yet.
    static Result<std::int64_t> prompt_tokens(const LoadedModel& model, const ChatRequest& request);

  private:
    GenerationRequest generation_of(const ChatRequest& request,
                                    std::span<const std::int32_t> tokens, std::int64_t room) const;
    Result<std::int64_t> keep(std::span<const std::int32_t> common, bool (*interrupted)());
    void forget();

    LoadedModel& model_;
    engine::Engine& engine_;
    const Reuse reuse_;
    std::optional<engine::SequenceId> kept_; // its state holds kept_tokens_
    std::vector<std::int32_t> kept_tokens_;
};

} // namespace lr::cli
