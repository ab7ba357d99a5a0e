// SPDX-License-Identifier: Apache-2.0
//
// An engine on a GPU beside one on the CPU. Without a GPU these tests hold the engine to its
// promise: one clear line, no crash.
#include "cuda/device.h"
#include "tests/engine/compare.h"

namespace lr::engine {
namespace {

EngineOptions options(Place place) {
    EngineOptions o;
    o.place = place;
    o.threads = 2;
    o.context = 512;
    o.sequences = 8;
    return o;
}

// The GPU's refusal where there is none.
class CudaEngine : public testing::TestWithParam<std::string> {
  protected:
    bool on_gpu() {
        if (cuda::list_devices())
            return true;
        auto opened = model::open_model(model_folder(GetParam()));
        EXPECT_TRUE(opened);
        const auto engine = Engine::load(*opened, options({.cuda = 0}));
        EXPECT_FALSE(engine);
        const std::string message = engine ? "" : engine.error().message();
        EXPECT_TRUE(message == "no CUDA driver on this machine" ||
                    message == "this build has no CUDA")
            << message;
        return false;
    }
    Loaded load(Place place) const { return load_engine(model_folder(GetParam()), options(place)); }
};
INSTANTIATE_TEST_SUITE_P(Engine, CudaEngine, testing::Values("tiny", "moe-tp4"),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(CudaEngine, RowsDependOnTheirOwnSequenceAlone) {
    if (!on_gpu())
        return;
    expect_rows_independent(*load({.cuda = 0}).engine);
}

TEST_P(CudaEngine, StepsAreTheSameBitsTwiceAndInOtherSlots) {
    if (!on_gpu())
        return;
    auto [opened, engine] = load({.cuda = 0});
    const auto ids = some_ids(130, engine->config().vocab_size, 3);
    std::vector<std::vector<float>> first;
    for (int round = 0; round < 3; ++round) {
        const SequenceId other = open(*engine); // takes a slot, pages and keeps them for a round
        prefill(*engine, other, some_ids(70 + round, engine->config().vocab_size, 5));
        const SequenceId id = open(*engine);
        std::vector<std::vector<float>> logits = {prefill(*engine, id, ids)};
        for (int i = 0; i < 64; ++i)
            logits.push_back(decode(*engine, id, ids[static_cast<std::size_t>(i)]));
        if (round == 0)
            first = logits;
        EXPECT_EQ(logits, first) << "round " << round;
        EXPECT_TRUE(engine->close_sequence(id).ok());
    }
}

// What bf16 costs each of the two against f32, at each row of a prompt and of a decode, is about
// the same. (Neither is routed as f32 is, so single rows may be far off.)
TEST_P(CudaEngine, IsAsNearToF32AsTheCpuIs) {
    if (!on_gpu())
        return;
    EngineOptions exact = options({});
    exact.precision = ops::Precision::kF32;
    Loaded loaded[] = {load_engine(model_folder(GetParam()), exact), load({}), load({.cuda = 0})};
    const auto vocab = static_cast<std::ptrdiff_t>(loaded[0].engine->config().vocab_size);
    const auto ids = some_ids(200, vocab, 11);
    std::vector<float> logits[3];
    for (std::size_t i = 0; i < 3; ++i) {
        Engine& engine = *loaded[i].engine;
        const SequenceId id = open(engine);
        logits[i] = prefill(engine, id, ids, Logits::kAll);
        for (std::size_t t = 0; t < 32; ++t) {
            const auto row = decode(engine, id, ids[t]);
            logits[i].insert(logits[i].end(), row.begin(), row.end());
        }
        ASSERT_EQ(logits[i].size(), logits[0].size());
    }
    Agreement cost[3];
    for (std::ptrdiff_t at = 0; at < std::ssize(logits[0]); at += vocab)
        for (std::size_t i = 1; i < 3; ++i)
            cost[i].add({logits[0].begin() + at, logits[0].begin() + at + vocab},
                        {logits[i].begin() + at, logits[i].begin() + at + vocab});
    std::printf("%s: KL against f32, mean and worst: CPU %.1e, %.1e; GPU %.1e, %.1e; other "
                "likeliest token in %d and %d of %d rows\n",
                GetParam().c_str(), cost[1].mean(), cost[1].worst(), cost[2].mean(),
                cost[2].worst(), cost[1].flips(), cost[2].flips(), cost[2].rows());
    EXPECT_LE(cost[2].mean(), 3 * cost[1].mean());
    EXPECT_LE(10 * cost[2].flips(), cost[2].rows());
}

TEST_P(CudaEngine, WhatAGpuCannotDoIsRefusedByName) {
    auto opened = model::open_model(model_folder(GetParam()));
    ASSERT_TRUE(opened);
    EngineOptions wrong = options({.cuda = 0});
    wrong.precision = ops::Precision::kF32;
    const auto engine = Engine::load(*opened, wrong);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().message(), "cuda: expected precision bf16, got f32 (the CPU has it)");
}

} // namespace
} // namespace lr::engine
