// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_config.h"
#include "tests/checkpoint/files.h"

namespace lr::checkpoint {
namespace {

using Weights = DeclaredFormat::Weights;
using Activations = DeclaredFormat::Activations;

Result<std::optional<QuantizationConfig>> read(std::string_view text, std::string_view file = {}) {
    const auto json = parse_json(text, "config.json");
    EXPECT_TRUE(json) << (json ? "" : json.error().message());
    if (file.empty())
        return read_quantization_config(JsonCursor("config.json", *json));
    const auto modelopt = parse_json(file, "hf_quant_config.json");
    EXPECT_TRUE(modelopt);
    return read_quantization_config(JsonCursor("config.json", *json),
                                    JsonCursor("hf_quant_config.json", *modelopt));
}

QuantizationConfig declared(std::string_view quantization) {
    auto found = read(fmt::format(R"({{"quantization_config":{}}})", quantization));
    EXPECT_TRUE(found && *found) << (found ? "" : found.error().message());
    return found && *found ? std::move(**found) : QuantizationConfig();
}

Weights weights(const QuantizationConfig& config, std::string_view module) {
    return config.of(module).format.weights;
}

TEST(QuantizationConfig, IsReadFromTheRootOrTheTextPart) {
    const QuantizationConfig fp8 = declared(R"({"quant_method":"fp8","fmt":"e4m3",
        "activation_scheme":"dynamic","weight_block_size":[128,128],
        "modules_to_not_convert":["lm_head","model.visual","mlp.gate",
                                  "model.language_model.layers.0.linear_attn.in_proj_a"]})");
    EXPECT_EQ(fp8.method, "fp8");
    EXPECT_EQ(fp8.scheme, "e4m3");
    EXPECT_EQ(weights(fp8, "layers.0.linear_attn.in_proj_qkv"), Weights::kFp8Block);
    EXPECT_EQ(weights(fp8, "layers.0.linear_attn.in_proj_a"), Weights::kPlain);
    EXPECT_EQ(weights(fp8, "layers.1.linear_attn.in_proj_a"), Weights::kFp8Block);
    EXPECT_EQ(weights(fp8, "layers.0.mlp.gate"), Weights::kPlain);
    EXPECT_EQ(weights(fp8, "layers.0.mlp.gate_proj"), Weights::kFp8Block);
    EXPECT_EQ(weights(fp8, "lm_head"), Weights::kPlain);
    const auto nested =
        read(R"({"text_config":{"quantization_config":{"quant_method":"modelopt"}}})");
    ASSERT_TRUE(nested && *nested);
    EXPECT_EQ((*nested)->method, "modelopt");
    EXPECT_FALSE(read("{}")->has_value());
    EXPECT_FALSE(read(R"({"text_config":{}})")->has_value());
}

TEST(QuantizationConfig, RefusesWrongTypes) {
    expect_error(read(R"({"quantization_config":"fp8"})"), Code::kInvalidFile,
                 {"config.json: quantization_config: expected an object"});
    expect_error(read(R"({"quantization_config":{}})"), Code::kInvalidFile, {"quant_method"});
    expect_error(
        read(R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[128]}})"),
        Code::kInvalidFile, {"weight_block_size: expected two sizes"});
    expect_error(read(R"({"quantization_config":{"quant_method":"fp8","ignore":[1]}})"),
                 Code::kInvalidFile, {"quantization_config.ignore[0]: expected a string"});
    expect_error(read("{}", R"({"quantization":[]})"), Code::kInvalidFile,
                 {"hf_quant_config.json: quantization: expected an object"});
}

