// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/command.h"
#include "tests/engine/quantised_model.h"

namespace lr::cli {
namespace {

using engine::Flavor;

[[maybe_unused]] const auto* const kRemove =
    testing::AddGlobalTestEnvironment(new engine::RemoveModels);

std::string line_with(const std::string& text, std::string_view what) {
    const std::size_t at = text.find(what);
    if (at == std::string::npos)
        return "no line with \"" + std::string(what) + "\" in:\n" + text;
    const std::size_t begin = text.rfind('\n', at) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
}

// Routed experts NVFP4, attention FP8 with a static scale, the router FP8 (no release does that).
engine::QuantisedModel mixed_model() {
    engine::Recipe recipe;
    recipe.name = "inspect";
    recipe.flavor = [](const model::Entry& entry, const std::string& module) {
        if (entry.kind == model::TensorKind::kRouted)
            return Flavor::kModelOpt;
        if (module.ends_with("mlp.gate"))
            return Flavor::kChannel;
        return module.find("self_attn") != std::string::npos && entry.quantisable()
                   ? Flavor::kTensorStatic
                   : Flavor::kPlain;
    };
    recipe.modelopt_file = R"({"quantization":{"quant_algo":"MIXED_PRECISION",
        "kv_cache_quant_algo":"FP8","quantized_layers":{
        "model.layers.3.self_attn.q_proj":{"quant_algo":"FP8"},
        "model.layers.3.self_attn.k_proj":{"quant_algo":"FP8"},
        "model.layers.3.self_attn.v_proj":{"quant_algo":"FP8"},
        "model.layers.3.self_attn.o_proj":{"quant_algo":"FP8"},
        "*mlp.experts":{"quant_algo":"NVFP4"}}}})";
    return engine::write_quantised(recipe);
}

TEST(Inspect, ShowsFormatsWhatIsDeclaredAndWhatDisagrees) {
    const engine::QuantisedModel model = mixed_model();
    const Outcome shown = run({"inspect", model.stored.c_str(), "--check"});
    ASSERT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(line_with(shown.out, "routed experts"),
              "            routed experts: nvfp4-modelopt, W4A16 or W4A4 (48 weights in 4 layers)");
    EXPECT_EQ(line_with(shown.out, "attention: "),
              "            attention: fp8-tensor, static activations (4 weights in 1 layer)");
    EXPECT_EQ(line_with(shown.out, "router"),
              "            router: fp8-channel, dynamic activations (4 weights in 4 layers); "
              "widened to F32 at load");
    EXPECT_EQ(line_with(shown.out, "declared  "), "declared    modelopt MIXED_PRECISION by " +
                                                      model.stored +
                                                      "/hf_quant_config.json; KV cache FP8");
    EXPECT_EQ(line_with(shown.out, "KV scales"),
              "KV scales   none in the files; the KV cache is bf16 here and needs none");
    EXPECT_EQ(line_with(shown.out, "warning"),
              "warning     " + model.stored +
                  "/hf_quant_config.json: layers.*.mlp.gate (4 modules): declared not quantised, "
                  "stored fp8-channel without input_scale");
    EXPECT_NE(line_with(shown.out, "checked").find("all make sense"), std::string::npos);

    const Outcome listed = run({"inspect", model.stored.c_str(), "--weights"});
    EXPECT_NE(line_with(listed.out, "layers.3.mlp.gate ").find("F32 <- fp8-channel"),
              std::string::npos);
    EXPECT_NE(line_with(listed.out, "layers.3.mlp.experts.down_proj").find("0.0078125"),
              std::string::npos);
}

TEST(Inspect, SaysHowProductsAreMade) {
    const engine::QuantisedModel model = mixed_model();
    const auto says = [&](const char* activations) {
        const Outcome ran = run({"run", model.stored.c_str(), "--ids", "1,2,3", "-n", "2",
                                 "--activations", activations});
        EXPECT_EQ(ran.status, 0) << ran.err;
        return line_with(ran.err, "NVFP4: ");
    };
    EXPECT_NE(says("auto").find("FP8: W8A8; NVFP4: W4A16 (--activations quant for W4A4); "),
              std::string::npos)
        << says("auto");
    EXPECT_NE(says("quant").find("FP8: W8A8; NVFP4: W4A4; "), std::string::npos);
    EXPECT_NE(says("16").find("FP8 weights, plain activations (W8A16); NVFP4: W4A16"),
              std::string::npos);
}

} // namespace
} // namespace lr::cli
