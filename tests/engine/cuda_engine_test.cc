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

TEST_P(CudaEngine, AgreesWithTheCpuAsFarAsRoundingsAllow) {
    if (!on_gpu())
        return;
    auto gpu = load({.cuda = 0});
    auto cpu = load({});
    const auto ids = some_ids(200, cpu.engine->config().vocab_size, 11);
    const auto vocab = static_cast<std::size_t>(cpu.engine->config().vocab_size);
    Agreement agreement;
    const auto compare = [&](const std::vector<float>& a, const std::vector<float>& b) {
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t at = 0; at < a.size(); at += vocab)
            agreement.add({a.begin() + at, a.begin() + at + vocab},
                          {b.begin() + at, b.begin() + at + vocab});
    };
    const SequenceId on_cpu = open(*cpu.engine), on_gpu = open(*gpu.engine);
    compare(prefill(*cpu.engine, on_cpu, ids, Logits::kAll),
            prefill(*gpu.engine, on_gpu, ids, Logits::kAll));
    for (int i = 0; i < 32; ++i)
        compare(decode(*cpu.engine, on_cpu, ids[static_cast<std::size_t>(i)]),
                decode(*gpu.engine, on_gpu, ids[static_cast<std::size_t>(i)]));
    std::printf("%s: KL mean %.1e, worst %.1e, %d of %d rows have another likeliest token (widest "
                "lead %.1e)\n",
                GetParam().c_str(), agreement.mean(), agreement.worst(), agreement.flips(),
                agreement.rows(), agreement.widest_flip());
    if (GetParam() == "tiny") { // a random mixture routes elsewhere at the least rounding
        EXPECT_LE(agreement.mean(), 1e-4);
        EXPECT_LE(10 * agreement.flips(), agreement.rows());
    }
}

TEST_P(CudaEngine, WhatAGpuCannotDoIsRefusedByName) {
    auto opened = model::open_model(model_folder(GetParam()));
    ASSERT_TRUE(opened);
    EngineOptions wrong = options({.cuda = 0});
    wrong.precision = ops::Precision::kF32;
    const auto engine = Engine::load(*opened, wrong);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().message(),
              "cuda: expected precision bf16, got f32 (the CPU has it)");
}

} // namespace
} // namespace lr::engine
