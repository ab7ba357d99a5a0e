// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_config.h"
#include "core/text_file.h"
#include "model/presets.h"
#include "model/synth.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"
#include "numerics/quantize.h"
#include "tests/checkpoint/digest.h"
#include "tests/model/configs.h"
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <unistd.h>

namespace lr::model {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;

std::map<std::string, SynthTensor> by_name(const Config& config, std::string_view format) {
    std::map<std::string, SynthTensor> tensors;
    for (SynthTensor& tensor : synth_plan(Model::declare(config, *format_policy(format)))) {
        const std::string name = tensor.spec.name;
        EXPECT_TRUE(tensors.emplace(name, std::move(tensor)).second) << name;
    }
    return tensors;
}

std::vector<std::byte> values(const SynthTensor& tensor, std::uint64_t seed) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec.bytes()));
    synth_values(tensor, seed, 0, tensor.spec.shape.count(), bytes.data());
    return bytes;
}

// --- plan ---

TEST(SynthPlan, ListsTheTensorsOfTheRelease) {
    Config config = *preset("35B-A3B");
    const auto with_mtp = by_name(config, "bf16");
    EXPECT_EQ(with_mtp.size(), 693u + 785u);
    config.mtp_layers = 0;
    EXPECT_EQ(by_name(config, "bf16").size(), 693u);
    EXPECT_TRUE(with_mtp.contains("model.language_model.layers.0.mlp.experts.gate_up_proj"));
    EXPECT_TRUE(with_mtp.contains("mtp.layers.0.mlp.experts.255.up_proj.weight"));
    EXPECT_TRUE(with_mtp.contains("lm_head.weight"));
}

TEST(SynthPlan, BytesAreThoseOfTheTable) {
    for (const char* format : {"bf16", "fp8-block"}) {
        const Model model = Model::declare(*preset("35B-A3B"), *format_policy(format));
        std::int64_t expected = 0;
        for (const Entry& entry : model.entries())
            expected += entry.bytes();
        EXPECT_EQ(synth_bytes(synth_plan(model)), expected) << format;
    }
}

TEST(SynthPlan, QuantisesProjectionsAndStoresExpertsOneByOne) {
    const auto plan = by_name(*preset("35B-A3B"), "fp8-block");
    const std::string layer = "model.language_model.layers.0.";
    const SynthTensor& expert = plan.at(layer + "mlp.experts.7.down_proj.weight");
    EXPECT_EQ(expert.spec.dtype, DType::kE4M3);
    EXPECT_EQ(expert.spec.shape, Shape({2048, 512}));
    ASSERT_TRUE(expert.scale);
    EXPECT_EQ(expert.scale->name, layer + "mlp.experts.7.down_proj.weight_scale_inv");
    EXPECT_EQ(expert.scale->shape, Shape({16, 4}));
    EXPECT_EQ(expert.scale->dtype, DType::kBF16);
    EXPECT_FALSE(plan.contains(layer + "mlp.experts.down_proj"));
    for (const char* plain : {"mlp.gate.weight", "linear_attn.in_proj_a.weight",
                              "linear_attn.conv1d.weight", "mlp.shared_expert_gate.weight"})
        EXPECT_EQ(plan.at(layer + plain).spec.dtype, DType::kBF16) << plain;
    EXPECT_EQ(plan.at("mtp.layers.0.mlp.experts.0.up_proj.weight").spec.dtype, DType::kBF16);
}

