// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/compare.h"

#include <algorithm>

namespace lr::engine {
namespace {

const auto* const kRemoveModels = testing::AddGlobalTestEnvironment(new RemoveModels);

EngineOptions options(ops::Precision precision = ops::Precision::kModel) {
    EngineOptions o;
    o.threads = 2;
    o.precision = precision;
    o.context = 512;
    o.sequences = 8;
    return o;
}

class EveryModel : public testing::TestWithParam<RandomModel> {
  protected:
    std::string folder() const { return synthetic_model(GetParam().name); }
};
INSTANTIATE_TEST_SUITE_P(Engine, EveryModel, testing::ValuesIn(random_models()),
                         [](const auto& info) { return test_name(info.param.name); });

TEST_P(EveryModel, PrefillEqualsPrefillPlusDecodeEqualsTokenByTokenInF32) {
    auto [opened, engine] = load_engine(folder(), options(ops::Precision::kF32));
    for (std::int64_t length : {2, 3, 64, 65, 130}) {
        const auto ids = some_ids(length, engine->config().vocab_size, 7);
        const SequenceId whole = open(*engine), split = open(*engine), single = open(*engine);
        const auto reference = prefill(*engine, whole, ids);
        prefill(*engine, split, {ids.begin(), ids.end() - 1});
        const auto after_decode = decode(*engine, split, ids.back());
        std::vector<float> one_by_one;
        for (std::size_t i = 0; i < ids.size(); ++i)
            one_by_one =
                i == 0 ? prefill(*engine, single, {ids[0]}) : decode(*engine, single, ids[i]);
        EXPECT_LE(relative_difference(after_decode, reference), 1e-5) << "length " << length;
        EXPECT_LE(relative_difference(one_by_one, reference), 1e-5) << "length " << length;
        expect_same_states(*engine, split, *engine, whole, 1e-5);
        expect_same_states(*engine, single, *engine, whole, 1e-5);
        for (SequenceId id : {whole, split, single})
            EXPECT_TRUE(engine->close_sequence(id).ok());
    }
}

TEST_P(EveryModel, ChunkStartsAtAnyMultipleOf64WithTheSameBits) {
    for (ops::Precision precision : {ops::Precision::kModel, ops::Precision::kF32}) {
        auto [opened, engine] = load_engine(folder(), options(precision));
        const auto ids = some_ids(200, engine->config().vocab_size, 8);
        const SequenceId whole = open(*engine);
        const auto reference = prefill(*engine, whole, ids);
        for (std::int64_t cut : {64, 128, 192}) {
            const SequenceId pieces = open(*engine);
            prefill(*engine, pieces, {ids.begin(), ids.begin() + cut});
            EXPECT_EQ(prefill(*engine, pieces, {ids.begin() + cut, ids.end()}), reference)
                << "cut at " << cut;
            EXPECT_TRUE(engine->close_sequence(pieces).ok());
        }
    }
}

TEST_P(EveryModel, ARowsBitsDoNotDependOnMatesPositionOrBucket) {
    auto [opened, engine] = load_engine(folder(), options());
    expect_rows_independent(*engine);
}

TEST_P(EveryModel, AReusedSlotStartsFromZero) {
    auto [opened, engine] = load_engine(folder(), options());
    const auto ids = some_ids(40, engine->config().vocab_size, 10);
    const SequenceId first = open(*engine);
    const auto fresh = prefill(*engine, first, ids);
    EXPECT_TRUE(engine->close_sequence(first).ok());
    const SequenceId other = open(*engine);
    prefill(*engine, other, some_ids(100, engine->config().vocab_size, 11));
    EXPECT_TRUE(engine->close_sequence(other).ok());
    EXPECT_EQ(prefill(*engine, open(*engine), ids), fresh);
}

TEST_P(EveryModel, ThreadsDoNotChangeBits) {
    const auto run = [&](int threads) {
        EngineOptions o = options();
        o.threads = threads;
        auto [opened, engine] = load_engine(folder(), o);
        const auto ids = some_ids(70, engine->config().vocab_size, 12);
        return prefill(*engine, open(*engine), ids, Logits::kAll);
    };
    EXPECT_EQ(run(1), run(3));
}

// The norm reads the rounded residual (hf) or the unrounded sum (seed): without roundings the same.
TEST(Engine, NumericsDifferByTheResidualsRoundingOnly) {
    const auto run = [](ops::Numerics numerics, ops::Precision precision) {
        EngineOptions o = options(precision);
        o.numerics = numerics;
        auto [opened, engine] = load_engine(synthetic_model("dense-untied-r2"), o);
        return prefill(*engine, open(*engine), some_ids(70, engine->config().vocab_size, 30));
    };
    using ops::Numerics;
    using ops::Precision;
    EXPECT_EQ(run(Numerics::kHf, Precision::kF32), run(Numerics::kSeed, Precision::kF32));
    const auto hf = run(Numerics::kHf, Precision::kModel);
    const auto seed = run(Numerics::kSeed, Precision::kModel);
    EXPECT_NE(hf, seed);
    EXPECT_LE(divergence(hf, seed), 1e-2);
}

TEST(Engine, RunsFp8BlockWeights) {
    auto [opened, engine] =
        load_engine(synthetic_model("moe-untied-r1", model::WeightFormat::kFp8Block), options());
    auto [plain_opened, plain] = load_engine(synthetic_model("moe-untied-r1"), options());
    const auto ids = some_ids(70, engine->config().vocab_size, 13);
    const auto fp8 = prefill(*engine, open(*engine), ids);
    const auto bf16 = prefill(*plain, open(*plain), ids);
    EXPECT_LE(divergence(bf16, fp8), 0.1); // the same model, quantised
    EXPECT_NE(fp8, bf16);
}

TEST(Engine, PipelinesDecodeStepsThroughTheLastDrawnToken) {
    auto [opened, engine] = load_engine(synthetic_model("moe-tied-r2"), options());
    const auto ids = some_ids(10, engine->config().vocab_size, 14);
    // One at a time, the token going through the host.
    std::vector<std::int32_t> expected;
    const SequenceId slow = open(*engine);
    StepInput first{.phase = graph::Phase::kPrefill};
    first.pieces.push_back({.sequence = slow, .tokens = ids});
    expected.push_back(step(*engine, first).pieces[0].tokens[0]);
    for (int i = 0; i < 8; ++i) {
        StepInput input{.phase = graph::Phase::kDecode};
        input.pieces.push_back({.sequence = slow, .tokens = {expected.back()}});
        expected.push_back(step(*engine, input).pieces[0].tokens[0]);
    }
    // All submitted before any result is read.
    const SequenceId fast = open(*engine);
    first.pieces[0].sequence = fast;
    std::vector<Ticket> tickets = {*engine->submit(first)};
    for (int i = 0; i < 8; ++i) {
        StepInput input{.phase = graph::Phase::kDecode};
        input.pieces.push_back({.sequence = fast, .tokens = {}});
        tickets.push_back(*engine->submit(input));
    }
    for (std::size_t i = 0; i < tickets.size(); ++i)
        EXPECT_EQ(engine->wait(tickets[i])->pieces[0].tokens[0], expected[i]);
    EXPECT_EQ(*engine->length(fast), 18);
}

// A sequence may be closed while steps of it are queued; its number goes to another.
TEST(Engine, ClosingASequenceWithStepsUnderWayLeavesItsSuccessorAlone) {
    EngineOptions o = options();
    o.sequences = 1;
    auto [opened, engine] = load_engine(synthetic_model("moe-tied-r2"), o);
    const auto ids = some_ids(40, engine->config().vocab_size, 31);
    const SequenceId alone = open(*engine);
    const auto expected = prefill(*engine, alone, ids);
    EXPECT_TRUE(engine->close_sequence(alone).ok());
    for (int round = 0; round < 5; ++round) {
        const SequenceId first = open(*engine);
        StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back({.sequence = first, .tokens = some_ids(100, 64, 32)});
        const auto ticket = engine->submit(input);
        ASSERT_TRUE(ticket);
        EXPECT_TRUE(engine->close_sequence(first).ok());
        const SequenceId second = open(*engine);
        EXPECT_EQ(prefill(*engine, second, ids), expected) << "round " << round;
        EXPECT_TRUE(engine->wait(*ticket));
        EXPECT_TRUE(engine->close_sequence(second).ok());
    }
}

TEST(Engine, DrawsByTemperatureDependOnSeedAndPositionOnly) {
    const Loaded loaded = load_engine(synthetic_model("moe-tied-r2"), options());
    Engine& engine = *loaded.engine;
    const auto ids = some_ids(10, engine.config().vocab_size, 15);
    const auto draw = [&](std::uint64_t seed) {
        const SequenceId id = open(engine);
        std::vector<std::int32_t> tokens;
        StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back(
            {.sequence = id, .tokens = ids, .sampling = {.temperature = 1.0f, .seed = seed}});
        for (int i = 0; i < 12; ++i) {
            tokens.push_back(step(engine, input).pieces[0].tokens[0]);
            input.phase = graph::Phase::kDecode;
            input.pieces[0].tokens = {tokens.back()};
        }
        EXPECT_TRUE(engine.close_sequence(id).ok());
        return tokens;
    };
    EXPECT_EQ(draw(1), draw(1));
    EXPECT_NE(draw(1), draw(2));
}

TEST(Engine, NeverDrawsPaddingRowsOfTheVocabulary) {
    EngineOptions o = options();
    o.vocab_limit = 3;
    auto [opened, engine] = load_engine(synthetic_model("moe-tied-r2"), o);
    for (float temperature : {0.0f, 100.0f}) {
        StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back({.sequence = open(*engine),
                                .tokens = some_ids(100, engine->config().vocab_size, 16),
                                .logits = Logits::kAll,
                                .sampling = {.temperature = temperature}});
        const StepOutput output = step(*engine, input);
        ASSERT_EQ(output.pieces[0].tokens.size(), 100u);
        for (std::int32_t token : output.pieces[0].tokens)
            EXPECT_LT(token, 3);
    }
}

class Refusals : public testing::Test {
  protected:
    Refusals() : loaded_(load_engine(synthetic_model("dense-tied-r1"), options())) {}