TEST(QuantizationConfig, ModelOptExcludesByGlobAndByEveryPrefix) {
    for (const char* prefix :
         {"", "model.", "model.language_model.", "language_model.model.", "language_model."}) {
        const QuantizationConfig config = declared(fmt::format(
            R"({{"quant_method":"modelopt","quant_algo":"NVFP4","kv_cache_quant_algo":"FP8",
                "exclude_modules":["{0}layers.0.linear_attn*","{0}layers.1.self_attn",
                                   "*shared_expert_gate","lm_head"]}})",
            prefix));
        EXPECT_EQ(config.kv, "FP8");
        EXPECT_EQ(weights(config, "layers.0.linear_attn.in_proj_qkv"), Weights::kPlain) << prefix;
        EXPECT_EQ(weights(config, "layers.1.self_attn.q_proj"), Weights::kPlain) << prefix;
        EXPECT_EQ(weights(config, "layers.2.mlp.shared_expert_gate"), Weights::kPlain);
        EXPECT_EQ(weights(config, "layers.2.mlp.experts.7.up_proj"), Weights::kNvfp4);
        EXPECT_EQ(config.of("layers.2.self_attn.q_proj").format.activations, Activations::kStatic);
        EXPECT_TRUE(config.of("layers.2.self_attn.q_proj").by_default);
    }
}

TEST(QuantizationConfig, MixedPrecisionNamesLayersContainersOrSingleExperts) {
    const QuantizationConfig config = declared(
        R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{
            "model.language_model.layers.0.mlp.experts":{"quant_algo":"NVFP4","group_size":16},
            "model.layers.1.mlp.experts.0.gate_proj":{"quant_algo":"W4A16_NVFP4"},
            "layers.0.self_attn.q_proj":{"quant_algo":"FP8"},
            "*layers.?.linear_attn.out_proj":{"quant_algo":"FP8_PER_CHANNEL_PER_TOKEN"},
            "layers.0.mlp.shared_expert.up_proj":{"quant_algo":"W4A8_AWQ"}}})");
    EXPECT_EQ(weights(config, "layers.0.mlp.experts.3.down_proj"), Weights::kNvfp4);
    EXPECT_EQ(weights(config, "layers.0.mlp.experts.down_proj"), Weights::kNvfp4);
    EXPECT_EQ(weights(config, "layers.1.mlp.experts.gate_up_proj"), Weights::kNvfp4)
        << "a stack, named by one of its experts";
    EXPECT_EQ(config.of("layers.1.mlp.experts.0.gate_proj").format.activations,
              Activations::kPlain);
    EXPECT_EQ(weights(config, "layers.0.self_attn.q_proj"), Weights::kFp8Tensor);
    EXPECT_EQ(weights(config, "layers.0.self_attn.k_proj"), Weights::kPlain);
    EXPECT_EQ(weights(config, "layers.7.linear_attn.out_proj"), Weights::kFp8Channel);
    EXPECT_EQ(weights(config, "layers.0.mlp.shared_expert.up_proj"), Weights::kOther);
}

TEST(QuantizationConfig, HfQuantConfigMayStandAloneOrBeside) {
    const char* file = R"({"producer":{"name":"modelopt","version":"0.39"},"quantization":{
        "quant_algo":"NVFP4","kv_cache_quant_algo":"FP8","group_size":16,
        "exclude_modules":["lm_head"]}})";
    const auto alone = read("{}", file);
    ASSERT_TRUE(alone && *alone);
    EXPECT_EQ((*alone)->method, "modelopt");
    EXPECT_EQ((*alone)->source, "hf_quant_config.json");
    EXPECT_EQ(weights(**alone, "layers.0.mlp.up_proj"), Weights::kNvfp4);
    EXPECT_EQ(weights(**alone, "lm_head"), Weights::kPlain);
    const auto both =
        read(R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8"}})", file);
    ASSERT_TRUE(both && *both);
    EXPECT_EQ(weights(**both, "layers.0.mlp.up_proj"), Weights::kFp8Tensor);
    EXPECT_EQ((*both)->kv, "FP8") << "either may hold the KV setting";
    EXPECT_EQ((*both)->notes,
              std::vector<std::string>{"config.json declares modelopt \"FP8\", "
                                       "hf_quant_config.json \"NVFP4\"; the first is used"});
}

