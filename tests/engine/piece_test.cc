// SPDX-License-Identifier: Apache-2.0
#include "engine/piece.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string_view>

namespace lr::engine {
namespace {

constexpr std::int64_t kVocabulary = 110, kDrawable = 100;

void expect_refused(const std::function<void(Piece&)>& change, std::string_view message,
                    bool decode = false) {
    Piece piece{.sequence = {}, .tokens = {1}};
    if (!decode)
        piece.tokens.push_back(2);
    EXPECT_TRUE(check(piece, decode, kVocabulary, kDrawable).ok());
    change(piece);
    const Status status = check(piece, decode, kVocabulary, kDrawable);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
}

TEST(Piece, CountsItsRows) {
    Piece piece{.sequence = {}, .tokens = {1, 2, 3}};
    EXPECT_EQ(piece.rows(), 3);
    EXPECT_EQ(piece.logit_rows(), 1);
    piece.choices = 4;
    EXPECT_EQ(piece.logit_rows(), 4);
    piece.logits = Logits::kAll;
    EXPECT_EQ(piece.logit_rows(), 6);
    piece.logits = Logits::kNone;
    EXPECT_EQ(piece.logit_rows(), 0);
    piece.tokens.clear();
    EXPECT_EQ(piece.rows(), 1); // the token drawn last
}

TEST(Piece, RefusesSamplingOutOfRange) {
    const auto sampling = [&](const Sampling& bad, std::string_view message) {
        expect_refused([&](Piece& p) { p.sampling = bad; }, message);
    };
    const float nan = std::nanf(""), infinity = INFINITY;
    sampling({.temperature = 999999}, "temperature: expected 0..100, got 999999");
    sampling({.temperature = -1}, "temperature: expected 0..100, got -1");
    sampling({.temperature = infinity}, "temperature: expected 0..100, got inf");
    sampling({.top_k = -2}, "top-k: expected -1, 0 (both: off) or more, got -2");
    sampling({.top_p = -1}, "top-p: expected 0..1, got -1");
    sampling({.top_p = nan}, "top-p: expected 0..1, got nan");
    sampling({.min_p = 1.5f}, "min-p: expected 0..1, got 1.5");
    sampling({.repetition = 0}, "repetition penalty: expected 0.01..100, got 0");
    sampling({.repetition = nan}, "repetition penalty: expected 0.01..100, got nan");
    sampling({.frequency = 2.5f}, "frequency penalty: expected -2..2, got 2.5");
    sampling({.presence = -infinity}, "presence penalty: expected -2..2, got -inf");
    sampling({.stream = -1}, "stream: expected 0..2147483519, got -1");
    sampling({.bias = {{191222, -100}}}, "logit bias: expected an id in 0..99, got 191222");
    sampling({.bias = {{100, 1}}}, "logit bias: expected an id in 0..99, got 100");
    sampling({.bias = {{-1, 1}}}, "logit bias: expected an id in 0..99, got -1");
    sampling({.bias = {{7, 101}}}, "logit bias: id 7: expected -100..100, got 101");
    sampling({.bias = {{7, nan}}}, "logit bias: id 7: expected -100..100, got nan");
    sampling({.bias = {{7, 1}, {3, 1}, {7, 2}}}, "logit bias: id 7 appears twice");
    sampling({.bias = std::vector<LogitBias>(301, {1, 1})},
             "logit bias: expected at most 300 ids, got 301");
}

TEST(Piece, RefusesWishesOutOfRange) {
    expect_refused([](Piece& p) { p.logprobs.top = 1000000000; },
                   "log-probabilities: expected -1 (none) or 0..20, got 1000000000");
    expect_refused([](Piece& p) { p.logprobs.top = -2; },
                   "log-probabilities: expected -1 (none) or 0..20, got -2");
    expect_refused(
        [](Piece& p) {
            p.logprobs.targets = {1, 2};
        },
        "log-probabilities: expected a target for each of 1 rows with logits, got 2");
    expect_refused([](Piece& p) { p.logprobs.targets = {100}; },
                   "log-probabilities: target 0: expected -1 or an id in 0..99, got 100");
    expect_refused([](Piece& p) { p.choices = 0; },
                   "prefill step: choices: expected 1..128, got 0");
    expect_refused([](Piece& p) { p.choices = 129; },
                   "prefill step: choices: expected 1..128, got 129");
    expect_refused([](Piece& p) { p.generated_tokens = 3; },
                   "generated tokens: expected 0..2, got 3");
    expect_refused([](Piece& p) { p.generated_tokens = -1; },
                   "generated tokens: expected 0..2, got -1");
    expect_refused([](Piece& p) { p.tokens[1] = 110; },
                   "token 1: expected an id in 0..109, got 110");
    expect_refused([](Piece& p) { p.tokens[0] = -1; }, "token 0: expected an id in 0..109, got -1");
    expect_refused([](Piece& p) { p.choices = 2; }, "decode step: choices: expected 1..1, got 2",
                   true);
    expect_refused([](Piece& p) { p.tokens.push_back(1); },
                   "decode step: expected at most one token a sequence, got 2", true);
}

} // namespace
} // namespace lr::engine
