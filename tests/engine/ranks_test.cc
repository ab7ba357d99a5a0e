// SPDX-License-Identifier: Apache-2.0
//
// Whole models on several ranks against one rank.
#include "engine/routing_record.h"
#include "graph/plan.h"
#include "tests/engine/compare.h"

#include <array>
#include <atomic>

namespace lr::engine {
namespace {

struct Layout {
    const char* model;
    std::int32_t tp, ep;
    friend std::ostream& operator<<(std::ostream& out, const Layout& l) {
        return out << l.model << " tp=" << l.tp << " ep=" << l.ep;
    }
};

constexpr Layout kLayouts[] = {
    {"dense-tied-r1", 2, 1},
    {"dense-untied-r2", 2, 1},
    {"dense-tied-r3", 2, 1},
    {"moe-untied-r1", 2, 1},
    {"moe-untied-r1", 1, 2},
    {"moe-untied-r1", 2, 2},
    {"moe-tied-r2", 2, 1},
    {"moe-tied-r2", 1, 4},
    {"moe-tied-r2", 2, 2},
    {"moe-tied-r4-top8", 2, 2},
    {"moe-untied-r4-top10", 1, 4},
    {"moe-tp4", 4, 1},
    {"moe-tp4", 4, 2},
    {"tiny", 2, 1},
    {"tiny", 2, 2},
};

EngineOptions options(ops::Precision precision, std::int32_t tp = 1, std::int32_t ep = 1) {
    EngineOptions o;
    o.threads = 2;
    o.precision = precision;
    o.context = 256;
    o.sequences = 4;
    o.tp = tp;
    o.ep = ep;
    return o;
}

class Ranks : public testing::TestWithParam<Layout> {
  protected:
    EngineOptions sharded(ops::Precision precision) const {
        return options(precision, GetParam().tp, GetParam().ep);
    }
    std::string folder() const { return model_folder(GetParam().model); }
};
INSTANTIATE_TEST_SUITE_P(Engine, Ranks, testing::ValuesIn(kLayouts), [](const auto& info) {
    return test_name(fmt::format("{}_tp{}_ep{}", info.param.model, info.param.tp, info.param.ep));
});

TEST_P(Ranks, LogitsAndStatesAgreeWithOneRankInF32) {
    auto [one_opened, one] = load_engine(folder(), options(ops::Precision::kF32));
    auto [opened, engine] = load_engine(folder(), sharded(ops::Precision::kF32));
    EXPECT_EQ(engine->report().ranks, GetParam().tp * GetParam().ep);
    const auto ids = some_ids(75, engine->config().vocab_size, 40);
    const SequenceId a = open(*one), b = open(*engine);
    const std::vector<std::int32_t> prompt(ids.begin(), ids.begin() + 70);
    double worst = relative_difference(prefill(*engine, b, prompt, Logits::kAll),
                                       prefill(*one, a, prompt, Logits::kAll));
    expect_same_states(*engine, b, *one, a, 1e-5);
    for (std::size_t i = 70; i < ids.size(); ++i)
        worst = std::max(worst,
                         relative_difference(decode(*engine, b, ids[i]), decode(*one, a, ids[i])));
    expect_same_states(*engine, b, *one, a, 1e-5);
    EXPECT_LE(worst, 1e-5);
}

// Each rank rounds its partial sums.
TEST_P(Ranks, AgreeWithOneRankInBf16WhenRoutedAlike) {
    RecordRouting record;
    EngineOptions o = options(ops::Precision::kModel);
    o.observer = &record;
    auto [one_opened, one] = load_engine(folder(), o);
    const auto ids = some_ids(96, one->config().vocab_size, 41);
    const auto run = [&](Engine& engine) {
        const SequenceId id = open(engine);
        auto logits = prefill(engine, id, {ids.begin(), ids.begin() + 80}, Logits::kAll);
        for (std::size_t i = 80; i < ids.size(); ++i) {
            const auto row = decode(engine, id, ids[i]);
            logits.insert(logits.end(), row.begin(), row.end());
        }
        return logits;
    };
    const auto expected = run(*one);
    const auto forced = [&](EngineOptions with) {
        ForceRouting force(record.record());
        with.observer = &force;
        auto [opened, engine] = load_engine(folder(), with);
        return run(*engine);
    };
    const auto ranks = forced(sharded(ops::Precision::kModel));
    const auto exact = forced(options(ops::Precision::kF32));
    RoutedAlike result;
    result.add(exact, expected, ranks, one->config().vocab_size);
    result.expect_roundings_only(fmt::format("{} tp={} ep={}, bf16 against one rank",
                                             GetParam().model, GetParam().tp, GetParam().ep));
}

TEST(RanksBits, RowsDoNotDependOnMatesAtTwoRanks) {
    for (const char* name : {"moe-tied-r2", "dense-untied-r2"}) {
        auto [opened, engine] =
            load_engine(model_folder(name), options(ops::Precision::kModel, 2, 1));
        expect_rows_independent(*engine);
    }
}

TEST(RanksBits, RunsRepeatAndThreadsDoNotMatter) {
    const auto run = [](int threads) {
        EngineOptions o = options(ops::Precision::kModel, 2, 2);
        o.threads = threads;
        auto [opened, engine] = load_engine(model_folder("moe-tied-r2"), o);
        const SequenceId id = open(*engine);
        auto logits = prefill(*engine, id, some_ids(70, 448, 42), Logits::kAll);
        const auto row = decode(*engine, id, 7);
        logits.insert(logits.end(), row.begin(), row.end());
        return logits;
    };
    const auto first = run(1);
    EXPECT_EQ(run(1), first);
    EXPECT_EQ(run(6), first);
}

// Keeps what the sampling node of each rank read and wrote.
class KeepDraws : public NodeObserver {
  public:
    Status after(const Launched& launched) override {
        const auto* args = std::get_if<ops::SampleArgs>(&launched.args);
        if (!args)
            return {};
        auto& kept = draws_[static_cast<std::size_t>(launched.rank)];
        for (ConstView view : {args->logits, ConstView(args->token), ConstView(args->status)})
            kept.insert(kept.end(), view.data, view.data + view.bytes());
        return {};
    }
    const std::vector<std::byte>& of(std::size_t rank) const { return draws_[rank]; }

