// SPDX-License-Identifier: Apache-2.0
//
// The tensors that quantize writes: bit for bit those of numerics/quantize.h.
#include "checkpoint/quant_format.h"
#include "model/open.h"
#include "numerics/bf16.h"
#include "numerics/quantize.h"
#include "tests/model/quantize_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace lr::model {
namespace {

using checkpoint::StoredFormat;
using checkpoint::StoredWeight;
using numerics::BlockScales;
using numerics::DecodeScale;
using numerics::EncodeScale;

struct Case {
    const char *format, *flavor;
    BlockScales scales = BlockScales::kAmax;
};
constexpr Case kCases[] = {
    {"fp8-block", "hf"},
    {"fp8-block", "compressed-tensors"},
    {"fp8-channel", "compressed-tensors"},
    {"nvfp4", "modelopt"},
    {"nvfp4", "modelopt", BlockScales::kMse},
    {"nvfp4", "compressed-tensors"},
    {"nvfp4", "compressed-tensors", BlockScales::kMse},
    {"nvfp4-mixed", "modelopt"},
};

std::string label(const Case& c) {
    return fmt::format("{} {} {}", c.format, c.flavor,
                       c.scales == BlockScales::kMse ? "mse" : "max");
}

// The weight X of the plain checkpoint; an expert's from the stack, where there is one.
std::vector<float> plain_weight(const checkpoint::Checkpoint& plain, const std::string& base) {
    if (const auto* tensor = plain.find(base + ".weight"))
        return floats_of(*tensor);
    // "...mlp.experts.3.up_proj"
    const std::size_t projection = base.rfind('.'), number = base.rfind('.', projection - 1);
    const auto expert = std::stoll(base.substr(number + 1, projection - number - 1));
    const std::string leaf = base.substr(projection + 1);
    const bool down = leaf == "down_proj";
    const auto stack = plain.require(base.substr(0, number + 1) + (down ? leaf : "gate_up_proj"));
    EXPECT_TRUE(stack) << base;
    const std::vector<float> all = floats_of(*stack);
    const std::int64_t rows = stack->shape[1] / (down ? 1 : 2);
    const std::int64_t count = rows * stack->shape[2];
    const std::int64_t first =
        expert * stack->shape[1] * stack->shape[2] + (leaf == "up_proj" ? count : 0);
    return {all.begin() + first, all.begin() + first + count};
}

// The weights that engines fuse with X, X among them: they share one factor.
std::vector<std::string> fused_with(const std::string& base) {
    const std::size_t dot = base.rfind('.') + 1;
    const std::string leaf = base.substr(dot);
    const std::vector<std::vector<std::string>> groups = {
        {"q_proj", "k_proj", "v_proj"}, {"gate_proj", "up_proj"}, {"in_proj_qkv", "in_proj_z"}};
    for (const auto& group : groups)
        if (std::find(group.begin(), group.end(), leaf) != group.end()) {
            std::vector<std::string> names;
            for (const std::string& name : group)
                names.push_back(base.substr(0, dot) + name);
            return names;
        }
    return {base};
}

class QuantizedBits : public QuantizeFolders {
  protected:
    // Every weight of `out` that is not plain: its format by X.
    static std::map<std::string, StoredWeight> quantised(const Checkpoint& out) {
        std::map<std::string, StoredWeight> found;
        for (const checkpoint::TensorInfo& tensor : out.tensors()) {
            std::string base(tensor.name);
            for (const char* suffix : {".weight", ".weight_packed"})
                if (base.ends_with(suffix))
                    base.resize(base.size() - std::strlen(suffix));
            if (base == tensor.name)
                continue;
            const auto stored =
                checkpoint::detect_format(base, checkpoint::find_siblings(out, base));
            EXPECT_TRUE(stored) << (stored ? "" : stored.error().message());
            if (stored && stored->format != StoredFormat::kPlain)
                found.emplace(base, *stored);
        }
        return found;
    }

