// SPDX-License-Identifier: Apache-2.0
//
// A random model on disk, made once for a test binary, and an engine on it.
#pragma once

#include "core/text_file.h"
#include "engine/engine.h"
#include "model/open.h"
#include "model/synth.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace lr::engine {

inline std::string source_path(const std::string& relative) {
    return std::string(LR_SOURCE_DIR) + "/" + relative;
}

// A line of tests/goldens/models.txt: a random model and how its checkpoint stores it.
struct RandomModel {
    std::string name;
    bool split_experts = false, bf16_vectors = false;
};

inline const std::vector<RandomModel>& random_models() {
    static const auto models = [] {
        std::vector<RandomModel> found;
        std::ifstream file(source_path("tests/goldens/models.txt"));
        for (std::string line; std::getline(file, line);)
            if (!line.starts_with('#'))
                found.push_back({line.substr(0, line.find(' ')),
                                 line.find("--split-experts") != std::string::npos,
                                 line.find("--bf16-vectors") != std::string::npos});
        EXPECT_FALSE(found.empty());
        return found;
    }();
    return models;
}

inline std::string test_name(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

inline model::Config random_config(const std::string& name) {
    const std::string path = source_path("tests/goldens/" + name + "/config.json");
    const auto text = read_text_file(path);
    EXPECT_TRUE(text) << (text ? "" : text.error().message());
    const auto config = model::parse_config(*parse_json(*text, path), path);
    EXPECT_TRUE(config) << (config ? "" : config.error().message());
    return *config;
}

// How the goldens store a random model.
inline model::SynthOptions random_storage(const std::string& name) {
    model::SynthOptions options;
    options.seed = 1;
    options.overwrite = true;
    for (const RandomModel& model : random_models())
        if (model.name == name) {
            options.split_experts = model.split_experts;
            options.bf16_vectors = model.bf16_vectors;
        }
    return options;
}

// Folder of a synthetic checkpoint, made once under its key.
inline std::string write_model(const std::string& key, const model::Config& config,
                               const model::SynthOptions& options) {
    static std::map<std::string, std::string> made;
    if (const auto found = made.find(key); found != made.end())
        return found->second;
    const std::string folder =
        testing::TempDir() + "liverow-engine-" + key + "-" + std::to_string(::getpid());
    ThreadPool pool(1);
    const auto report = model::synth_checkpoint(folder, config, options, pool);
    EXPECT_TRUE(report) << (report ? "" : report.error().message());
    return made[key] = folder;
}

// Folder of the synthetic checkpoint for tests/goldens/<name>/config.json.
inline std::string synthetic_model(const std::string& name,
                                   model::WeightFormat format = model::WeightFormat::kPlain) {
    model::SynthOptions options = random_storage(name);
    options.format = format;
    return write_model(name + std::string(numerics::weight_format_name(format)),
                       random_config(name), options);
}

// Removes the synthetic checkpoints when the binary ends.
class RemoveModels : public testing::Environment {
  public:
    void TearDown() override {
        for (const auto& entry : std::filesystem::directory_iterator(testing::TempDir()))
            if (entry.path().filename().string().starts_with("liverow-engine-") &&
                entry.path().filename().string().ends_with("-" + std::to_string(::getpid())))
                std::filesystem::remove_all(entry.path());
    }
};

struct Loaded {
    std::unique_ptr<model::OpenModel> opened;
    std::unique_ptr<Engine> engine;
};

inline Loaded load_engine(const std::string& folder, EngineOptions options) {
    Loaded loaded;
    auto opened = model::open_model(folder);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
    loaded.opened = std::make_unique<model::OpenModel>(std::move(*opened));
    auto engine = Engine::load(*loaded.opened, options);
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message());
    loaded.engine = std::move(*engine);
    return loaded;
}

inline std::vector<std::int32_t> some_ids(std::int64_t count, std::int64_t vocab,
                                          std::uint64_t seed) {
    std::vector<std::int32_t> ids;
    const numerics::CounterRng rng("ids", seed);
    for (std::int64_t i = 0; i < count; ++i)
        ids.push_back(static_cast<std::int32_t>(rng.bits(static_cast<std::uint64_t>(i)) %
                                                static_cast<std::uint64_t>(vocab)));
    return ids;
}

