// SPDX-License-Identifier: Apache-2.0
//
// engine/piece.h: what a step is asked to do for one sequence, and what comes of it.
#pragma once

#include "core/status.h"
#include "ops/op.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lr::engine {

struct SequenceId {
    std::int32_t index = -1;
    std::uint32_t generation = 0;
};

// Which rows of a piece get logits and a drawn token.
enum class Logits : std::uint8_t { kNone, kLast, kAll };

struct LogitBias {
    std::int32_t id = -1;
    float bias = 0.0f; // -100..100, added to the logit
};

// How a token is drawn; ops/sampling/sample.h says exactly what each does, and in which order.
struct Sampling {
    float temperature = 0.0f;         // 0: greedy, lowest id wins ties; up to 100
    std::int32_t top_k = 0;           // -1, 0: off
    float top_p = 1.0f;               // 0..1; 1: off
    float min_p = 0.0f;               // 0..1; 0: off
    float repetition = 1.0f;          // 0.01..100; 1: off; of tokens of prompt and answer
    float frequency = 0.0f;           // -2..2; of generated tokens, each time
    float presence = 0.0f;            // -2..2; of generated tokens, once
    std::vector<LogitBias> bias = {}; // at most 300, an id once
    std::uint64_t seed = 0;           // the draw's bits are a function of seed, stream, position
    std::int32_t stream = 0;          // >= 0: tells the choices of one request apart
};

// Which log-probabilities are wanted: of the raw logits, over the ids that can be drawn.
struct LogprobWish {
    std::int32_t top = -1; // -1: none; 0..20: the token's own, and so many of the likeliest
    // The token to score of each row with logits, -1: the one drawn. Empty: the ones drawn.
    std::vector<std::int32_t> targets = {};
};

struct Piece {
    SequenceId sequence;
    // Prefill: the tokens to append. Decode: one token, or empty for the one drawn last.
    std::vector<std::int32_t> tokens;
    Logits logits = Logits::kLast;
    // Penalties act on the draws of the last row, which continue the sequence: of a prefill's
    // other rows the state has counted later tokens already.
    Sampling sampling = {};
    // Draws of the last row, 1..128: choice c has stream sampling.stream + c. More than one in a
    // prefill step only; the sequence's last token is that of choice 0.
    std::int32_t choices = 1;
    LogprobWish logprobs = {};
    // How many of `tokens`, at the end, penalties count as generated. Unset: all of a decode step,
    // none of a prefill. (A sequence that is computed anew says which tokens were its answer.)
    std::optional<std::int64_t> generated_tokens = {};

    std::int64_t rows() const; // of the step: tokens, or the one drawn last
    std::int64_t logit_rows() const;
};

struct TokenLogprob {
    std::int32_t id = -1;
    double logprob = 0;
};

struct RowLogprobs {
    TokenLogprob token;
    std::int32_t rank = 0;         // of the token, from 1 (the likeliest); 0: logits not finite
    std::vector<TokenLogprob> top; // the likeliest, best first
};

struct PieceOutput {
    std::vector<std::int32_t> tokens;  // drawn: one for each row with logits, the choices last
    std::vector<float> logits;         // [rows, V], when copy_logits
    std::vector<RowLogprobs> logprobs; // one for each token drawn, when wished
    bool finite = true;                // false: a row's logits were not finite; its token is -1
};

// That everything but the sequence is in range: tokens are ids of the `vocabulary`, biases and
// targets ids below `drawable`. The message names the field, what was expected and got.
Status check(const Sampling& sampling, std::int64_t drawable);
Status check(const LogprobWish& wish, std::int64_t rows, std::int64_t drawable);
Status check(const Piece& piece, bool decode, std::int64_t vocabulary, std::int64_t drawable);

} // namespace lr::engine