TEST(SynthPlan, DistributionsFollowTheKindOfTensor) {
    const auto plan = by_name(*preset("4B"), "bf16"); // D 2560, tied, 9216 wide
    const auto check = [&](const char* name, double a, double b, DType dtype = DType::kBF16) {
        const SynthTensor& tensor = plan.at(std::string("model.language_model.") + name);
        EXPECT_DOUBLE_EQ(tensor.distribution.a, a) << name;
        EXPECT_DOUBLE_EQ(tensor.distribution.b, b) << name;
        EXPECT_EQ(tensor.spec.dtype, dtype) << name;
    };
    check("embed_tokens.weight", 0, 3 / std::sqrt(2560.0));
    check("norm.weight", 0, 0.1);
    check("layers.0.linear_attn.norm.weight", 1, 0.1, DType::kF32);
    check("layers.0.linear_attn.A_log", 0, 2.7, DType::kF32);
    check("layers.0.linear_attn.dt_bias", -6, -2);
    check("layers.0.linear_attn.conv1d.weight", 0, 0.4);
    check("layers.0.linear_attn.in_proj_a.weight", 0, 1 / std::sqrt(2560.0));
    check("layers.0.linear_attn.out_proj.weight", 0, 0.5 / std::sqrt(4096.0));
    check("layers.0.mlp.up_proj.weight", 0, 1 / std::sqrt(2560.0));
    check("layers.0.mlp.down_proj.weight", 0, 0.5 / std::sqrt(9216.0));
    check("layers.3.self_attn.q_norm.weight", 0, 0.1);
    check("layers.3.self_attn.o_proj.weight", 0, 0.5 / std::sqrt(4096.0));
    EXPECT_EQ(plan.at("model.language_model.layers.0.linear_attn.A_log").distribution.kind,
              Distribution::Kind::kUniform);

    const auto moe = by_name(*preset("35B-A3B"), "bf16");
    EXPECT_DOUBLE_EQ(moe.at("model.language_model.layers.0.mlp.gate.weight").distribution.b,
                     2 / std::sqrt(2048.0));
    EXPECT_DOUBLE_EQ(moe.at("model.language_model.embed_tokens.weight").distribution.b, 1.0);
    EXPECT_DOUBLE_EQ(moe.at("lm_head.weight").distribution.b, 3 / std::sqrt(2048.0));
}

TEST(SynthPlan, F32TensorsComeFirstSoThatAllAreAligned) {
    const auto plan = synth_plan(Model::declare(small_moe(), {}));
    bool plain = false;
    for (const SynthTensor& tensor : plan) {
        plain = plain || tensor.spec.dtype != DType::kF32;
        EXPECT_EQ(tensor.spec.dtype == DType::kF32, !plain) << tensor.spec.name;
    }
}

TEST(SynthPlan, JsonHoldsWhatAnotherLanguageNeeds) {
    const auto plan = synth_plan(Model::declare(small_moe(), *format_policy("fp8-block")));
    const Json json = synth_plan_to_json(plan, 18'446'744'073'709'551'615u);
    EXPECT_EQ(json.find("seed")->as_uint(), 18'446'744'073'709'551'615u);
    const JsonArray& tensors = json.find("tensors")->as_array();
    ASSERT_EQ(tensors.size(), plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
        EXPECT_EQ(tensors[i].find("name")->as_string(), plan[i].spec.name);
        EXPECT_EQ(tensors[i].find("stream")->as_string(), plan[i].stream);
        EXPECT_EQ(tensors[i].find("first")->as_int(), plan[i].first);
        EXPECT_EQ(tensors[i].find("b")->as_double(), plan[i].distribution.b);
        EXPECT_EQ(tensors[i].find("scale") != nullptr, plan[i].scale.has_value());
    }
}

// --- values ---

// The literals were computed by tools/goldens/weights.py (planned(), seed 1) from the plan.
TEST(SynthValues, AreThoseOfThePythonTwin) {
    const auto plan = by_name(small_moe(), "bf16");
    const std::pair<const char*, std::uint64_t> expected[] = {
        {"layers.0.linear_attn.A_log", 0x5EF7AA0009A4A069u},
        {"layers.0.linear_attn.norm.weight", 0xDFC4A87C674BFCF9u},
        {"layers.0.linear_attn.dt_bias", 0xF9E529EAEE24C69Cu},
        {"layers.0.linear_attn.conv1d.weight", 0x89402D19265ADF28u},
        {"layers.3.self_attn.q_norm.weight", 0x8C713CAEBC7236CBu},
        {"layers.2.mlp.gate.weight", 0x2054155DBCCB8D2Bu},
        {"layers.1.mlp.experts.down_proj", 0x894C5F1A85DE9D8Bu},
    };
    for (const auto& [name, hash] : expected) {
        const auto bytes = values(plan.at(std::string("model.language_model.") + name), 1);
        EXPECT_EQ(checkpoint::hash_of(bytes.data(), static_cast<std::int64_t>(bytes.size())), hash)
            << name;
    }
}

