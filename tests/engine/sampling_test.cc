// SPDX-License-Identifier: Apache-2.0
//
// Sampling, log-probabilities and forks, as a caller of the engine meets them.
#include "ops/sampling/count_tokens.h"
#include "tests/engine/fixture.h"

namespace lr::engine {
namespace {

constexpr const char* kModel = "moe-tied-r2";

EngineOptions options(int threads = 2) {
    EngineOptions o;
    o.threads = threads;
    o.context = 256;
    o.sequences = 8;
    return o;
}

SequenceId fork(Engine& engine, SequenceId parent) {
    const auto id = engine.fork_sequence(parent);
    EXPECT_TRUE(id) << (id ? "" : id.error().message());
    return id ? *id : SequenceId{};
}

Piece piece(SequenceId id, std::vector<std::int32_t> tokens, const Sampling& sampling = {}) {
    return {.sequence = id, .tokens = std::move(tokens), .sampling = sampling};
}

StepInput prefill_of(Piece piece) {
    return {.phase = graph::Phase::kPrefill, .pieces = {std::move(piece)}};
}

StepInput decode_of(Piece piece) {
    return {.phase = graph::Phase::kDecode, .pieces = {std::move(piece)}};
}

Sampling lively(std::int32_t stream = 0) {
    return {.temperature = 1.5f,
            .top_k = 100,
            .top_p = 0.97f,
            .min_p = 0.001f,
            .repetition = 1.2f,
            .frequency = 0.4f,
            .presence = 0.3f,
            .bias = {{7, -100.0f}, {3, 2.0f}},
            .seed = 99,
            .stream = stream};
}

std::vector<std::int32_t> prompt(const Engine& engine, std::int64_t length = 70) {
    return some_ids(length, engine.config().vocab_size, 41);
}

// Prompt and `count` further steps of one sequence alone.
std::vector<std::int32_t> generate(Engine& engine, SequenceId id, const Sampling& sampling,
                                   int count) {
    std::vector<std::int32_t> tokens =
        step(engine, prefill_of(piece(id, prompt(engine), sampling))).pieces[0].tokens;
    for (int i = 0; i < count; ++i)
        tokens.push_back(
            step(engine, decode_of(piece(id, {tokens.back()}, sampling))).pieces[0].tokens[0]);
    return tokens;
}

void expect_equal_states(Engine& engine, SequenceId a, SequenceId b) {
    const auto expect_equal = [&](std::int32_t layer, graph::StateKind kind) {
        EXPECT_EQ(*engine.read_state(a, layer, kind), *engine.read_state(b, layer, kind))
            << "layer " << layer;
    };
    expect_equal(-1, graph::StateKind::kTokenCounts);
    for (std::int32_t layer = 0; layer < engine.config().layer_count(); ++layer)
        for (graph::StateKind kind : state_kinds(engine, layer))
            expect_equal(layer, kind);
}

TEST(Sampling, FourForkedChoicesEqualFourSequencesBitForBit) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    constexpr int kSteps = 12;
    std::vector<std::vector<std::int32_t>> expected;
    std::vector<SequenceId> alone;
    for (std::int32_t c = 0; c < 4; ++c) {
        alone.push_back(open(*engine));
        expected.push_back(generate(*engine, alone.back(), lively(c), kSteps));
    }
    EXPECT_NE(expected[0], expected[1]);

