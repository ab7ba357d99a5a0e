// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint's JSON says against what its tensors are: sentences that name the modules.
#include "model/quant_check.h"
#include "tests/engine/quantised_model.h"

namespace lr::engine {
namespace {

using Sentences = std::vector<std::string>;

Sentences disagreements(Recipe recipe, bool moe = true) {
    static int number = 0;
    recipe.name = fmt::format("declared{}", number++);
    const QuantisedModel made = write_quantised(recipe, moe);
    const auto opened = model::open_model(made.stored);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
    if (!opened)
        return {};
    Sentences found = opened->disagreements;
    for (std::string& text : found)
        if (text.starts_with(made.stored))
            text.erase(0, made.stored.size() + 1);
    return found;
}

const std::string kExcluded = R"("exclude_modules":["*in_proj_a","*in_proj_b","*mlp.gate",
    "*shared_expert_gate","lm_head"])";

TEST(Declared, WhatReleasesDeclareIsWhatTheyStore) {
    Recipe modelopt = everywhere("", Flavor::kModelOpt);
    modelopt.config = R"({"quant_method":"modelopt","quant_algo":"NVFP4",)" + kExcluded + "}";
    EXPECT_EQ(disagreements(modelopt), Sentences{});
    EXPECT_EQ(disagreements(modelopt, false), Sentences{});

    Recipe file = everywhere("", Flavor::kTensorStatic);
    file.modelopt_file = R"({"quantization":{"quant_algo":"FP8",)" + kExcluded + "}}";
    EXPECT_EQ(disagreements(file), Sentences{});

    Recipe compressed = everywhere("", Flavor::kCompressed);
    compressed.config = R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized",
        "ignore":["lm_head","re:.*in_proj_[ab]$","re:.*mlp\\.gate$","re:.*shared_expert_gate"],
        "config_groups":{"group_0":{"targets":["Linear"],
        "weights":{"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16},
        "input_activations":{"num_bits":4,"type":"float","dynamic":"local"}}}})";
    EXPECT_EQ(disagreements(compressed), Sentences{});

    Recipe mixed;
    std::string layers;
    for (int i = 0; i < 4; ++i)
        layers += fmt::format(
            R"("model.language_model.layers.{}.mlp.experts":{{"quant_algo":"W4A16_NVFP4"}},)", i);
    for (const char* name : {"q_norm", "k_norm", "q_proj", "k_proj", "v_proj", "o_proj"})
        layers += fmt::format(R"("model.layers.3.self_attn.{}":{{"quant_algo":"FP8"}},)", name);
    layers.pop_back();
    mixed.flavor = [](const model::Entry& entry, const std::string& module) {
        if (entry.kind == model::TensorKind::kRouted)
            return Flavor::kModelOptW4A16;
        return module.find("3.self_attn") != std::string::npos && entry.quantisable()
                   ? Flavor::kTensorStatic
                   : Flavor::kPlain;
    };
    mixed.config = R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION",)"
                   R"("quantized_layers":{)" +
                   layers + "}}";
    EXPECT_EQ(disagreements(mixed), Sentences{});
}

TEST(Declared, EachDisagreementIsOneSentenceWithItsModules) {
    // The config forgets to exclude, excludes what is quantised, and declares other activations.
    Recipe recipe = everywhere("", Flavor::kModelOptW4A16);
    recipe.config = R"({"quant_method":"modelopt","quant_algo":"NVFP4",
        "exclude_modules":["lm_head","*self_attn*","*mlp.gate","*shared_expert_gate"]})";
    const char* expected = "declared NVFP4, static activations, stored";
    EXPECT_EQ(
        disagreements(recipe, false),
        (Sentences{fmt::format("config.json: layers.*.linear_attn.{{in_proj_a,in_proj_b}} (6 "
                               "modules): {} BF16",
                               expected),
                   fmt::format("config.json: layers.*.linear_attn.{{in_proj_qkv,in_proj_z,"
                               "out_proj}} (9 modules): {} nvfp4-modelopt without input_scale",
                               expected),
                   fmt::format("config.json: layers.*.mlp.{{down_proj,gate_proj,up_proj}} (12 "
                               "modules): {} nvfp4-modelopt without input_scale",
                               expected),
                   "config.json: layers.*.self_attn.{k_proj,o_proj,q_proj,v_proj} (4 modules): "
                   "declared not quantised, stored nvfp4-modelopt without input_scale"}));
}

TEST(Declared, NothingOrEverythingDeclared) {
    EXPECT_EQ(disagreements(everywhere("", Flavor::kChannel), false),
              Sentences{"config.json declares no quantization, but 16 weights are stored as "
                        "fp8-channel"});
    Recipe plain = everywhere("", Flavor::kPlain);
    plain.config = R"({"quant_method":"fp8"})";
    EXPECT_EQ(disagreements(plain),
              Sentences{"config.json declares quantization 'fp8', but every weight is stored "
                        "plain"});
    Recipe unknown = everywhere("", Flavor::kChannel);
    unknown.config = R"({"quant_method":"quark"})";
    const Sentences found = disagreements(unknown, false);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0], "config.json: lm_head (1 module): declared quark, stored BF16");
}

} // namespace
} // namespace lr::engine