    void expect_refused(const StepInput& input, std::string_view fragment) {
        const auto ticket = loaded_.engine->submit(input);
        ASSERT_FALSE(ticket);
        EXPECT_NE(ticket.error().message().find(fragment), std::string::npos)
            << ticket.error().message();
    }

    Loaded loaded_;
};

TEST_F(Refusals, NameWhatWasExpectedAndGot) {
    Engine& engine = *loaded_.engine;
    const SequenceId id = open(engine);
    const auto prefill_of = [&](std::vector<std::int32_t> tokens) {
        StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back({.sequence = id, .tokens = std::move(tokens)});
        return input;
    };
    expect_refused({}, "expected 1..8 pieces, got 0");
    expect_refused(prefill_of({}), "expected a token, got none");
    expect_refused(prefill_of({1, 2, 99999}), "token 2: expected an id in 0..");
    expect_refused(prefill_of({-1}), "token 0: expected an id in 0..");
    expect_refused(prefill_of(std::vector<std::int32_t>(513, 1)), "at most 512 tokens, got 513");
    StepInput decode_two = prefill_of({1, 2});
    decode_two.phase = graph::Phase::kDecode;
    expect_refused(decode_two, "at most one token a sequence, got 2");
    StepInput no_last = prefill_of({});
    no_last.phase = graph::Phase::kDecode;
    expect_refused(no_last, "expected a token, got none");
    StepInput twice = prefill_of({1});
    twice.pieces.push_back(twice.pieces[0]);
    expect_refused(twice, "appears twice");
    StepInput hot = prefill_of({1});
    hot.pieces[0].sampling.temperature = std::nanf("");
    expect_refused(hot, "temperature: expected 0..100, got nan");
    StepInput stranger = prefill_of({1});
    stranger.pieces[0].sequence = {.index = 77, .generation = 1};
    expect_refused(stranger, "no such sequence");
    // The sequence is as it was.
    EXPECT_EQ(*engine.length(id), 0);
    prefill(engine, id, {1, 2, 3});
    EXPECT_TRUE(engine.close_sequence(id).ok());
    expect_refused(prefill_of({1}), "it has been closed");
}

TEST_F(Refusals, StopAtTheContextAndAtTheSlots) {
    Engine& engine = *loaded_.engine;
    const SequenceId id = open(engine);
    prefill(engine, id, std::vector<std::int32_t>(512, 1));
    StepInput more{.phase = graph::Phase::kDecode};
    more.pieces.push_back({.sequence = id, .tokens = {1}});
    expect_refused(more, "513 tokens are more than its context of 512");
    for (int i = 0; i < 7; ++i)
        open(engine);
    const auto ninth = engine.open_sequence();
    ASSERT_FALSE(ninth);
    EXPECT_EQ(ninth.error().code(), Code::kResourceExhausted);
    EXPECT_EQ(engine.poll(Ticket{12345}).error().code(), Code::kNotFound);
}

} // namespace
} // namespace lr::engine
