// SPDX-License-Identifier: Apache-2.0
//
// Quantised checkpoints that are wrong, each with the whole message it gets; and the odd ones that
// are not.
#include "tests/engine/quantised_model.h"

namespace lr::engine {
namespace {

const std::string kL = "model.language_model.layers.";
const std::string kQ = kL + "3.self_attn.q_proj."; // [1024, 128]
const std::string kExpert = kL + "1.mlp.experts.2.";
constexpr const char* kLoads =
    "BF16, F16, F32; FP8 E4M3 per 128x128 block, channel or tensor; NVFP4 of ModelOpt (W4A4, "
    "W4A16) and compressed-tensors";

// A good checkpoint of one flavor, written once, to be spoilt.
const QuantisedModel& good(Flavor flavor) {
    static std::map<Flavor, QuantisedModel> made;
    const auto found = made.find(flavor);
    if (found != made.end())
        return found->second;
    return made[flavor] =
               write_quantised(everywhere(fmt::format("good{}", static_cast<int>(flavor)), flavor));
}

struct Case {
    std::string name;
    Flavor flavor;
    std::function<void(RawTensors&)> spoil;
    std::string message; // "{F}": the folder
    Code code = Code::kInvalidFile;
    std::string config = {};
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

using Spoil = std::function<void(RawTensors&)>;

Spoil set(std::string name, std::size_t i, float value) {
    return [=](RawTensors& t) { t.at(name).f32(i) = value; };
}
Spoil set_byte(std::string name, std::size_t i, int value) {
    return [=](RawTensors& t) { t.at(name).bytes.at(i) = std::byte(value); };
}
Spoil drop(std::string name) {
    return [=](RawTensors& t) { ASSERT_EQ(t.erase(name), 1u); };
}
Spoil add(std::string name, RawTensor tensor) {
    return [=](RawTensors& t) { t[name] = tensor; };
}
Spoil rename(std::string from, std::string to) {
    return [=](RawTensors& t) {
        t[to] = t.at(from);
        t.erase(from);
    };
}

const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = INFINITY;

const std::vector<Case> kCases = {
        // Values.
        {"block_scale_nan", Flavor::kBlock, set(kQ + "weight_scale", 5, kNan),
         "{F}: tensor '" + kQ + "weight_scale': expected finite scales >= 0, got NaN at [5, 0]"},
        {"block_scale_infinite", Flavor::kBlockInv,
         add(kQ + "weight_scale_inv", raw_bf16({8, 1}, {1, 1, 1, kInf, 1, 1, 1, 1})),
         "{F}: tensor '" + kQ +
             "weight_scale_inv': expected finite scales >= 0, got inf at [3, 0]"},
        {"channel_scale_negative", Flavor::kChannelFlat, set(kQ + "weight_scale", 1000, -0.5f),
         "{F}: tensor '" + kQ + "weight_scale': expected finite scales >= 0, got -0.5 at [1000]"},
        {"tensor_scale_infinite", Flavor::kTensor, set(kQ + "weight_scale", 0, kInf),
         "{F}: tensor '" + kQ + "weight_scale': expected a finite factor >= 0, got inf"},
        {"tensor_scale_zero", Flavor::kTensor, set(kQ + "weight_scale", 0, 0),
         "{F}: tensor '" + kQ + "weight_scale': expected a factor > 0, got 0 while '" + kQ +
             "weight' has codes that are not zero (first at byte 0)"},
        {"nvfp4_scale_nan", Flavor::kModelOpt, set_byte(kQ + "weight_scale", 8 * 77 + 3, 0xFF),
         "{F}: tensor '" + kQ + "weight_scale': expected finite scales >= 0, got NaN at [77, 3]"},
        {"nvfp4_scale_negative", Flavor::kCompressed, set_byte(kQ + "weight_scale", 2, 0xB8),
         "{F}: tensor '" + kQ + "weight_scale': expected finite scales >= 0, got -1 at [0, 2]"},
        {"modelopt_factor_nan", Flavor::kModelOpt, set(kExpert + "up_proj.weight_scale_2", 0, kNan),
         "{F}: tensor '" + kExpert +
             "up_proj.weight_scale_2': expected a finite factor >= 0, got NaN"},
        {"compressed_factor_zero", Flavor::kCompressed, set(kQ + "weight_global_scale", 0, 0),
         "{F}: tensor '" + kQ +
             "weight_global_scale': expected a factor > 0 whose inverse is finite, got 0 at [0]"},
        {"compressed_factor_inverse", Flavor::kCompressed,
         set(kQ + "weight_global_scale", 0, 0x1p-140f),
         "{F}: tensor '" + kQ +
             "weight_global_scale': expected a factor > 0 whose inverse is finite, got "
             "7.17e-43 at [0]"},
        {"input_scale_zero", Flavor::kTensorStatic, set(kL + "3.self_attn.o_proj.input_scale", 0, 0),
         "{F}: tensor '" + kL +
             "3.self_attn.o_proj.input_scale': expected an input scale > 0, got 0 in all 1 of "
             "layers.3.self_attn.o_proj"},
        {"input_scale_nan", Flavor::kModelOpt, set(kExpert + "down_proj.input_scale", 0, kNan),
         "{F}: tensor '" + kExpert +
             "down_proj.input_scale': expected a finite input scale >= 0, got NaN"},
        {"input_scale_subnormal", Flavor::kTensorStatic,
         set(kL + "3.self_attn.o_proj.input_scale", 0, 0x1p-130f),
         "{F}: tensor '" + kL +
             "3.self_attn.o_proj.input_scale': expected an input scale that is normal and has a "
             "normal inverse, got 7.34684e-40"},
        {"kv_scale_negative", Flavor::kModelOpt,
         add(kL + "3.self_attn.k_proj.k_scale", raw_f32({}, {-1})),
         "{F}: tensor '" + kL +
             "3.self_attn.k_proj.k_scale': expected a finite scale > 0, got -1"},
        {"kv_scale_shape", Flavor::kModelOpt,
         add(kL + "3.self_attn.v_proj.v_scale", raw_f32({2}, {1, 1})),
         "{F}: tensor '" + kL +
             "3.self_attn.v_proj.v_scale': expected one F32 or BF16 value, got F32 [2]"},
        {"kv_scale_in_a_gdn_layer", Flavor::kModelOpt,
         add(kL + "0.self_attn.k_proj.k_scale", raw_f32({}, {1})),
         "{F}: 1 tensors belong to no weight of this model: " + kL +
             "0.self_attn.k_proj.k_scale"},
        // Shapes, dtypes, siblings.
        {"scale_dtype", Flavor::kTensor,
         add(kQ + "weight_scale", raw(DType::kF16, {}, std::vector<std::uint16_t>{0x3C00})),
         "{F}: tensor '" + kQ +
             "weight_scale': expected one F32 or BF16 value, got F16 []"},
        {"channel_scale_dtype", Flavor::kChannelFlat,
         add(kQ + "weight_scale",
             raw(DType::kF16, {1024}, std::vector<std::uint16_t>(1024, 0x3C00))),
         "{F}: tensor '" + kQ + "weight_scale': expected dtype BF16 or F32, got F16"},
        {"scale_shape", Flavor::kChannelFlat,
         add(kQ + "weight_scale", raw_f32({1023}, std::vector<float>(1023, 1))),
         "{F}: tensor '" + kQ +
             "weight_scale': expected a scale of [1024, 1] per channel, [8, 1] per 128x128 block "
             "or one value for weight [1024, 128], got [1023]"},
        {"block_of_64", Flavor::kBlockInv,
         add(kQ + "weight_scale_inv", raw_f32({16, 2}, std::vector<float>(32, 1))),
         "{F}: tensor '" + kQ +
             "weight_scale_inv': expected shape [8, 1] (128x128 blocks of [1024, 128]), got [16, "
             "2]"},
        {"nvfp4_group_of_32", Flavor::kModelOpt,
         add(kQ + "weight_scale",
             raw(DType::kE4M3, {1024, 4}, std::vector<std::uint8_t>(4096, 0x38))),
         "{F}: tensor '" + kQ +
             "weight_scale': expected shape [1024, 8] (blocks of 16 of [1024, 128]), got [1024, "
             "4]"},
        {"nvfp4_scale_dtype", Flavor::kModelOpt,
         add(kQ + "weight_scale",
             raw(DType::kU8, {1024, 8}, std::vector<std::uint8_t>(8192, 0x38))),
         "{F}: tensor '" + kQ + "weight_scale': expected dtype F8_E4M3, got U8"},
        {"nvfp4_codes_shape", Flavor::kModelOpt,
         add(kQ + "weight", raw(DType::kU8, {1024, 60}, std::vector<std::uint8_t>(61440, 0x11))),
         "{F}: weight '" + kQ.substr(0, kQ.size() - 1) +
             "': expected NVFP4 codes of whole blocks of 16 along K, got '" + kQ +
             "weight' U8 [1024, 60], '" + kQ + "weight_scale' F8_E4M3 [1024, 8], '" + kQ +
             "weight_scale_2' F32 [], '" + kQ + "input_scale' F32 []"},
        {"missing_factor", Flavor::kModelOpt, drop(kQ + "weight_scale_2"),
         "{F}: weight '" + kQ.substr(0, kQ.size() - 1) +
             "': expected a U8 weight with weight_scale, weight_scale_2 and at most input_scale, "
             "got '" +
             kQ + "weight' U8 [1024, 64], '" + kQ + "weight_scale' F8_E4M3 [1024, 8], '" + kQ +
             "input_scale' F32 []"},
        {"missing_scale", Flavor::kTensor, drop(kQ + "weight_scale"),
         "{F}: weight '" + kQ.substr(0, kQ.size() - 1) +
             "': expected an F8_E4M3 weight with either weight_scale_inv or weight_scale, got '" +
             kQ + "weight' F8_E4M3 [1024, 128]"},
        {"missing_codes", Flavor::kCompressed, drop(kQ + "weight_packed"),
         "{F}: 1 weights are missing: " + kQ + "weight"},
        {"both_flavors", Flavor::kModelOpt, add(kQ + "weight_global_scale", raw_f32({1}, {2688})),
         "{F}: weight '" + kQ.substr(0, kQ.size() - 1) +
             "': expected a U8 weight with weight_scale, weight_scale_2 and at most input_scale, "
             "got '" +
             kQ + "weight' U8 [1024, 64], '" + kQ + "weight_scale' F8_E4M3 [1024, 8], '" + kQ +
             "weight_scale_2' F32 [], '" + kQ + "weight_global_scale' F32 [1], '" + kQ +
             "input_scale' F32 []"},
        {"both_spellings", Flavor::kTensor,
         add(kQ.substr(0, kQ.size() - 1) + "_weight_scale", raw_f32({}, {1})),
         "{F}: weight '" + kQ.substr(0, kQ.size() - 1) +
             "': expected each of its tensors under one name, got '" + kQ +
             "weight' F8_E4M3 [1024, 128], '" + kQ + "weight_scale' F32 [], '" +
             kQ.substr(0, kQ.size() - 1) + "_weight_scale' F32 []"},
        {"input_scale_beside_blocks", Flavor::kBlockInv, add(kQ + "input_scale", raw_f32({}, {1})),
         "{F}: weight '" + kQ.substr(0, kQ.size() - 1) +
             "': expected an FP8 block weight without input_scale: its activations have a scale "
             "for each 128 channels, made at run time, got '" +
             kQ + "weight' F8_E4M3 [1024, 128], '" + kQ + "weight_scale_inv' BF16 [8, 1], '" + kQ +
             "input_scale' F32 []"},
        {"input_scale_beside_plain", Flavor::kTensor,
         add(kL + "3.mlp.gate.input_scale", raw_f32({}, {1})),
         "{F}: weight '" + kL + "3.mlp.gate': expected a plain weight without scales, got '" + kL +
             "3.mlp.gate.weight' BF16 [4, 128], '" + kL + "3.mlp.gate.input_scale' F32 []"},
        {"parts_in_two_formats", Flavor::kTensor,
         [](RawTensors& t) {
             t[kQ + "weight"] = raw_bf16({1024, 128}, std::vector<float>(131072, 1));
             t.erase(kQ + "weight_scale");
         },
         "{F}: layers.3.self_attn.qkv_proj: its parts are stored in two formats, plain (" + kQ +
             "weight) and fp8-tensor (" + kL + "3.self_attn.k_proj.weight); expected one",
         Code::kUnsupported},
        {"transposed", Flavor::kTensor,
         [](RawTensors& t) {
             t[kL + "3.self_attn.o_proj.weight"].shape = {512, 128};
         },
         "{F}: " + kL +
             "3.self_attn.o_proj.weight: expected shape [128, 512], got [512, 128]; config.json "
             "and the weights are of different models"},
        {"a_quantised_convolution", Flavor::kModelOpt,
         [](RawTensors& t) {
             t[kL + "0.linear_attn.conv1d.weight"] =
                 raw(DType::kE4M3, {1024, 1, 4}, std::vector<std::uint8_t>(4096, 0x38));
             t[kL + "0.linear_attn.conv1d.weight_scale"] = raw_f32({}, {1});
         },
         "{F}: " + kL +
             "0.linear_attn.conv1d.weight: stored as fp8-tensor; a vector or a convolution is "
             "expected in BF16, F16 or F32",
         Code::kUnsupported},
        // Quantisations that do not load.
        {"gptq", Flavor::kPlain,
         rename(kQ + "weight", kQ + "qweight"),
         "{F}/config.json declares gptq for layers.0.linear_attn.in_proj_qkv, which does not load; "
         "what loads: {L}. ({F}: tensor '" +
             kQ + "qweight' is of GPTQ or AWQ, which does not load; what loads: {L})",
         Code::kUnsupported, R"({"quant_method":"gptq","bits":4})"},
        {"awq_undeclared", Flavor::kPlain, rename(kQ + "weight", kQ + "qweight"),
         "{F}: tensor '" + kQ + "qweight' is of GPTQ or AWQ, which does not load; what loads: {L}",
         Code::kUnsupported},
        {"bitsandbytes", Flavor::kPlain, add(kQ + "weight.absmax", raw_f32({1}, {1})),
         "{F}: tensor '" + kQ +
             "weight.absmax' is of bitsandbytes, which does not load; what loads: {L}",
         Code::kUnsupported},
        {"mxfp4", Flavor::kPlain,
         add(kL + "0.mlp.experts.down_proj_blocks", raw_f32({1}, {1})),
         "{F}: tensor '" + kL +
             "0.mlp.experts.down_proj_blocks' is of MXFP4, which does not load; what loads: {L}",
         Code::kUnsupported},
        {"awq_of_modelopt", Flavor::kModelOpt,
         add(kQ + "pre_quant_scale", raw_bf16({128}, std::vector<float>(128, 1))),
         "{F}: tensor '" + kQ +
             "pre_quant_scale' is of AWQ of ModelOpt, which does not load; what loads: {L}",
         Code::kUnsupported},
        {"int8", Flavor::kTensor,
         add(kQ + "weight", raw(DType::kI32, {1024, 128}, std::vector<std::int32_t>(131072, 1))),
         "{F}/config.json declares compressed-tensors int8 channel for "
         "layers.0.linear_attn.in_proj_qkv, which does not load; what loads: {L}. ({F}: weight '" +
             kQ.substr(0, kQ.size() - 1) +
             "': expected a weight in BF16, F16, F32, F8_E4M3 or U8, got '" + kQ +
             "weight' I32 [1024, 128], '" + kQ + "weight_scale' F32 [])",
         Code::kUnsupported,
         R"({"quant_method":"compressed-tensors","format":"int-quantized","config_groups":{"group_0":
            {"targets":["Linear"],"weights":{"num_bits":8,"type":"int","strategy":"channel"}}}})"},
        {"fp4_group_of_32", Flavor::kCompressed,
         add(kQ + "weight_scale",
             raw(DType::kE4M3, {1024, 4}, std::vector<std::uint8_t>(4096, 0x38))),
         "{F}/config.json declares compressed-tensors float4 group 32 for "
         "layers.0.linear_attn.in_proj_qkv, which does not load; what loads: {L}. ({F}: tensor '" +
             kQ +
             "weight_scale': expected shape [1024, 8] (blocks of 16 of [1024, 128]), got [1024, "
             "4])",
         Code::kUnsupported,
         R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],
            "weights":{"num_bits":4,"type":"float","strategy":"group","group_size":32}}}})"},
};