inline SequenceId open(Engine& engine) {
    const auto id = engine.open_sequence();
    EXPECT_TRUE(id) << (id ? "" : id.error().message());
    return id ? *id : SequenceId{};
}

// Runs one step and returns its output; the test fails on an error.
inline StepOutput step(Engine& engine, StepInput input) {
    const auto ticket = engine.submit(std::move(input));
    EXPECT_TRUE(ticket) << (ticket ? "" : ticket.error().message());
    if (!ticket)
        return {};
    auto output = engine.wait(*ticket);
    EXPECT_TRUE(output) << (output ? "" : output.error().message());
    return output ? std::move(*output) : StepOutput{};
}

// Appends tokens by one prefill step; logits of the last row, or of all.
inline std::vector<float> prefill(Engine& engine, SequenceId id, std::vector<std::int32_t> tokens,
                                  Logits logits = Logits::kLast) {
    StepInput input{.phase = graph::Phase::kPrefill, .copy_logits = true};
    input.pieces.push_back({.sequence = id, .tokens = std::move(tokens), .logits = logits});
    StepOutput output = step(engine, std::move(input));
    return output.pieces.empty() ? std::vector<float>() : output.pieces[0].logits;
}

inline std::vector<float> decode(Engine& engine, SequenceId id, std::int32_t token) {
    StepInput input{.phase = graph::Phase::kDecode, .copy_logits = true};
    input.pieces.push_back({.sequence = id, .tokens = {token}});
    StepOutput output = step(engine, std::move(input));
    return output.pieces.empty() ? std::vector<float>() : output.pieces[0].logits;
}

// The larger one, where a NaN is larger than anything.
inline double worse(double worst, double error) {
    return std::isnan(error) ? INFINITY : std::max(worst, error);
}

inline std::vector<graph::StateKind> state_kinds(const Engine& engine, std::int32_t layer) {
    using graph::StateKind;
    if (engine.config().layers[static_cast<std::size_t>(layer)] == model::LayerKind::kGdn)
        return {StateKind::kConv, StateKind::kSsm};
    return {StateKind::kKeys, StateKind::kValues};
}

inline std::vector<float> state_floats(Engine& engine, SequenceId id, std::int32_t layer,
                                       graph::StateKind kind, DType dtype = DType::kF32) {
    const auto bytes = engine.read_state(id, layer, kind);
    EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message());
    const auto size = static_cast<std::size_t>(dtype_bytes(dtype, 1));
    std::vector<float> floats(bytes->size() / size);
    for (std::size_t i = 0; i < floats.size(); ++i) {
        std::uint16_t code = 0;
        if (dtype == DType::kF32)
            std::memcpy(&floats[i], bytes->data() + size * i, size);
        else
            std::memcpy(&code, bytes->data() + size * i, size);
        if (dtype == DType::kBF16)
            floats[i] = numerics::decode_bf16(code);
    }
    return floats;
}

// Largest |a - b| over the standard deviation of b.
inline double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double mean = 0, square = 0, worst = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        mean += b[i];
        square += static_cast<double>(b[i]) * b[i];
        const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
        worst = worse(worst, difference);
    }
    const auto n = static_cast<double>(b.size());
    return worst / std::sqrt(square / n - mean / n * mean / n);
}

// Largest |a - b| over the largest |b|.
inline double difference_to_largest(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
        worst = worse(worst, difference);
        largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    }
    return worst / largest;
}

// KL(p || q) of two rows of logits.
inline double divergence(const std::vector<float>& p, const std::vector<float>& q) {
    const auto log_sum = [](const std::vector<float>& x) {
        const double top = *std::max_element(x.begin(), x.end());
        double sum = 0;
        for (float v : x)
            sum += std::exp(v - top);
        return top + std::log(sum);
    };
    const double zp = log_sum(p), zq = log_sum(q);
    double kl = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
        kl += std::exp(p[i] - zp) * ((p[i] - zp) - (q[i] - zq));
    return kl;
}

} // namespace lr::engine