    Piece first = piece(open(*engine), prompt(*engine), lively());
    first.choices = 4;
    std::vector<SequenceId> all = {first.sequence};
    const auto drawn = step(*engine, prefill_of(first)).pieces[0].tokens;
    ASSERT_EQ(drawn.size(), 4u);
    for (int c = 1; c < 4; ++c)
        all.push_back(fork(*engine, all[0]));
    std::vector<std::vector<std::int32_t>> got;
    std::vector<Ticket> tickets;
    for (int i = 0; i < kSteps; ++i) {
        StepInput input{.phase = graph::Phase::kDecode};
        for (std::int32_t c = 0; c < 4; ++c) {
            const auto token = drawn[static_cast<std::size_t>(c)];
            input.pieces.push_back(piece(all[static_cast<std::size_t>(c)],
                                         i == 0 ? std::vector{token} : std::vector<std::int32_t>(),
                                         lively(c)));
        }
        tickets.push_back(*engine->submit(std::move(input)));
    }
    for (std::int32_t token : drawn)
        got.push_back({token});
    for (Ticket ticket : tickets) {
        const auto output = engine->wait(ticket);
        for (std::size_t c = 0; c < 4; ++c)
            got[c].push_back(output->pieces[c].tokens[0]);
    }
    EXPECT_EQ(got, expected);
    for (std::size_t c = 0; c < 4; ++c)
        expect_equal_states(*engine, all[c], alone[c]);
}

// Forked while steps are queued; the parent goes on, or is closed, before the copy has been made.
TEST(Sampling, AForkStandsWhereItsParentStoodInTheOrderOfSubmission) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    const Sampling sampling = lively();
    const auto expected = generate(*engine, open(*engine), sampling, 6);
    for (const bool close : {false, true}) {
        const SequenceId parent = open(*engine);
        ASSERT_TRUE(engine->submit(prefill_of(piece(parent, prompt(*engine), sampling))));
        ASSERT_TRUE(engine->submit(decode_of(piece(parent, {}, sampling))));
        const SequenceId child = fork(*engine, parent);
        if (close) {
            EXPECT_TRUE(engine->close_sequence(parent).ok());
            // Its slot and pages go to another, whose step comes after the copy.
            ASSERT_TRUE(engine->submit(prefill_of(piece(open(*engine), some_ids(90, 64, 5)))));
        } else {
            ASSERT_TRUE(engine->submit(decode_of(piece(parent, {9}))));
        }
        std::vector<Ticket> tickets;
        for (int i = 0; i < 5; ++i)
            tickets.push_back(*engine->submit(decode_of(piece(child, {}, sampling))));
        for (std::size_t i = 0; i < tickets.size(); ++i)
            EXPECT_EQ(engine->wait(tickets[i])->pieces[0].tokens[0], expected[i + 2])
                << "close " << close << " step " << i;
        EXPECT_EQ(*engine->length(child), 76);
    }
}

TEST(Sampling, AForkOfAnEmptySequenceIsEmptyAndAnImpossibleOneLeavesNoTrace) {
    EngineOptions o = options();
    o.sequences = 3;
    o.kv_tokens = 4 * 64;
    auto [opened, engine] = load_engine(synthetic_model(kModel), o);
    const auto ids = prompt(*engine, 150);
    const SequenceId empty = open(*engine);
    const SequenceId also = fork(*engine, empty);
    EXPECT_EQ(*engine->length(also), 0);
    EXPECT_EQ(step(*engine, decode_of(piece(also, {5}))).pieces[0].tokens,
              step(*engine, decode_of(piece(empty, {5}))).pieces[0].tokens);
    EXPECT_TRUE(engine->close_sequence(also).ok() && engine->close_sequence(empty).ok());

    const SequenceId parent = open(*engine);
    const auto expected = prefill(*engine, parent, ids); // 3 of 4 pages
    for (int i = 0; i < 5; ++i) {                        // a slot is free each time
        const auto refused = engine->fork_sequence(parent);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
        EXPECT_NE(refused.error().message().find("3 more pages of 64 tokens are needed, 1 of 4"),
                  std::string::npos)
            << refused.error().message();
    }
    EXPECT_TRUE(engine->close_sequence(parent).ok());
    EXPECT_EQ(engine->fork_sequence(parent).error().code(), Code::kNotFound);
    EXPECT_EQ(prefill(*engine, open(*engine), ids), expected);
}