TEST(QuantizationConfig, CompressedTensorsHasGroupsTargetsAndIgnore) {
    const QuantizationConfig config = declared(
        R"({"quant_method":"compressed-tensors","format":"mixed-precision","ignore":["lm_head",
            "re:.*mlp\\.gate$","re:.*linear_attn.*"],
            "kv_cache_scheme":{"num_bits":8,"type":"float"},
            "config_groups":{
             "group_0":{"targets":["Linear"],
              "weights":{"num_bits":8,"type":"float","strategy":"channel"},
              "input_activations":{"num_bits":8,"type":"float","strategy":"token","dynamic":true}},
             "group_1":{"targets":["re:.*experts\\.\\d+\\.(gate|up|down)_proj"],
              "weights":{"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16},
              "input_activations":{"num_bits":4,"type":"float","group_size":16,"dynamic":"local"}},
             "group_2":{"targets":["model.layers.3.self_attn.o_proj"],
              "weights":{"num_bits":8,"type":"float","strategy":"block",
                         "block_structure":[128,128]},"input_activations":null},
             "group_3":{"targets":["model.layers.3.self_attn.k_proj"],
              "weights":{"num_bits":8,"type":"int","strategy":"channel"}}}})");
    EXPECT_EQ(config.kv, "FP8");
    const auto q = config.of("layers.3.self_attn.q_proj");
    EXPECT_EQ(q.format.weights, Weights::kFp8Channel);
    EXPECT_EQ(q.format.activations, Activations::kDynamic);
    EXPECT_TRUE(q.by_default);
    const auto expert = config.of("layers.3.mlp.experts.12.up_proj");
    EXPECT_EQ(expert.format.weights, Weights::kNvfp4);
    EXPECT_EQ(expert.format.activations, Activations::kStatic);
    EXPECT_FALSE(expert.by_default);
    EXPECT_EQ(weights(config, "layers.3.self_attn.o_proj"), Weights::kFp8Block);
    EXPECT_EQ(weights(config, "layers.3.self_attn.k_proj"), Weights::kOther);
    EXPECT_EQ(config.of("layers.3.self_attn.k_proj").format.text, "int8 channel");
    EXPECT_EQ(weights(config, "layers.0.linear_attn.out_proj"), Weights::kPlain);
    EXPECT_EQ(weights(config, "layers.0.mlp.gate"), Weights::kPlain);
    EXPECT_TRUE(config.complete());
}

TEST(QuantizationConfig, APatternThatCannotBeReadIsSaid) {
    const QuantizationConfig config =
        declared(R"({"quant_method":"compressed-tensors","ignore":["re:(?!x).*"]})");
    EXPECT_FALSE(config.complete());
    ASSERT_EQ(config.notes.size(), 1u);
    EXPECT_EQ(config.notes[0],
              "config.json: pattern \"(?!x).*\": only (...) and (?:...) groups are known; modules "
              "are not held against the config");
}

TEST(QuantizationConfig, FormatsAgreeWithTensorsAndTheirScales) {
    const DeclaredFormat fp8{Weights::kFp8, Activations::kUnsaid, ""};
    EXPECT_TRUE(fp8.allows(StoredFormat::kFp8Tensor, true));
    EXPECT_FALSE(fp8.allows(StoredFormat::kPlain, false));
    const DeclaredFormat w4a16{Weights::kNvfp4, Activations::kPlain, ""};
    EXPECT_TRUE(w4a16.allows(StoredFormat::kNvfp4ModelOpt, false));
    EXPECT_FALSE(w4a16.allows(StoredFormat::kNvfp4ModelOpt, true)) << "input_scale, weights only";
    const DeclaredFormat block{Weights::kFp8Block, Activations::kStatic, ""};
    EXPECT_TRUE(block.allows(StoredFormat::kFp8Block, false)) << "blocks never have one";
    EXPECT_FALSE(block.allows(StoredFormat::kFp8Channel, true));
    EXPECT_TRUE(DeclaredFormat{}.allows(StoredFormat::kPlain, false));
}

} // namespace
} // namespace lr::checkpoint