    void expect_bits(const Checkpoint& plain, const std::string& base, const StoredWeight& out,
                     BlockScales scales) {
        const std::vector<float> w = plain_weight(plain, base);
        float amax = 0;
        for (const std::string& other : fused_with(base))
            amax = std::max(amax, numerics::absolute_max(plain_weight(plain, other)));
        const std::int64_t columns = out.shape[1];
        std::vector<std::uint8_t> codes(w.size()), sf(w.size() / 16);
        std::vector<float> s;
        switch (out.format) {
        case StoredFormat::kPlain:
            return;
        case StoredFormat::kFp8Block:
            s.resize(static_cast<std::size_t>(out.scale->shape.count()));
            numerics::quantize_fp8_block(w, columns, numerics::ScaleStorage::kBF16, codes, s);
            EXPECT_EQ(out.scale->dtype, DType::kBF16);
            break;
        case StoredFormat::kFp8Channel:
            s.resize(w.size() / static_cast<std::size_t>(columns));
            numerics::quantize_fp8_rows(w, columns, codes, s);
            EXPECT_EQ(out.scale->dtype, DType::kF32);
            EXPECT_EQ(out.scale->shape, (Shape{out.shape[0], 1}));
            break;
        case StoredFormat::kFp8Tensor:
            s = {numerics::fp8_scale(amax)};
            numerics::quantize_fp8_with_scale(w, s[0], codes);
            EXPECT_EQ(out.factor->shape, Shape{});
            break;
        case StoredFormat::kNvfp4ModelOpt:
        case StoredFormat::kNvfp4Compressed: {
            const DecodeScale d = numerics::nvfp4_decode_scale(amax);
            const bool modelopt = out.format == StoredFormat::kNvfp4ModelOpt;
            codes.resize(w.size() / 2);
            if (modelopt)
                numerics::quantize_nvfp4_weight_modelopt(w, d, codes, sf, scales);
            else
                numerics::quantize_nvfp4_weight_compressed(w, EncodeScale(d), codes, sf, scales);
            EXPECT_EQ(floats_of(*out.factor)[0], modelopt ? d.value : EncodeScale(d).value);
            EXPECT_EQ(out.factor->shape, modelopt ? Shape{} : Shape{1});
            EXPECT_EQ(bytes_of(*out.scale), sf) << base;
            break;
        }
        }
        EXPECT_EQ(bytes_of(*out.weight), codes) << base;
        if (!s.empty()) {
            EXPECT_EQ(floats_of(out.scale ? *out.scale : *out.factor), s) << base;
        }
        EXPECT_EQ(out.input_scale, nullptr) << "activations are not calibrated";
    }
};

TEST_F(QuantizedBits, EveryMatrixIsTheReferencesInEveryFormatAndFlavor) {
    Config config = small_moe();
    config.mtp_layers = 1;
    write_plain("stacked", config);
    write_plain("split", config, {.seed = 3, .split_experts = true});
    const Checkpoint plain = open("stacked");
    // 3 GDN layers of 3 matrices, 1 attention layer of 4, 4 layers of 3 shared and 4 x 3 experts.
    const std::size_t mixers = 3 * 3 + 4, ffn = 4 * 3 + 4 * 12;
    for (const Case& c : kCases) {
        SCOPED_TRACE(label(c));
        const std::string name = fmt::format("{}-{}-{}", c.format, c.flavor, int(c.scales));
        const auto report =
            quantize("stacked", name.c_str(), options(c.format, c.flavor, false, c.scales), 2);
        const Checkpoint out = open(name);
        const auto weights = quantised(out);
        EXPECT_EQ(weights.size(), mixers + ffn);
        EXPECT_EQ(report.bytes, out.total_bytes());
        EXPECT_EQ(report.tensors, static_cast<std::int64_t>(out.tensors().size()));
        for (const auto& [base, stored] : weights)
            expect_bits(plain, base, stored, c.scales);
        quantize("split", (name + "-split").c_str(), options(c.format, c.flavor, false, c.scales));
        EXPECT_EQ(digest(open(name + "-split")), digest(out)) << "experts one by one in the input";
    }
}

TEST_F(QuantizedBits, WhatIsNotQuantisedIsCopiedBitForBitAndEverythingIsAligned) {
    Config config = small_moe();
    config.mtp_layers = 1;
    write_plain("in", config);
    edit("in", [](std::vector<Tensor>& tensors) {
        tensors.push_back({{"model.visual.blocks.0.attn.qkv.weight", DType::kBF16, {2, 3}},
                           std::vector<std::byte>(12, std::byte{0x3F})});
    });
    const Checkpoint plain = open("in");
    for (const Case& c : kCases) {
        SCOPED_TRACE(label(c));
        const std::string name = fmt::format("{}-{}-{}", c.format, c.flavor, int(c.scales));
        quantize("in", name.c_str(), options(c.format, c.flavor, false, c.scales));
        const Checkpoint out = open(name);
        std::size_t copied = 0;
        for (const checkpoint::TensorInfo& tensor : out.tensors()) {
            EXPECT_TRUE(tensor.aligned()) << tensor.name;
            const auto* before = plain.find(tensor.name);
            if (!before || tensor.dtype == DType::kE4M3 || tensor.dtype == DType::kU8)
                continue;
            ++copied;
            EXPECT_EQ(tensor.dtype, before->dtype) << tensor.name;
            EXPECT_EQ(bytes_of(tensor), bytes_of(*before)) << tensor.name;
        }
        // Of the text: 3 GDN layers of 2 + 6, 1 attention layer of 2 + 2, 4 x (router, gate),
        // embeddings, norm, head. MTP: 4 + 2 + 6 + 5 + 4 x 3. Vision: 1.
        EXPECT_EQ(copied, 3 * 8 + 4 + 8 + 3 + 29 + 1u);
        for (const char* kept :
             {"layers.0.mlp.gate.weight", "layers.0.mlp.shared_expert_gate.weight",
              "layers.0.linear_attn.in_proj_a.weight", "layers.0.linear_attn.in_proj_b.weight",
              "layers.0.linear_attn.conv1d.weight", "layers.3.self_attn.q_norm.weight",
              "embed_tokens.weight"})
            EXPECT_EQ(out.require(kText + kept)->dtype, DType::kBF16) << kept;
    }
}

TEST_F(QuantizedBits, ExpertsOnlyLeavesAttentionAndGdn) {
    write_plain("in", small_moe());
    for (const Case& c : {Case{"fp8-block", "hf"}, Case{"nvfp4", "compressed-tensors"},
                          Case{"nvfp4-mixed", "modelopt"}}) {
        SCOPED_TRACE(label(c));
        const std::string name = fmt::format("{}-{}", c.format, c.flavor);
        quantize("in", name.c_str(), options(c.format, c.flavor, true));
        const Checkpoint out = open(name);
        const auto weights = quantised(out);
        EXPECT_EQ(weights.size(), 4 * (3 + 12u));
        for (const auto& [base, stored] : weights)
            EXPECT_NE(base.find("expert"), std::string::npos) << base;
    }
}

// The fp8-block files of `liverow synth` are quantised by other code from the same values.
TEST_F(QuantizedBits, Fp8BlockOfASyntheticModelIsTheSyntheticFp8BlockModel) {
    for (const Config& config : {small_moe(), small_dense()}) {
        write_plain("plain", config, {.seed = 8, .overwrite = true});
        write_plain("fp8", config,
                    {.format = WeightFormat::kFp8Block, .seed = 8, .overwrite = true});
        std::filesystem::remove_all(folder("out"));
        quantize("plain", "out", options("fp8-block"));
        EXPECT_EQ(digest(open("out")), digest(open("fp8")));
        const auto declared = [&](const char* name) {
            return to_json_string(
                *json(std::string(name) + "/config.json").find("quantization_config"));
        };
        EXPECT_EQ(declared("out"), declared("fp8"));
        const auto opened = open_model(folder("out"));
        ASSERT_TRUE(opened) << opened.error().message();
        EXPECT_TRUE(opened->disagreements.empty());
    }
}

TEST_F(QuantizedBits, BytesDependNeitherOnThreadsNorOnBatches) {
    write_plain("in", small_moe());
    for (const Case& c : kCases) {
        SCOPED_TRACE(label(c));
        QuantizeOptions wide = options(c.format, c.flavor, false, c.scales), narrow = wide;
        narrow.batch_elements = 1;
        const std::string name = fmt::format("{}-{}-{}", c.format, c.flavor, int(c.scales));
        const auto one = quantize("in", name.c_str(), wide, 1);
        const auto many = quantize("in", (name + "-many").c_str(), narrow, 3);
        EXPECT_EQ(*read_text_file(folder(name) + "/model.safetensors"),
                  *read_text_file(folder(name) + "-many/model.safetensors"));
        ASSERT_EQ(one.modules.size(), many.modules.size());
        for (std::size_t i = 0; i < one.modules.size(); ++i)
            EXPECT_EQ(to_json_string(quantize_error_to_json(one.modules[i].error)),
                      to_json_string(quantize_error_to_json(many.modules[i].error)));
    }
}

TEST_F(QuantizedBits, F16AndF32InputsAreQuantisedFromTheirOwnValues) {
    write_plain("in", small_dense());
    const std::string base = kText + "layers.0.mlp.up_proj";
    for (DType dtype : {DType::kF16, DType::kF32}) {
        edit("in", [&](std::vector<Tensor>& tensors) {
            for (Tensor& tensor : tensors)
                if (tensor.spec.name == base + ".weight") {
                    Tensor wide = {{tensor.spec.name, dtype, tensor.spec.shape}, {}};
                    wide.bytes.resize(static_cast<std::size_t>(wide.spec.bytes()));
                    // Values that BF16 does not hold.
                    for (std::int64_t i = 0; i < wide.spec.shape.count(); ++i)
                        wide.set(i, tensor.get(i) * 1.001f);
                    tensor = wide;
                }
        });
        const std::string name(dtype_name(dtype));
        quantize("in", name.c_str(), options("nvfp4"));
        const Checkpoint plain = open("in"), out = open(name);
        ASSERT_EQ(plain.require(base + ".weight")->dtype, dtype);
        expect_bits(plain, base, quantised(out).at(base), BlockScales::kAmax);
    }
}

TEST_F(QuantizedBits, DeadExpertsStayZeroInEveryFormat) {
    write_plain("in", small_moe());
    edit("in", [](std::vector<Tensor>& tensors) {
        for (Tensor& tensor : tensors)
            if (tensor.spec.name == kText + "layers.0.mlp.experts.gate_up_proj")
                std::fill_n(tensor.bytes.begin(), 2 * 2 * 128 * 128, std::byte{0}); // expert 0
    });
    const Checkpoint plain = open("in");
    for (const Case& c : kCases) {
        SCOPED_TRACE(label(c));
        const std::string name = fmt::format("{}-{}-{}", c.format, c.flavor, int(c.scales));
        const auto report =
            quantize("in", name.c_str(), options(c.format, c.flavor, false, c.scales));
        const Checkpoint out = open(name);
        const std::string base = kText + "layers.0.mlp.experts.0.up_proj";
        const StoredWeight stored = quantised(out).at(base);
        expect_bits(plain, base, stored, c.scales);
        for (std::uint8_t code : bytes_of(*stored.weight))
            ASSERT_EQ(code, 0);
        if (stored.factor) {
            EXPECT_TRUE(std::isnormal(floats_of(*stored.factor)[0]));
        }
        EXPECT_TRUE(std::isfinite(report.kinds.front().error.relative_rms()));
    }
}

// --- errors ---

TEST_F(QuantizedBits, ErrorsOfEachModuleAreThoseOfItsDequantisedWeights) {
    write_plain("in", small_dense());
    const auto report =
        quantize("in", "out", options("nvfp4", "modelopt", false, BlockScales::kMse));
    const Checkpoint plain = open("in"), out = open("out");
    const auto weights = quantised(out);
    double ww = 0, off = 0, largest = 0;
    std::int64_t cut = 0;
    for (const char* part : {"gate_proj", "up_proj"}) {
        const std::string base = kText + "layers.1.mlp." + part;
        const StoredWeight& stored = weights.at(base);
        const std::vector<float> w = plain_weight(plain, base);
        std::vector<float> v(w.size());
        const DecodeScale d(floats_of(*stored.factor)[0]);
        const auto sf = bytes_of(*stored.scale);
        numerics::dequantize_nvfp4(bytes_of(*stored.weight), sf, d, v);
        for (std::size_t i = 0; i < w.size(); ++i) {
            const double difference = double(w[i]) - double(v[i]);
            ww += double(w[i]) * double(w[i]);
            off += difference * difference;
            largest = std::max(largest, std::fabs(difference));
            cut += std::fabs(w[i]) > 7.0f * (numerics::decode_e4m3(sf[i / 16]) * d.value);
        }
    }
    const auto module = std::find_if(
        report.modules.begin(), report.modules.end(),
        [](const QuantizeReport::Module& m) { return m.name == "layers.1.mlp.gate_up_proj"; });
    ASSERT_NE(module, report.modules.end());
    EXPECT_EQ(module->kind, "ffn");
    EXPECT_EQ(module->error.matrices, 2);
    EXPECT_EQ(module->error.elements, 2 * 160 * 128);
    EXPECT_NEAR(module->error.relative_rms(), std::sqrt(off / ww), 1e-12);
    EXPECT_EQ(module->error.max_abs, largest);
    EXPECT_EQ(module->error.saturated, cut);
    EXPECT_GT(cut, 0) << "the search cuts some weights off";
    EXPECT_GT(module->error.cosine(), 0.99);
    EXPECT_LT(module->error.cosine(), 1.0);
}

TEST_F(QuantizedBits, WeightsThatTheFormatHoldsHaveNoError) {
    write_plain("in", small_dense());
    edit("in", [](std::vector<Tensor>& tensors) {
        for (Tensor& tensor : tensors)
            if (tensor.spec.name.ends_with("_proj.weight"))
                for (std::int64_t i = 0; i < tensor.spec.shape.count(); ++i)
                    tensor.set(i, numerics::kE2M1Values[static_cast<std::size_t>(i % 16)]);
    });
    const auto report = quantize("in", "out", options("nvfp4"));
    const auto& attention = report.kinds.at(2);
    EXPECT_EQ(attention.name, "attention");
    EXPECT_EQ(attention.error.matrices, 4);
    EXPECT_LT(attention.error.relative_rms(), 1e-6) << "the factor's own rounding";
    EXPECT_EQ(attention.error.saturated, 0);
}

TEST_F(QuantizedBits, TheSearchLowersTheErrorOfEveryModule) {
    write_plain("in", small_moe());
    const auto plain = quantize("in", "max", options("nvfp4"));
    const auto searched = quantize("in", "mse", options("nvfp4", "", false, BlockScales::kMse));
    ASSERT_EQ(plain.modules.size(), searched.modules.size());
    for (std::size_t i = 0; i < plain.modules.size(); ++i)
        EXPECT_LT(searched.modules[i].error.relative_rms(), plain.modules[i].error.relative_rms());
}

TEST_F(QuantizedBits, KindsSumTheirModulesAndNameTheWorst) {
    write_plain("in", small_moe());
    const auto report = quantize("in", "out", options("nvfp4-mixed"));
    std::vector<std::string> names;
    for (const auto& kind : report.kinds) {
        names.push_back(kind.name);
        std::int64_t matrices = 0;
        double worst = 0;
        std::string name;
        for (const auto& module : report.modules)
            if (module.kind == kind.name) {
                matrices += module.error.matrices;
                if (module.error.relative_rms() > worst) {
                    worst = module.error.relative_rms();
                    name = module.name;
                }
            }
        EXPECT_EQ(kind.error.matrices, matrices);
        EXPECT_EQ(kind.worst, name);
    }
    EXPECT_EQ(names,
              (std::vector<std::string>{"gdn", "shared expert", "routed experts", "attention"}));
    EXPECT_EQ(report.kinds[0].format, WeightFormat::kFp8Tensor);
    EXPECT_EQ(report.kinds[2].format, WeightFormat::kNvfp4);
}

} // namespace
} // namespace lr::model
