// SPDX-License-Identifier: Apache-2.0
//
// One model, however its files store it; and each model over a short prompt.
#include "tests/engine/fixture.h"

namespace lr::engine {
namespace {

EngineOptions options() {
    EngineOptions o;
    o.threads = 2;
    o.context = 256;
    o.sequences = 2;
    return o;
}

// Logits of all rows of a prompt, then of one decode step.
std::vector<float> run(const std::string& folder) {
    auto [opened, engine] = load_engine(folder, options());
    const auto sequence = engine->open_sequence();
    EXPECT_TRUE(sequence);
    auto logits =
        prefill(*engine, *sequence, some_ids(70, engine->config().vocab_size, 3), Logits::kAll);
    const auto next = decode(*engine, *sequence, 5);
    logits.insert(logits.end(), next.begin(), next.end());
    return logits;
}

class Storage : public testing::TestWithParam<RandomModel> {
  protected:
    std::string folder() const { return synthetic_model(GetParam().name); }
    std::string write(const char* tag, const model::Config& config,
                      const model::SynthOptions& options) const {
        return write_model(GetParam().name + tag, config, options);
    }
    model::Config config() const { return random_config(GetParam().name); }
    model::SynthOptions storage() const { return random_storage(GetParam().name); }
};
INSTANTIATE_TEST_SUITE_P(Engine, Storage, testing::ValuesIn(random_models()),
                         [](const auto& info) { return test_name(info.param.name); });

TEST_P(Storage, ManyShardsGiveTheSameBitsAsOneFile) {
    auto storage = this->storage();
    storage.max_shard_bytes = 100'000;
    const std::string many = write("-shards", config(), storage);
    EXPECT_TRUE(std::filesystem::exists(many + "/model.safetensors.index.json"));
    EXPECT_EQ(run(many), run(folder()));
}

// In a dense model the option must change nothing.
TEST_P(Storage, ExpertsStoredOneByOneGiveTheSameBitsAsAStack) {
    auto storage = this->storage();
    storage.split_experts = !storage.split_experts;
    EXPECT_EQ(run(write("-experts", config(), storage)), run(folder()));
}

// An MTP layer in the files, in the config, in both or in neither is none of the step's business.
TEST_P(Storage, MtpTensorsChangeNothing) {
    model::Config with = config(), without = config();
    with.mtp_layers = 1;
    without.mtp_layers = 0;
    const std::string full = write("-mtp", with, storage());
    const std::string bare = write("-no-mtp", without, storage());
    const auto expected = run(folder());
    EXPECT_EQ(run(full), expected);
    EXPECT_EQ(run(bare), expected);
    const auto swap = [&](const std::string& name) {
        std::filesystem::rename(full + "/" + name, full + "/kept");
        std::filesystem::rename(bare + "/" + name, full + "/" + name);
        std::filesystem::rename(full + "/kept", bare + "/" + name);
    };
    swap("config.json");
    EXPECT_EQ(run(full), expected) << "tensors that the config does not mention";
    EXPECT_EQ(run(bare), expected) << "a config that promises what the files lack";
}

// Positions 0..11, where a fixed one may go wrong: finite logits, and finite states of every layer.
TEST_P(Storage, ShortPromptsAreFiniteAtEveryPositionAndLayer) {
    auto [opened, engine] = load_engine(folder(), options());
    const auto ids = some_ids(12, engine->config().vocab_size, 4);
    const auto finite = [](const std::vector<float>& values) {
        return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    };
    for (std::size_t length = 1; length <= ids.size(); ++length) {
        const auto sequence = engine->open_sequence();
        ASSERT_TRUE(sequence);
        const auto logits =
            prefill(*engine, *sequence,
                    {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length)}, Logits::kAll);
        ASSERT_EQ(std::ssize(logits),
                  static_cast<std::int64_t>(length) * engine->config().vocab_size);
        EXPECT_TRUE(finite(logits)) << "length " << length;
        for (std::int32_t layer = 0; layer < engine->config().layer_count(); ++layer)
            for (const auto kind : state_kinds(*engine, layer))
                EXPECT_TRUE(finite(
                    state_floats(*engine, *sequence, layer, kind,
                                 kind == graph::StateKind::kSsm ? DType::kF32 : DType::kBF16)))
                    << "length " << length << ", layer " << layer;
        EXPECT_TRUE(engine->close_sequence(*sequence).ok());
    }
}

} // namespace
} // namespace lr::engine