std::string replaced(std::string text, std::string_view what, const std::string& with) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
        text.replace(at, what.size(), with);
    return text;
}

// Opens and loads; the error of either.
Status load(const std::string& folder) {
    auto opened = model::open_model(folder);
    if (!opened)
        return opened.error();
    auto engine = Engine::load(*opened, {.threads = 2, .context = 64});
    return engine ? Status() : engine.error();
}

std::string spoilt_folder(const std::string& name) {
    return fmt::format("{}liverow-engine-bad-{}-{}", testing::TempDir(), name, ::getpid());
}

class BadFormats : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Engine, BadFormats, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(BadFormats, IsRefusedWithOneClearMessage) {
    const Case& c = GetParam();
    const QuantisedModel& model = good(c.flavor);
    ASSERT_TRUE(load(model.stored).ok()) << load(model.stored).message();
    RawTensors tensors = model.tensors;
    c.spoil(tensors);
    const std::string folder = spoilt_folder(c.name);
    write_tensors(folder, tensors);
    write_config(folder, model.stored, c.config);
    const Status status = load(folder);
    EXPECT_EQ(code_name(status.code()), std::string(code_name(c.code)));
    EXPECT_EQ(status.message(), replaced(replaced(c.message, "{F}", folder), "{L}", kLoads));
    std::filesystem::remove_all(folder);
}