  private:
    std::array<std::vector<std::byte>, 4> draws_; // ranks never share one
};

TEST(RanksBits, EveryRankHasTheSameLogitsAndDraws) {
    KeepDraws draws;
    EngineOptions o = options(ops::Precision::kModel, 2, 2);
    o.observer = &draws;
    auto [opened, engine] = load_engine(model_folder("moe-tied-r2"), o);
    const SequenceId id = open(*engine);
    StepInput input{.phase = graph::Phase::kPrefill};
    input.pieces.push_back({.sequence = id,
                            .tokens = some_ids(70, 448, 43),
                            .logits = Logits::kAll,
                            .sampling = {.temperature = 1.0f, .presence = 0.5f, .seed = 5}});
    step(*engine, input);
    input.phase = graph::Phase::kDecode;
    input.pieces[0].tokens = {};
    for (int i = 0; i < 3; ++i)
        step(*engine, input);
    EXPECT_GT(draws.of(0).size(), 73u * 448 * 4);
    for (std::size_t rank = 1; rank < 4; ++rank)
        EXPECT_EQ(draws.of(rank), draws.of(0)) << "rank " << rank;
}

TEST(RanksState, AForkTakesEveryRanksPartOfTheState) {
    auto [opened, engine] =
        load_engine(model_folder("moe-tied-r2"), options(ops::Precision::kModel, 2, 2));
    const auto ids = some_ids(70, 448, 45);
    const SequenceId parent = open(*engine);
    prefill(*engine, parent, ids);
    const auto child = engine->fork_sequence(parent);
    ASSERT_TRUE(child) << child.error().message();
    const auto expected = decode(*engine, parent, 9);
    EXPECT_EQ(decode(*engine, *child, 9), expected);
    EXPECT_TRUE(engine->read_state(*child, -1, graph::StateKind::kTokenCounts));
    const auto refused = engine->read_state(*child, 0, graph::StateKind::kKeys);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "layer 0: it keeps no state of this kind");
}

// Fails one node of one rank once.
class FailOnce : public NodeObserver {
  public:
    FailOnce(int rank, const char* node) : rank_(rank), node_(node) {}
    void arm() { armed_ = true; }
    Status after(const Launched& launched) override {
        if (launched.rank == rank_ && launched.node.id == node_ && armed_.exchange(false))
            return fail(Code::kResourceExhausted, "{}: no memory", launched.node.id);
        return {};
    }

