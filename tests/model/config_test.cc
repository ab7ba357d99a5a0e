// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"
#include "model/presets.h"
#include "tests/model/configs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lr::model {
namespace {

namespace fs = std::filesystem;

// The config.json of a small MoE model with one edit; `value` is JSON text, "" removes the member.
Result<Config> parse_edited(const Config& base, std::string_view path, std::string_view value) {
    Json replacement;
    if (!value.empty())
        replacement = *parse_json(value, "test");
    const Json root = edited(config_to_json(base), path, value.empty() ? nullptr : &replacement);
    return parse_config(root, "config.json");
}

std::string error_of(const Config& base, std::string_view path, std::string_view value) {
    const Result<Config> config = parse_edited(base, path, value);
    return config ? "no error" : config.error().message();
}

bool same_dimensions(const Config& a, const Config& b) {
    return to_json_string(config_to_json(a)) == to_json_string(config_to_json(b));
}

TEST(Config, ReadsBackWhatItWrote) {
    for (const Config& config : {small_moe(), small_dense(), *preset("397B-A17B"), *preset("4B")}) {
        const Json json = config_to_json(config);
        const Result<Config> read = parse_config(json, "config.json");
        ASSERT_TRUE(read) << read.error().message();
        EXPECT_TRUE(same_dimensions(*read, config));
        EXPECT_EQ(read->layers, config.layers);
        EXPECT_EQ(read->rotary_dim, config.rotary_dim);
        EXPECT_EQ(read->tied, config.tied);
    }
}

TEST(Config, ReadsFieldsAtTopLevelWhenThereIsNoTextConfig) {
    const Json nested = config_to_json(small_moe());
    const Json text = *nested.find("text_config");
    const Result<Config> config = parse_config(text, "config.json");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->hidden, 128);
    EXPECT_EQ(config->experts, 4);
    EXPECT_EQ(config->count(LayerKind::kGdn), 3);
    EXPECT_EQ(config->count(LayerKind::kAttention), 1);
    EXPECT_FALSE(config->tied.has_value());
}

TEST(Config, TopLevelDecidesWhetherEmbeddingsAreTied) {
    const auto tied = [](std::string_view root, std::string_view text) {
        Json json = config_to_json(small_dense());
        const Json yes(true), no(false);
        const auto set = [&](std::string_view path, std::string_view value) {
            json = edited(json, path, value.empty() ? nullptr : value == "true" ? &yes : &no);
        };
        set("tie_word_embeddings", root);
        set("text_config.tie_word_embeddings", text);
        return parse_config(json, "config.json")->tied;
    };
    EXPECT_EQ(tied("true", "false"), true);
    EXPECT_EQ(tied("false", "true"), false);
    EXPECT_EQ(tied("", "true"), true);
    EXPECT_EQ(tied("", ""), std::nullopt);
}

TEST(Config, FallsBackToTheIntervalWithoutLayerTypes) {
    const Config base = small_moe();
    const Result<Config> every4 = parse_edited(base, "text_config.layer_types", "");
    ASSERT_TRUE(every4);
    EXPECT_EQ(every4->layers, interval_layers(4, 4));
    const Json two(2);
    const Json root = edited(edited(config_to_json(base), "text_config.layer_types", nullptr),
                             "text_config.full_attention_interval", &two);
    const Result<Config> every2 = parse_config(root, "config.json");
    ASSERT_TRUE(every2);
    using enum LayerKind;
    EXPECT_EQ(every2->layers, (std::vector<LayerKind>{kGdn, kAttention, kGdn, kAttention}));
}

TEST(Config, TakesDefaultsOfTheFamily) {
    Json root = config_to_json(small_moe());
    for (const char* path : {"text_config.rms_norm_eps", "text_config.max_position_embeddings",
                             "text_config.rope_parameters", "text_config.linear_conv_kernel_dim",
                             "text_config.mtp_num_hidden_layers"})
        root = edited(root, path, nullptr);
    const Result<Config> config = parse_config(root, "config.json");
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->rms_eps, 1e-6f);
    EXPECT_EQ(config->rope_theta, 1e7f);
    EXPECT_EQ(config->rotary_dim, 16);
    EXPECT_EQ(config->conv_kernel, 4);
    EXPECT_EQ(config->mtp_layers, 0);
}

