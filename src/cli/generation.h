// SPDX-License-Identifier: Apache-2.0
//
// cli/generation.h: a prompt in, tokens out: what the commands that generate share.
//
// Steps run one ahead: while a token is handed out, the step that draws the next is under way. So a
// choice that ends may have consumed its last token already; engine::Engine::length() says.
#pragma once

#include "core/status.h"
#include "engine/engine.h"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace lr::cli {

enum class Finish : std::uint8_t {
    kEnd,         // the model drew an end token
    kLength,      // as many tokens as were asked for
    kStopped,     // the receiver wanted no more: a stop string
    kInterrupted, // Ctrl-C
};
// "stop", "length", "stop": the names that the OpenAI API has for them; and "interrupted", for
// which it has none.
std::string_view finish_name(Finish finish);

struct GenerationRequest {
    // Sequence, tokens to append (the prompt), sampling, choices and logprobs. logits: kAll for
    // those of every position of the prompt.
    engine::Piece piece;
    std::int64_t most_tokens = 0; // of each choice
    std::vector<std::int32_t> end_tokens = {};
    bool copy_logits = false;
    bool show_progress = false;      // of the tokens: where nothing shows them as they arrive
    bool (*interrupted)() = nullptr; // asked once a step
};

struct GenerationReceiver {
    // Everything a step says about a choice, before its token. May be empty.
    std::function<Status(const engine::PieceOutput&)> on_output = {};
    // A token that is not an end token; false: this choice ends with it. `logprobs` is nullptr
    // where none were wished.
    std::function<Result<bool>(std::int32_t choice, std::int32_t token,
                               const engine::RowLogprobs* logprobs)>
        on_token;
};

struct GeneratedChoice {
    engine::SequenceId sequence;           // choice 0: the request's; the others are opened here
    std::vector<std::int32_t> tokens = {}; // an end token included
    Finish finish = Finish::kLength;
};

struct Generated {
    std::vector<GeneratedChoice> choices;
    std::int64_t prompt_tokens = 0;
    std::int64_t decode_steps = 0; // the first token of each choice comes with the prompt
    double prefill_seconds = 0, decode_seconds = 0;
};

// Appends tokens to a sequence and draws nothing. False: interrupted, and only a part of them
// (whole steps; engine::Engine::length() says) has been appended.
Result<bool> append_tokens(engine::Engine& engine, engine::SequenceId sequence,
                           std::span<const std::int32_t> tokens, bool (*interrupted)());

// Prefills and decodes until every choice has ended. The sequences stay open; on an error only
// the request's. Logits that are not finite are an error.
Result<Generated> generate(engine::Engine& engine, const GenerationRequest& request,
                           const GenerationReceiver& receiver);

} // namespace lr::cli