TEST(SynthValues, ExpertsStoredOneByOneAreTheirPartOfTheStack) {
    const auto fused = by_name(small_moe(), "bf16");
    const auto single = by_name(small_moe(), "fp8-block");
    const auto stack =
        values(fused.at("model.language_model.layers.0.mlp.experts.gate_up_proj"), 5);
    const std::size_t part = 128 * 128 * 2; // bytes of one expert's gate or up projection
    for (int expert = 0; expert < 4; ++expert)
        for (int up = 0; up < 2; ++up) {
            SynthTensor tensor =
                single.at(fmt::format("model.language_model.layers.0.mlp.experts.{}.{}_proj.weight",
                                      expert, up ? "up" : "gate"));
            tensor.spec.dtype = DType::kBF16; // the values before they are quantised
            const auto bytes = values(tensor, 5);
            ASSERT_EQ(bytes.size(), part);
            const std::size_t place = static_cast<std::size_t>(2 * expert + up) * part;
            EXPECT_EQ(std::memcmp(bytes.data(), stack.data() + place, part), 0) << expert << up;
        }
}

TEST(SynthValues, HaveTheMomentsOfTheirDistribution) {
    const auto plan = by_name(small_moe(), "bf16");
    const SynthTensor& tensor =
        plan.at("model.language_model.layers.0.linear_attn.out_proj.weight");
    const auto bytes = values(tensor, 3);
    double sum = 0, squares = 0;
    const std::size_t count = bytes.size() / 2;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t code;
        std::memcpy(&code, bytes.data() + 2 * i, 2);
        const double x = numerics::decode_bf16(code);
        sum += x;
        squares += x * x;
    }
    const double n = static_cast<double>(count), std = 0.5 / std::sqrt(128.0);
    EXPECT_NEAR(sum / n, 0, 4 * std / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), std, 0.02 * std);
}

TEST(WithLayers, RepeatsOrCutsThePattern) {
    using enum LayerKind;
    const Config config = small_moe();
    EXPECT_EQ(with_layers(config, 2).layers, (std::vector<LayerKind>{kGdn, kGdn}));
    EXPECT_EQ(with_layers(config, 9).layers, interval_layers(9, 4));
    EXPECT_EQ(with_layers(config, 4).layers, config.layers);
}

// --- checkpoints ---

class SynthFolder : public testing::Test {
  protected:
    void SetUp() override {
        root_ = fs::path(testing::TempDir()) / fmt::format("liverow-synth-{}", ::getpid());
        fs::create_directories(root_);
    }
    void TearDown() override { fs::remove_all(root_); }
    std::string folder(const char* name) const { return (root_ / name).string(); }

    SynthReport write(const char* name, const Config& config, const SynthOptions& options,
                      int threads = 1) {
        ThreadPool pool(threads);
        const Result<SynthReport> report = synth_checkpoint(folder(name), config, options, pool);
        EXPECT_TRUE(report) << (report ? "" : report.error().message());
        return report.value_or(SynthReport{});
    }
    Status refusal(const char* name, const Config& config, const SynthOptions& options) {
        ThreadPool pool(1);
        const Result<SynthReport> report = synth_checkpoint(folder(name), config, options, pool);
        return report ? Status() : report.error();
    }
    Checkpoint open(const char* name) {
        Result<Checkpoint> checkpoint = Checkpoint::open(folder(name));
        EXPECT_TRUE(checkpoint) << (checkpoint ? "" : checkpoint.error().message());
        return std::move(checkpoint).value();
    }
    fs::path root_;
};