struct BadConfig {
    const char* path;
    const char* value; // JSON; "" removes the member
    const char* message;
};

TEST(Config, RefusesWhatItCannotComputeAndNamesIt) {
    const BadConfig cases[] = {
        {"text_config", "3", "config.json: text_config: expected an object, got 3"},
        {"text_config.model_type", "\"qwen3_next\"",
         "model_type: expected qwen3_5_moe[_text] or qwen3_5[_text], got \"qwen3_next\""},
        {"text_config.model_type", "", "text_config: expected the key \"model_type\", got none"},
        {"text_config.hidden_act", "\"gelu\"", "hidden_act: expected \"silu\", got \"gelu\""},
        {"text_config.attention_bias", "true", "attention_bias: expected false, got true"},
        {"text_config.attn_output_gate", "false", "attn_output_gate: expected true, got false"},
        {"text_config.layer_scale", "true", "layer_scale: expected false, got true"},
        {"text_config.norm_topk_prob", "false", "norm_topk_prob: expected true, got false"},
        {"text_config.output_gate_type", "\"sigmoid\"",
         "output_gate_type: expected \"swish\", got \"sigmoid\""},
        {"text_config.mlp_only_layers", "[0]", "mlp_only_layers: expected [], got an array of 1"},
        {"text_config.vocab_size", "", "text_config: expected the key \"vocab_size\", got none"},
        {"text_config.vocab_size", "0", "text_config.vocab_size: expected an integer"},
        {"text_config.hidden_size", "\"128\"", "text_config.hidden_size: expected an integer"},
        {"text_config.hidden_size", "1.5", "text_config.hidden_size: expected an integer"},
        {"text_config.num_hidden_layers", "5",
         "layer_types: expected num_hidden_layers=5 entries, got 4"},
        {"text_config.layer_types", "[\"linear_attention\",\"mamba\",\"full_attention\",\"x\"]",
         "layer_types[1]: expected \"linear_attention\" or \"full_attention\", got \"mamba\""},
        {"text_config.layer_types", "[1,2,3,4]", "layer_types[0]: expected a string, got 1"},
        {"text_config.num_key_value_heads", "3",
         "num_attention_heads=4 must be a multiple of num_key_value_heads=3"},
        {"text_config.linear_num_key_heads", "3",
         "linear_num_value_heads=4 must be a multiple of linear_num_key_heads=3"},
        {"text_config.linear_conv_kernel_dim", "3", "linear_conv_kernel_dim: expected 4, got 3"},
        {"text_config.rope_parameters", "[]", "rope_parameters: expected an object"},
        {"text_config.rope_parameters.rope_type", "\"yarn\"",
         "rope_type: expected \"default\", got \"yarn\""},
        {"text_config.rope_parameters.partial_rotary_factor", "0.02",
         "partial_rotary_factor: rotary dim 1 must be even and in 2..head_dim=64"},
        {"text_config.rope_parameters.partial_rotary_factor", "2",
         "partial_rotary_factor: expected"},
        {"text_config.rms_norm_eps", "0", "text_config.rms_norm_eps: expected"},
        {"text_config.num_experts", "", "text_config: expected the key \"num_experts\", got none"},
        {"text_config.num_experts_per_tok", "5",
         "text_config.num_experts_per_tok: expected an integer from 1 to 4, got 5"},
        {"text_config.moe_intermediate_size", "",
         "text_config: expected the key \"moe_intermediate_size\", got none"},
        {"text_config.shared_expert_intermediate_size", "0",
         "text_config.shared_expert_intermediate_size"},
        {"text_config.mtp_num_hidden_layers", "-1", "text_config.mtp_num_hidden_layers"},
        {"tie_word_embeddings", "\"yes\"", "tie_word_embeddings: expected true or false"},
    };
    for (const BadConfig& bad : cases) {
        const std::string message = error_of(small_moe(), bad.path, bad.value);
        EXPECT_NE(message.find(bad.message), std::string::npos)
            << bad.path << " = " << bad.value << "\n  got: " << message
            << "\n  expected: " << bad.message;
        EXPECT_TRUE(message.starts_with("config.json: ")) << message;
    }
    EXPECT_NE(error_of(small_dense(), "text_config.intermediate_size", "")
                  .find("expected the key \"intermediate_size\", got none"),
              std::string::npos);
}