TEST(Sampling, DrawsAreTheSameAloneInABatchInAnyBucketAndOnAnyThreads) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options(1));
    const auto expected = generate(*engine, open(*engine), lively(), 6);
    auto [opened_too, wide] = load_engine(synthetic_model(kModel), options(2));
    for (const std::size_t mates : {0u, 2u, 7u}) {
        std::vector<SequenceId> all;
        for (std::size_t i = 0; i <= mates; ++i)
            all.push_back(open(*wide));
        const std::size_t place = mates / 2;
        std::vector<std::int32_t> got;
        StepInput input{.phase = graph::Phase::kPrefill};
        for (std::size_t i = 0; i < all.size(); ++i)
            input.pieces.push_back(i == place
                                       ? piece(all[i], prompt(*wide), lively())
                                       : piece(all[i], some_ids(30 + std::ssize(all), 64, i),
                                               {.temperature = 0.5f, .seed = i, .stream = 3}));
        got.push_back(step(*wide, input).pieces[place].tokens[0]);
        input.phase = graph::Phase::kDecode;
        for (Piece& p : input.pieces)
            p.tokens.clear();
        for (int i = 0; i < 6; ++i)
            got.push_back(step(*wide, input).pieces[place].tokens[0]);
        EXPECT_EQ(got, expected) << mates << " mates";
        for (SequenceId id : all)
            EXPECT_TRUE(wide->close_sequence(id).ok());
    }
}

// The rules of Hugging Face's RepetitionPenalty processor and of OpenAI's two penalties, on the
// logits that the engine hands out.
std::int32_t plain_greedy(const std::vector<float>& logits, const Sampling& s,
                          const std::vector<std::int32_t>& prompt,
                          const std::vector<std::int32_t>& answer) {
    std::vector<float> z = logits;
    const auto count = [](const std::vector<std::int32_t>& tokens, std::size_t id) {
        return std::count(tokens.begin(), tokens.end(), static_cast<std::int32_t>(id));
    };
    for (const LogitBias& entry : s.bias)
        z[static_cast<std::size_t>(entry.id)] += entry.bias;
    for (std::size_t id = 0; id < z.size(); ++id) {
        const auto times = count(answer, id);
        if (times + count(prompt, id) > 0)
            z[id] = z[id] < 0 ? z[id] * s.repetition : z[id] / s.repetition;
        z[id] -= s.frequency * static_cast<float>(times);
        z[id] -= times > 0 ? s.presence : 0.0f;
    }
    return static_cast<std::int32_t>(std::max_element(z.begin(), z.end()) - z.begin());
}

TEST(Sampling, PenaltiesOfAGeneratedSequenceFollowTheLogitsProcessors) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    const auto ids = prompt(*engine, 20);
    std::vector<std::vector<std::int32_t>> answers;
    for (const Sampling& s : {Sampling{}, Sampling{.repetition = 1.3f}, Sampling{.frequency = 0.7f},
                              Sampling{.presence = 1.5f},
                              Sampling{.repetition = 1.1f,
                              .frequency = 0.2f,
                              .presence = -0.5f,
                              .bias = {{5, 1.5f}, {60, -3}}}}) {
        const SequenceId id = open(*engine);
        std::vector<std::int32_t> answer;
        StepInput input = prefill_of(piece(id, ids, s));
        input.copy_logits = true;
        for (int i = 0; i < 25; ++i) {
            const PieceOutput output = step(*engine, input).pieces[0];
            ASSERT_EQ(output.tokens[0], plain_greedy(output.logits, s, ids, answer))
                << "step " << i;
            answer.push_back(output.tokens[0]);
            input.phase = graph::Phase::kDecode;
            input.pieces[0].tokens.clear();
        }
        answers.push_back(answer);
        EXPECT_TRUE(engine->close_sequence(id).ok());
    }
    for (std::size_t i = 1; i < answers.size(); ++i)
        EXPECT_NE(answers[i], answers[0]) << "setting " << i << " changed nothing";
}