TEST_F(SynthFolder, HoldsThePlannedTensors) {
    Config config = small_moe();
    config.mtp_layers = 1;
    const SynthReport report = write("moe", config, {.seed = 1});
    const Checkpoint checkpoint = open("moe");
    const auto plan = by_name(config, "bf16");
    EXPECT_EQ(report.files, 1);
    EXPECT_EQ(report.tensors, static_cast<std::int64_t>(plan.size()));
    EXPECT_EQ(report.bytes, checkpoint.total_bytes());
    ASSERT_EQ(checkpoint.tensors().size(), plan.size());
    for (const auto& [name, tensor] : plan) {
        const checkpoint::TensorInfo* stored = checkpoint.find(name);
        ASSERT_NE(stored, nullptr) << name;
        EXPECT_EQ(stored->shape, tensor.spec.shape) << name;
        EXPECT_EQ(stored->dtype, tensor.spec.dtype) << name;
        EXPECT_TRUE(stored->aligned()) << name;
        const auto bytes = values(tensor, 1);
        EXPECT_EQ(std::memcmp(stored->data, bytes.data(), bytes.size()), 0) << name;
    }
    const Result<Config> read = load_config(folder("moe"));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(to_json_string(config_to_json(*read)), to_json_string(config_to_json(config)));
}