  private:
    int rank_;
    std::string node_;
    std::atomic<bool> armed_ = false;
};

TEST(RanksFailure, OneRanksFailureFailsTheStepAndTheSequenceAlone) {
    for (int rank : {0, 1}) {
        FailOnce failure(rank, "L1.3");
        EngineOptions o = options(ops::Precision::kModel, 2, 1);
        o.observer = &failure;
        auto [opened, engine] = load_engine(model_folder("moe-tied-r2"), o);
        const auto ids = some_ids(40, 448, 44);
        const SequenceId other = open(*engine);
        const auto expected = prefill(*engine, other, ids);
        const auto next = decode(*engine, other, 3);
        EXPECT_TRUE(engine->close_sequence(other).ok());

        const SequenceId bad = open(*engine), good = open(*engine);
        EXPECT_EQ(prefill(*engine, good, ids), expected);
        failure.arm();
        StepInput input{.phase = graph::Phase::kPrefill};
        input.pieces.push_back({.sequence = bad, .tokens = ids});
        const auto ticket = engine->submit(input);
        ASSERT_TRUE(ticket);
        const auto output = engine->wait(*ticket);
        ASSERT_FALSE(output);
        EXPECT_EQ(output.error().message(), fmt::format("rank {}: L1.3: no memory", rank));
        EXPECT_EQ(output.error().code(), Code::kResourceExhausted);
        EXPECT_FALSE(engine->submit(input)) << "the sequence failed";
        EXPECT_EQ(decode(*engine, good, 3), next) << "others go on";
        EXPECT_TRUE(engine->close_sequence(bad).ok());
        EXPECT_EQ(prefill(*engine, open(*engine), ids), expected);
    }
}

TEST(RanksRefusals, NameWhatCannotBeDivided) {
    auto opened = model::open_model(model_folder("dense-tied-r1"));
    ASSERT_TRUE(opened);
    const auto error = [&](std::int32_t tp, std::int32_t ep) {
        const auto engine = Engine::load(*opened, options(ops::Precision::kModel, tp, ep));
        return engine ? "" : engine.error().message();
    };
    EXPECT_EQ(error(0, 1), "ranks: expected tp * ep in 1..16, got tp=0, ep=1");
    EXPECT_EQ(error(8, 4), "ranks: expected tp * ep in 1..16, got tp=8, ep=4");
    EXPECT_EQ(error(4, 1), "tp=4: GDN key heads=2 cannot be divided evenly");
    EXPECT_EQ(error(1, 2), "ep=2: expected 1, a dense model has no experts");
}

TEST(Observer, SeesEveryLaunchingNodeOnceInOrderOnEveryRank) {
    struct Names : NodeObserver {
        std::array<std::vector<std::string>, 2> ran;
        std::vector<std::string> expected;
        Status after(const Launched& launched) override {
            auto& mine = ran[static_cast<std::size_t>(launched.rank)];
            if (launched.rank == 0 && mine.empty())
                for (const graph::Launch& launch : graph::reference_plan(launched.step).launches)
                    expected.push_back(launch.name);
            mine.push_back(launched.node.id);
            EXPECT_FALSE(launched.written().empty()) << launched.node.label();
            for (const Launched::Written& written : launched.written())
                EXPECT_EQ(written.view.shape,
                          launched.step.tensors[static_cast<std::size_t>(written.tensor)].shape)
                    << launched.node.label() << " " << written.slot;
            return {};
        }
    } names;
    EngineOptions o = options(ops::Precision::kModel, 2, 1);
    o.observer = &names;
    auto [opened, engine] = load_engine(model_folder("moe-tied-r2"), o);
    prefill(*engine, open(*engine), {1, 2, 3});
    EXPECT_EQ(names.ran[0], names.expected);
    EXPECT_EQ(names.ran[1], names.expected);
}

} // namespace
} // namespace lr::engine