TEST(Sampling, CountsBelongToTheSequenceAndTellPromptFromAnswer) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    const auto counts = [&, &engine = engine](SequenceId id) {
        const auto bytes = *engine->read_state(id, -1, graph::StateKind::kTokenCounts);
        std::vector<std::uint16_t> entries(bytes.size() / 2);
        std::memcpy(entries.data(), bytes.data(), bytes.size());
        std::map<int, int> seen;
        for (std::size_t i = 0; i < entries.size(); ++i)
            if (entries[i] != 0)
                seen[static_cast<int>(i)] = entries[i];
        EXPECT_EQ(std::ssize(entries), engine->config().vocab_size);
        return seen;
    };
    constexpr int kPrompt = ops::kPromptToken;
    const SequenceId a = open(*engine), b = open(*engine);
    step(*engine, prefill_of(piece(a, {5, 9, 5})));
    step(*engine, decode_of(piece(a, {9})));
    step(*engine, decode_of(piece(a, {9})));
    step(*engine, decode_of(piece(a, {11})));
    EXPECT_EQ(counts(a), (std::map<int, int>{{5, kPrompt}, {9, kPrompt + 2}, {11, 1}}));
    EXPECT_EQ(counts(b), (std::map<int, int>()));
    // Computed anew in one prefill, the caller saying which tokens were the answer.
    Piece again = piece(b, {5, 9, 5, 9, 9, 11});
    again.generated_tokens = 3;
    step(*engine, prefill_of(again));
    EXPECT_EQ(counts(b), counts(a));
    // A decode step may feed a token of the prompt.
    Piece forced = piece(b, {12});
    forced.generated_tokens = 0;
    step(*engine, decode_of(forced));
    EXPECT_EQ(counts(b)[12], kPrompt);
    // A slot's next owner starts from nothing.
    EXPECT_TRUE(engine->close_sequence(a).ok());
    const SequenceId c = open(*engine);
    step(*engine, prefill_of(piece(c, {1})));
    EXPECT_EQ(counts(c), (std::map<int, int>{{1, kPrompt}}));
}

// Of the other rows the state has counted later tokens already, which they must not see.
TEST(Sampling, PenaltiesActOnTheLastRowOfAPiece) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    const auto ids = prompt(*engine, 30);
    const auto draw = [&, &engine = engine](const Sampling& sampling) {
        Piece all = piece(open(*engine), ids, sampling);
        all.logits = Logits::kAll;
        return step(*engine, prefill_of(all)).pieces[0].tokens;
    };
    const Sampling plain = {.temperature = 2.0f, .seed = 4};
    Sampling penalised = plain;
    penalised.repetition = 100;
    auto without = draw(plain), with = draw(penalised);
    EXPECT_NE(without.back(), with.back());
    without.pop_back();
    with.pop_back();
    EXPECT_EQ(without, with);
}

double plain_logprob(std::span<const float> logits, std::int32_t id) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits)
        sum += std::exp(logit - top);
    return logits[static_cast<std::size_t>(id)] - top - std::log(sum);
}

TEST(Sampling, LogprobsAreThoseOfTheRawLogits) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    const auto ids = prompt(*engine, 12);
    const auto vocab = static_cast<std::size_t>(engine->config().vocab_size);
    Piece p = piece(open(*engine), ids, lively());
    p.logits = Logits::kAll;
    p.choices = 3;
    p.logprobs.top = 4;
    p.logprobs.targets.assign(ids.begin() + 1, ids.end());
    p.logprobs.targets.resize(14, -1); // the last row's three draws
    StepInput input = prefill_of(p);
    input.copy_logits = true;
    const PieceOutput output = step(*engine, input).pieces[0];
    ASSERT_EQ(output.logprobs.size(), 14u);
    ASSERT_EQ(output.logits.size(), 14 * vocab);
    for (std::size_t i = 0; i < 14; ++i) {
        const RowLogprobs& row = output.logprobs[i];
        const auto logits = std::span(output.logits).subspan(i * vocab, vocab);
        EXPECT_EQ(row.token.id, i < 11 ? ids[i + 1] : output.tokens[i]);
        EXPECT_NEAR(row.token.logprob, plain_logprob(logits, row.token.id), 1e-12);
        ASSERT_EQ(row.top.size(), 4u);
        EXPECT_EQ(row.top[0].id, std::max_element(logits.begin(), logits.end()) - logits.begin());
        for (const TokenLogprob& top : row.top)
            EXPECT_NEAR(top.logprob, plain_logprob(logits, top.id), 1e-12);
        if (row.rank <= 4) {
            EXPECT_EQ(row.top[static_cast<std::size_t>(row.rank) - 1].id, row.token.id);
        } else {
            EXPECT_LE(row.token.logprob, row.top[3].logprob);
        }
    }
    // The same row three times over.
    EXPECT_EQ(output.logprobs[11].top[0].logprob, output.logprobs[13].top[0].logprob);
    // Not asked for, not there; a decode step's.
    EXPECT_TRUE(step(*engine, decode_of(piece(p.sequence, {}))).pieces[0].logprobs.empty());
    Piece next = piece(p.sequence, {});
    next.logprobs.top = 0;
    const PieceOutput decoded = step(*engine, decode_of(next)).pieces[0];
    ASSERT_EQ(decoded.logprobs.size(), 1u);
    EXPECT_EQ(decoded.logprobs[0].token.id, decoded.tokens[0]);
    EXPECT_EQ(decoded.logprobs[0].rank, 1); // greedy
    EXPECT_TRUE(decoded.logprobs[0].top.empty());
}