TEST(Config, RefusesARootThatIsNoObject) {
    const Result<Config> config = parse_config(Json(JsonArray{}), "config.json");
    ASSERT_FALSE(config);
    EXPECT_NE(config.error().message().find("expected an object"), std::string::npos);
}

class ConfigFolder : public testing::Test {
  protected:
    void SetUp() override {
        folder_ =
            (fs::temp_directory_path() /
             fmt::format("liverow_config_{}", testing::UnitTest::GetInstance()->random_seed() +
                                                  static_cast<int>(::getpid())))
                .string();
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    void write(const char* name, std::string_view text) {
        std::ofstream(fs::path(folder_) / name) << text;
    }
    std::string folder_;
};

TEST_F(ConfigFolder, LoadsConfigAndNamesAMissingOrBrokenFile) {
    const Result<Config> missing = load_config(folder_);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Code::kNotFound);
    EXPECT_NE(missing.error().message().find("config.json"), std::string::npos);
    write("config.json", "{\"text_config\": {\"a\": 1, \"a\": 2}}");
    const Result<Config> twice = load_config(folder_);
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code(), Code::kInvalidFile);
    write("config.json", to_json_string(config_to_json(small_dense())));
    const Result<Config> good = load_config(folder_);
    ASSERT_TRUE(good) << good.error().message();
    EXPECT_EQ(good->ffn_width, 160);
}

TEST_F(ConfigFolder, GenerationConfigListsAllEndsAndFallsBackToConfig) {
    write("config.json", R"({"eos_token_id": 7, "text_config": {"eos_token_id": [7, 9]}})");
    const Result<GenerationConfig> fallback = load_generation_config(folder_);
    ASSERT_TRUE(fallback) << fallback.error().message();
    EXPECT_EQ(fallback->eos_ids, (std::vector<std::int32_t>{7, 9}));
    write("generation_config.json",
          R"({"eos_token_id": [3, 5, 3], "temperature": 0.5, "top_k": 20, "top_p": 0.9,
              "min_p": 0.05, "repetition_penalty": 1.1})");
    const Result<GenerationConfig> own = load_generation_config(folder_);
    ASSERT_TRUE(own) << own.error().message();
    EXPECT_EQ(own->eos_ids, (std::vector<std::int32_t>{3, 5}));
    EXPECT_EQ(own->temperature, 0.5);
    EXPECT_EQ(own->top_k, 20);
    EXPECT_EQ(own->top_p, 0.9);
    EXPECT_EQ(own->min_p, 0.05);
    EXPECT_EQ(own->repetition_penalty, 1.1);
}

TEST_F(ConfigFolder, GenerationConfigRefusesBadValues) {
    for (const char* text :
         {R"({"eos_token_id": -1})", R"({"eos_token_id": ["a"]})", R"({"temperature": -1})",
          R"({"top_p": 2})", R"({"top_k": 1.5})", "[]", "{"}) {
        write("generation_config.json", text);
        const Result<GenerationConfig> bad = load_generation_config(folder_);
        ASSERT_FALSE(bad) << text;
        EXPECT_EQ(bad.error().code(), Code::kInvalidFile) << text;
        EXPECT_NE(bad.error().message().find("generation_config.json"), std::string::npos);
    }
}

// 1e-12 as f32, widened, is below the least eps that a file may have.
TEST(Config, IsReadAgainAsItWasWritten) {
    Config config = small_dense();
    config.rms_eps = 1e-12f;
    config.rope_theta = 1e12f;
    const auto again = parse_config(config_to_json(config), "written");
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->rms_eps, 1e-12f);
    EXPECT_EQ(again->rope_theta, 1e12f);
}

} // namespace
} // namespace lr::model
