// SPDX-License-Identifier: Apache-2.0
#include "engine/piece.h"

#include "graph/step.h"
#include "ops/sampling/token_logprobs.h"

#include <algorithm>

namespace lr::engine {
namespace {

constexpr std::int32_t kMaxChoices = 128;

// Refuses NaN too.
Status check_range(const char* what, float value, float low, float high) {
    if (value >= low && value <= high)
        return {};
    return fail(Code::kInvalidArgument, "{}: expected {}..{}, got {}", what, low, high, value);
}

Status check_bias(std::vector<LogitBias> bias, std::int64_t drawable) {
    if (std::ssize(bias) > graph::kMaxLogitBias)
        return fail(Code::kInvalidArgument, "logit bias: expected at most {} ids, got {}",
                    graph::kMaxLogitBias, bias.size());
    for (const LogitBias& entry : bias) {
        if (entry.id < 0 || entry.id >= drawable)
            return fail(Code::kInvalidArgument, "logit bias: expected an id in 0..{}, got {}",
                        drawable - 1, entry.id);
        if (!(entry.bias >= -100.0f && entry.bias <= 100.0f))
            return fail(Code::kInvalidArgument, "logit bias: id {}: expected -100..100, got {}",
                        entry.id, entry.bias);
    }
    const auto by_id = [](const LogitBias& a, const LogitBias& b) { return a.id < b.id; };
    std::sort(bias.begin(), bias.end(), by_id);
    for (std::size_t i = 1; i < bias.size(); ++i)
        if (bias[i].id == bias[i - 1].id)
            return fail(Code::kInvalidArgument, "logit bias: id {} appears twice", bias[i].id);
    return {};
}

} // namespace

std::int64_t Piece::rows() const {
    return std::max<std::int64_t>(1, std::ssize(tokens));
}

std::int64_t Piece::logit_rows() const {
    if (logits == Logits::kNone)
        return 0;
    return (logits == Logits::kAll ? rows() : 1) + choices - 1;
}

Status check(const Sampling& sampling, std::int64_t drawable) {
    LR_TRY(check_range("temperature", sampling.temperature, 0, 100));
    if (sampling.top_k < -1)
        return fail(Code::kInvalidArgument, "top-k: expected -1, 0 (both: off) or more, got {}",
                    sampling.top_k);
    LR_TRY(check_range("top-p", sampling.top_p, 0, 1));
    LR_TRY(check_range("min-p", sampling.min_p, 0, 1));
    LR_TRY(check_range("repetition penalty", sampling.repetition, 0.01f, 100));
    LR_TRY(check_range("frequency penalty", sampling.frequency, -2, 2));
    LR_TRY(check_range("presence penalty", sampling.presence, -2, 2));
    if (sampling.stream < 0 || sampling.stream > INT32_MAX - kMaxChoices)
        return fail(Code::kInvalidArgument, "stream: expected 0..{}, got {}",
                    INT32_MAX - kMaxChoices, sampling.stream);
    return check_bias(sampling.bias, drawable);
}

Status check(const LogprobWish& wish, std::int64_t rows, std::int64_t drawable) {
    if (wish.top < -1 || wish.top > ops::kMaxTopLogprobs)
        return fail(Code::kInvalidArgument,
                    "log-probabilities: expected -1 (none) or 0..{}, got {}", ops::kMaxTopLogprobs,
                    wish.top);
    if (!wish.targets.empty() && std::ssize(wish.targets) != rows)
        return fail(Code::kInvalidArgument,
                    "log-probabilities: expected a target for each of {} rows with logits, got {}",
                    rows, wish.targets.size());
    for (std::size_t i = 0; i < wish.targets.size(); ++i)
        if (wish.targets[i] < -1 || wish.targets[i] >= drawable)
            return fail(Code::kInvalidArgument,
                        "log-probabilities: target {}: expected -1 or an id in 0..{}, got {}", i,
                        drawable - 1, wish.targets[i]);
    return {};
}

Status check(const Piece& piece, bool decode, std::int64_t vocabulary, std::int64_t drawable) {
    if (decode && piece.tokens.size() > 1)
        return fail(Code::kInvalidArgument,
                    "decode step: expected at most one token a sequence, got {}",
                    piece.tokens.size());
    for (std::size_t i = 0; i < piece.tokens.size(); ++i)
        if (piece.tokens[i] < 0 || piece.tokens[i] >= vocabulary)
            return fail(Code::kInvalidArgument, "token {}: expected an id in 0..{}, got {}", i,
                        vocabulary - 1, piece.tokens[i]);
    if (piece.choices < 1 || piece.choices > (decode ? 1 : kMaxChoices))
        return fail(Code::kInvalidArgument, "{} step: choices: expected 1..{}, got {}",
                    decode ? "decode" : "prefill", decode ? 1 : kMaxChoices, piece.choices);
    if (const auto generated = piece.generated_tokens.value_or(0);
        generated < 0 || generated > piece.rows())
        return fail(Code::kInvalidArgument, "generated tokens: expected 0..{}, got {}",
                    piece.rows(), generated);
    LR_TRY(check(piece.sampling, drawable));
    return check(piece.logprobs, piece.logit_rows(), drawable);
}

} // namespace lr::engine