TEST(Sampling, TakesTheEdgeOfEveryRangeAndServesOnAfterARefusal) {
    EngineOptions o = options();
    o.vocab_limit = 100;
    auto [opened, engine] = load_engine(synthetic_model(kModel), o);
    const SequenceId id = open(*engine);
    const auto refused = engine->submit(prefill_of(piece(id, {1}, {.bias = {{191222, -100}}})));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "logit bias: expected an id in 0..99, got 191222");
    EXPECT_EQ(*engine->length(id), 0);
    std::vector<LogitBias> most;
    for (std::int32_t i = 0; i < 100; ++i)
        most.push_back({i, i % 2 == 0 ? -100.0f : 100.0f});
    Piece edge = piece(id, {1, 2},
                       {.temperature = 100,
                        .top_k = INT32_MAX,
                        .top_p = 0,
                        .min_p = 1,
                        .repetition = 100,
                        .frequency = 2,
                        .presence = -2,
                        .bias = most,
                        .seed = ~std::uint64_t{0},
                        .stream = INT32_MAX - 128});
    edge.choices = 128;
    edge.logprobs.top = 20;
    const PieceOutput output = step(*engine, prefill_of(edge)).pieces[0];
    ASSERT_EQ(output.tokens.size(), 128u);
    EXPECT_TRUE(output.finite);
    for (std::int32_t token : output.tokens)
        EXPECT_EQ(token, output.tokens[0]); // top-p 0: the likeliest
    EXPECT_EQ(output.tokens[0] % 2, 1);
}

// Every sequence of a step may have as many biases as one may.
TEST(Sampling, BiasesOfOneSequenceAreItsOwn) {
    auto [opened, engine] = load_engine(synthetic_model(kModel), options());
    StepInput input{.phase = graph::Phase::kPrefill};
    for (std::int32_t s = 0; s < 8; ++s) {
        std::vector<LogitBias> bias;
        for (std::int32_t i = 0; i < 300; ++i)
            bias.push_back({i, i == 10 * s + 1 ? 100.0f : -100.0f});
        input.pieces.push_back(
            piece(open(*engine), {1, 2, 3}, {.bias = s == 5 ? std::vector<LogitBias>() : bias}));
    }
    const StepOutput output = step(*engine, input);
    for (std::int32_t s = 0; s < 8; ++s)
        if (s != 5) {
            EXPECT_EQ(output.pieces[static_cast<std::size_t>(s)].tokens[0], 10 * s + 1);
        }
    EXPECT_TRUE(engine->close_sequence(input.pieces[0].sequence).ok());
    EXPECT_EQ(output.pieces[5].tokens,
              step(*engine, prefill_of(piece(open(*engine), {1, 2, 3}))).pieces[0].tokens);
}

} // namespace
} // namespace lr::engine