TEST_F(SynthFolder, OneSeedIsOneModelWhateverTheThreadsChunksAndShards) {
    const std::pair<WeightFormat, std::uint64_t> expected[] = {
        {WeightFormat::kPlain, 0x0A25816CE3DBDB6Au},
        {WeightFormat::kFp8Block, 0xB72804DD616D5956u},
    };
    for (const auto& [format, literal] : expected) {
        write("one", small_moe(), {.format = format, .seed = 1, .overwrite = true});
        const SynthReport report = write("many", small_moe(),
                                         {.format = format,
                                          .seed = 1,
                                          .overwrite = true,
                                          .max_shard_bytes = 100'000,
                                          .chunk_bytes = 20'000},
                                         3);
        EXPECT_GT(report.files, 5);
        EXPECT_EQ(digest(open("one")), literal) << fmt::format("{:#x}", digest(open("one")));
        EXPECT_EQ(digest(open("many")), literal);
        write("other", small_moe(), {.format = format, .seed = 2, .overwrite = true});
        EXPECT_NE(digest(open("other")), literal);
    }
}

TEST_F(SynthFolder, ExpertsStoredOneByOneHoldTheStacksBytes) {
    write("stacked", small_moe(), {.seed = 1});
    write("split", small_moe(), {.seed = 1, .split_experts = true});
    const Checkpoint stacked = open("stacked"), split = open("split");
    const std::string scope = "model.language_model.layers.2.mlp.experts.";
    const checkpoint::TensorInfo stack = *stacked.require(scope + "gate_up_proj");
    EXPECT_EQ(split.find(scope + "gate_up_proj"), nullptr);
    std::int64_t offset = 0;
    for (int e = 0; e < 4; ++e)
        for (const char* part : {"gate_proj", "up_proj"}) {
            const auto one = *split.require(fmt::format("{}{}.{}.weight", scope, e, part));
            EXPECT_EQ(one.shape, (Shape{128, 128}));
            EXPECT_EQ(
                std::memcmp(one.data, stack.data + offset, static_cast<std::size_t>(one.bytes)), 0);
            offset += one.bytes;
        }
    EXPECT_EQ(offset, stack.bytes);
}

TEST_F(SynthFolder, Bf16VectorsAreTheF32OnesRounded) {
    write("f32", small_dense(), {.seed = 1});
    write("bf16", small_dense(), {.seed = 1, .bf16_vectors = true});
    const Checkpoint wide = open("f32"), narrow = open("bf16");
    const std::string name = "model.language_model.layers.0.linear_attn.A_log";
    const checkpoint::TensorInfo a = *wide.require(name), b = *narrow.require(name);
    EXPECT_EQ(a.dtype, DType::kF32);
    EXPECT_EQ(b.dtype, DType::kBF16);
    for (std::int64_t i = 0; i < a.shape.count(); ++i) {
        float value;
        std::uint16_t code;
        std::memcpy(&value, a.data + 4 * i, 4);
        std::memcpy(&code, b.data + 2 * i, 2);
        EXPECT_EQ(code, numerics::encode_bf16(value)) << i;
    }
}

TEST_F(SynthFolder, Fp8CodesAreTheQuantisationOfTheBf16Model) {
    Config config = small_dense(); // 160 wide: a short block at the edge
    write("fp8", config, {.format = WeightFormat::kFp8Block, .seed = 9});
    write("bf16", config, {.seed = 9});
    const Checkpoint fp8 = open("fp8"), bf16 = open("bf16");
    for (const char* module : {"mlp.up_proj", "mlp.down_proj", "linear_attn.in_proj_qkv"}) {
        const std::string name = fmt::format("model.language_model.layers.1.{}.weight", module);
        const checkpoint::TensorInfo plain = *bf16.require(name);
        const checkpoint::TensorInfo codes = *fp8.require(name);
        const checkpoint::TensorInfo scale = *fp8.require(name + "_scale_inv");
        const auto count = static_cast<std::size_t>(plain.shape.count());
        std::vector<float> w(count);
        for (std::size_t i = 0; i < count; ++i) {
            std::uint16_t code;
            std::memcpy(&code, plain.data + 2 * i, 2);
            w[i] = numerics::decode_bf16(code);
        }
        std::vector<std::uint8_t> q(count);
        std::vector<float> s(static_cast<std::size_t>(scale.shape.count()));
        numerics::quantize_fp8_block(w, plain.shape[1], numerics::ScaleStorage::kBF16, q, s);
        EXPECT_EQ(codes.file_dtype, "F8_E4M3");
        EXPECT_EQ(std::memcmp(q.data(), codes.data, count), 0) << name;
        for (std::size_t i = 0; i < s.size(); ++i) {
            std::uint16_t code;
            std::memcpy(&code, scale.data + 2 * i, 2);
            EXPECT_EQ(numerics::decode_bf16(code), s[i]) << name << " block " << i;
        }
    }
}

TEST_F(SynthFolder, Fp8ConfigDeclaresItsFormat) {
    write("fp8", small_moe(), {.format = WeightFormat::kFp8Block});
    const std::string path = folder("fp8") + "/config.json";
    const Json root = *parse_json(*read_text_file(path), path);
    const auto declared = checkpoint::read_quantization_config(JsonCursor(path, root));
    ASSERT_TRUE(declared && *declared);
    EXPECT_EQ((*declared)->method, "fp8");
    EXPECT_EQ((*declared)->scheme, "e4m3");
    const auto weights = [&](const char* module) { return (*declared)->of(module).format.weights; };
    using Weights = checkpoint::DeclaredFormat::Weights;
    EXPECT_EQ(weights("lm_head"), Weights::kPlain);
    EXPECT_EQ(weights("layers.0.linear_attn.in_proj_b"), Weights::kPlain);
    EXPECT_EQ(weights("layers.3.mlp.gate"), Weights::kPlain);
    EXPECT_EQ(weights("layers.3.self_attn.q_proj"), Weights::kFp8Block);
}

TEST_F(SynthFolder, TokenizerMapsBytesToThemselves) {
    write("moe", small_moe(), {});
    const auto tokenizer = text::Tokenizer::load(folder("moe"));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    const auto ids = tokenizer->encode("Hi 1\n\xC3\xA9<|im_end|>", {.allow_special = true});
    ASSERT_TRUE(ids);
    EXPECT_EQ(*ids, (std::vector<std::int32_t>{'H', 'i', ' ', '1', '\n', 0xC3, 0xA9, 258}));
    for (std::int32_t byte = 0; byte < 256; ++byte)
        EXPECT_EQ(tokenizer->token_bytes(byte), std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(tokenizer->id_of("<|endoftext|>"), 256);
    EXPECT_EQ(tokenizer->id_of("</think>"), 281);
    const Result<GenerationConfig> generation = load_generation_config(folder("moe"));
    ASSERT_TRUE(generation) << generation.error().message();
    EXPECT_EQ(generation->eos_ids, (std::vector<std::int32_t>{258, 256}));
}

TEST_F(SynthFolder, AddedTokensTakeTheirReleasedIdsInALargeVocabulary) {
    Config config = with_layers(small_dense(), 1);
    config.vocab_size = 248320;
    config.hidden = 8;
    write("large", config, {});
    const auto tokenizer = text::Tokenizer::load(folder("large"));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    EXPECT_EQ(tokenizer->id_of("<|endoftext|>"), 248044);
    EXPECT_EQ(tokenizer->id_of("<|im_end|>"), 248046);
    EXPECT_EQ(tokenizer->id_of("<think>"), 248068);
    EXPECT_EQ(load_generation_config(folder("large"))->eos_ids,
              (std::vector<std::int32_t>{248046, 248044}));
}

TEST_F(SynthFolder, PlanFileIsWrittenWhenAskedFor) {
    write("moe", small_moe(), {.seed = 7, .plan_file = (root_ / "plan.json").string()});
    const std::string path = (root_ / "plan.json").string();
    const Result<Json> plan = parse_json(*read_text_file(path), path);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->find("seed")->as_int(), 7);
}

// --- refusals ---

TEST_F(SynthFolder, KeepsACheckpointUnlessToldToOverwriteIt) {
    write("a", small_moe(), {.seed = 1, .max_shard_bytes = 100'000});
    const std::uint64_t before = digest(open("a"));
    const Status status = refusal("a", small_moe(), {.seed = 2});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("expected a folder without a checkpoint, found"),
              std::string::npos)
        << status.message();
    EXPECT_EQ(digest(open("a")), before);
    // All old shards go: a leftover would make the folder unreadable.
    EXPECT_EQ(write("a", small_moe(), {.seed = 2, .overwrite = true}).files, 1);
    EXPECT_NE(digest(open("a")), before);
}

TEST_F(SynthFolder, LeavesOtherFilesOfTheFolderAlone) {
    fs::create_directories(folder("b"));
    std::ofstream(root_ / "b" / "notes.txt") << "mine";
    write("b", small_moe(), {});
    EXPECT_EQ(*read_text_file(folder("b") + "/notes.txt"), "mine");
}

TEST_F(SynthFolder, RefusesAFileInPlaceOfTheFolder) {
    std::ofstream(root_ / "file") << "x";
    const Status status = refusal("file", small_moe(), {});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("cannot be made a folder"), std::string::npos)
        << status.message();
}

TEST_F(SynthFolder, RefusesWhatItCannotWrite) {
    Config small_vocab = small_moe();
    small_vocab.vocab_size = 281;
    EXPECT_EQ(refusal("x", small_vocab, {}).message(),
              "vocab_size: expected at least 282 for a byte-level tokenizer with 26 added tokens, "
              "got 281");
    EXPECT_EQ(refusal("x", small_moe(), {.format = WeightFormat::kNvfp4}).message(),
              "format: expected bf16 or fp8-block, got nvfp4");
    Config heads = small_moe();
    heads.kv_heads = 3;
    EXPECT_NE(refusal("x", heads, {}).message().find("must be a multiple of"), std::string::npos);
}

TEST_F(SynthFolder, RefusesWhatTheDiskCannotHoldBeforeWriting) {
    const Config config = with_layers(*preset("3.8-2.4T-A95B"), 4096);
    const auto bytes = synth_bytes(synth_plan(Model::declare(config, {})));
    if (fs::space(root_).available >= static_cast<std::uintmax_t>(bytes))
        GTEST_SKIP() << "this disk holds more than " << bytes << " bytes";
    const Status status = refusal("x", config, {});
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_NE(status.message().find("the checkpoint needs"), std::string::npos) << status.message();
    EXPECT_TRUE(fs::is_empty(root_ / "x"));
}

} // namespace
} // namespace lr::model