// A shard that ends in the middle of a scale; and one that is cut while it is open.
TEST(BadFiles, ATruncatedShardIsNamed) {
    const QuantisedModel& model = good(Flavor::kModelOpt);
    const std::string folder = spoilt_folder("cut");
    std::filesystem::copy(model.stored, folder);
    const std::string file = folder + "/model.safetensors";
    const auto bytes = std::filesystem::file_size(file);
    const auto opened = model::open_model(folder);
    ASSERT_TRUE(opened);
    std::filesystem::resize_file(file, bytes / 2);
    const auto engine = Engine::load(*opened, {.threads = 2, .context = 64});
    ASSERT_FALSE(engine);
    EXPECT_NE(engine.error().message().find(file), std::string::npos) << engine.error().message();
    const Status status = load(folder);
    EXPECT_EQ(code_name(status.code()), std::string("invalid_file"));
    EXPECT_NE(status.message().find(file), std::string::npos) << status.message();
    std::filesystem::remove_all(folder);
}

// What looks wrong and is not: the folder loads, and runs without a number that is not finite.
TEST(OddFormats, DeadExpertsSubnormalScalesAndUncalibratedExpertsLoad) {
    for (const Flavor flavor : {Flavor::kModelOpt, Flavor::kTensorStatic, Flavor::kChannelFlat}) {
        const QuantisedModel& model = good(flavor);
        RawTensors tensors = model.tensors;
        const std::string dead = kExpert + "up_proj.";
        for (std::byte& code : tensors.at(dead + "weight").bytes)
            code = std::byte(0x80); // -0
        RawTensor& scale =
            tensors.at(dead + (flavor == Flavor::kModelOpt ? "weight_scale_2" : "weight_scale"));
        for (std::byte& byte : scale.bytes)
            byte = std::byte(0);
        if (flavor != Flavor::kChannelFlat)
            tensors.at(kExpert + "down_proj.input_scale").f32(0) = 0;
        if (flavor == Flavor::kChannelFlat)
            tensors.at(kQ + "weight_scale").f32(3) = 0x1p-140f;
        const std::string folder = spoilt_folder("odd");
        write_tensors(folder, tensors);
        write_config(folder, model.stored, "");
        auto [opened, engine] = load_engine(folder, {.threads = 2, .context = 64});
        ASSERT_TRUE(engine);
        const auto logits = prefill(*engine, open(*engine), some_ids(20, 512, 9), Logits::kAll);
        for (float value : logits)
            ASSERT_TRUE(std::isfinite(value));
        if (flavor != Flavor::kChannelFlat) {
            ASSERT_EQ(opened->resolved.input_scale_ranges.size(), 1u);
            EXPECT_EQ(opened->resolved.input_scale_ranges[0].entry,
                      "layers.1.mlp.experts.down_proj");
            EXPECT_EQ(opened->resolved.input_scale_ranges[0].smallest, 0);
            EXPECT_EQ(opened->model().entry("layers.1.mlp.experts.down_proj").input_scale,
                      flavor == Flavor::kModelOpt ? kNvfp4InputScale : kFp8InputScale);
        }
        std::filesystem::remove_all(folder);
    }
}

TEST(OddFormats, KvScalesAreRecorded) {
    RawTensors tensors = good(Flavor::kModelOpt).tensors;
    tensors[kL + "3.self_attn.k_proj.k_scale"] = raw_f32({}, {0.5});
    tensors[kL + "3.self_attn.v_scale"] = raw_bf16({1}, {2});
    const std::string folder = spoilt_folder("kv");
    write_tensors(folder, tensors);
    write_config(folder, good(Flavor::kModelOpt).stored, "");
    const auto opened = model::open_model(folder);
    ASSERT_TRUE(opened) << opened.error().message();
    ASSERT_EQ(opened->resolved.kv_scales.size(), 2u);
    EXPECT_EQ(opened->resolved.kv_scales[0].value, 0.5f);
    EXPECT_EQ(opened->resolved.kv_scales[1].tensor, kL + "3.self_attn.v_scale");
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace lr::engine
