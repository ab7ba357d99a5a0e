// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_format.h"
#include "checkpoint/safetensors_writer.h"
#include "tests/checkpoint/files.h"

#include <gtest/gtest.h>

#include <deque>

namespace lr::checkpoint {
namespace {

// Hand-made siblings; nothing is read from them.
class Siblings {
  public:
    const TensorInfo* make(std::string_view name, DType dtype, Shape shape) {
        tensors_.push_back({name, name_of(dtype), dtype, shape, nullptr, 0});
        return &tensors_.back();
    }

  private:
    static std::string_view name_of(DType dtype) {
        switch (dtype) {
        case DType::kBF16:
            return "BF16";
        case DType::kF32:
            return "F32";
        case DType::kE4M3:
            return "F8_E4M3";
        default:
            return "U8";
        }
    }
    std::deque<TensorInfo> tensors_;
};

TEST(QuantFormat, APlainWeightIsPlain) {
    Siblings make;
    for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
        WeightSiblings s;
        s.weight = make.make("x.weight", dtype, {4, 8});
        const auto found = detect_format("x", s);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->format, StoredFormat::kPlain);
        EXPECT_EQ(found->weight, s.weight);
        EXPECT_EQ(found->scale, nullptr);
        EXPECT_EQ(found->shape, (Shape{4, 8}));
    }
}

TEST(QuantFormat, FindsFp8BlockUnderBothNamesAndScaleDtypes) {
    Siblings make;
    for (DType dtype : {DType::kBF16, DType::kF32})
        for (bool inverse_name : {true, false}) {
            WeightSiblings s;
            s.weight = make.make("x.weight", DType::kE4M3, {300, 256});
            (inverse_name ? s.weight_scale_inv : s.weight_scale) = make.make("x.s", dtype, {3, 2});
            const auto found = detect_format("x", s);
            ASSERT_TRUE(found) << found.error().message();
            EXPECT_EQ(found->format, StoredFormat::kFp8Block);
            EXPECT_EQ(found->scale->name, "x.s");
        }
    WeightSiblings fused;
    fused.weight = make.make("experts.gate_up_proj", DType::kE4M3, {8, 300, 129});
    fused.weight_scale_inv = make.make("s", DType::kBF16, {8, 3, 2});
    EXPECT_EQ(detect_format("experts.gate_up_proj", fused)->format, StoredFormat::kFp8Block);
}

TEST(QuantFormat, RefusesABlockScaleOfTheWrongShapeOrDtype) {
    Siblings make;
    WeightSiblings s;
    s.weight = make.make("x.weight", DType::kE4M3, {300, 256});
    s.weight_scale_inv = make.make("x.weight_scale_inv", DType::kBF16, {2, 2});
    expect_error(detect_format("x", s), Code::kInvalidFile,
                 {"tensor 'x.weight_scale_inv': expected shape [3, 2]",
                  "128x128 blocks of [300, 256]", "got [2, 2]"});
    s.weight_scale_inv = make.make("x.weight_scale_inv", DType::kBF16, {2, 3});
    expect_error(detect_format("x", s), Code::kInvalidFile, {"got [2, 3]"});
    s.weight_scale_inv = make.make("x.weight_scale_inv", DType::kU8, {3, 2});
    expect_error(detect_format("x", s), Code::kInvalidFile, {"expected dtype BF16 or F32, got U8"});
}

TEST(QuantFormat, TellsChannelAndTensorScalesApart) {
    Siblings make;
    WeightSiblings s;
    s.weight = make.make("x.weight", DType::kE4M3, {256, 128});
    for (const Shape& shape : {Shape{256, 1}, Shape{256}}) {
        s.weight_scale = make.make("x.weight_scale", DType::kBF16, shape);
        EXPECT_EQ(detect_format("x", s)->format, StoredFormat::kFp8Channel);
    }
    s.input_scale = make.make("x.input_scale", DType::kF32, {});
    for (const Shape& shape : {Shape{}, Shape{1}}) {
        s.weight_scale = make.make("x.weight_scale", DType::kF32, shape);
        const auto found = detect_format("x", s);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->format, StoredFormat::kFp8Tensor);
        EXPECT_EQ(found->input_scale, s.input_scale);
    }
    s.weight_scale = make.make("x.weight_scale", DType::kF32, {3, 3});
    expect_error(detect_format("x", s), Code::kInvalidFile,
                 {"expected a scale of [256, 1] per channel, [2, 1] per 128x128 block or one value",
                  "got [3, 3]"});
}

TEST(QuantFormat, FindsBothNvfp4Forms) {
    Siblings make;
    WeightSiblings s;
    s.weight = make.make("x.weight", DType::kU8, {64, 128});
    s.weight_scale = make.make("x.weight_scale", DType::kE4M3, {64, 16});
    s.weight_scale_2 = make.make("x.weight_scale_2", DType::kF32, {});
    s.input_scale = make.make("x.input_scale", DType::kF32, {});
    const auto modelopt = detect_format("x", s);
    ASSERT_TRUE(modelopt) << modelopt.error().message();
    EXPECT_EQ(modelopt->format, StoredFormat::kNvfp4ModelOpt);
    EXPECT_EQ(modelopt->shape, (Shape{64, 256})) << "elements, not bytes";
    EXPECT_EQ(modelopt->global_scale, s.weight_scale_2);
    EXPECT_EQ(modelopt->input_scale, s.input_scale);

    WeightSiblings packed;
    packed.weight_packed = s.weight;
    packed.weight_scale = s.weight_scale;
    packed.weight_global_scale = make.make("x.weight_global_scale", DType::kF32, {1});
    const auto compressed = detect_format("x", packed);
    ASSERT_TRUE(compressed) << compressed.error().message();
    EXPECT_EQ(compressed->format, StoredFormat::kNvfp4Compressed);
    EXPECT_EQ(compressed->weight, packed.weight_packed);
    EXPECT_EQ(compressed->input_scale, nullptr);

    packed.weight_scale = make.make("x.weight_scale", DType::kE4M3, {64, 8});
    expect_error(detect_format("x", packed), Code::kInvalidFile,
                 {"expected shape [64, 16] (blocks of 16 of [64, 256]), got [64, 8]"});
    packed.weight_packed = make.make("x.weight_packed", DType::kU8, {64, 12});
    expect_error(detect_format("x", packed), Code::kInvalidFile, {"whole blocks of 16"});
}

TEST(QuantFormat, RefusesSiblingsThatContradictEachOther) {
    Siblings make;
    const TensorInfo* bf16 = make.make("x.weight", DType::kBF16, {128, 128});
    const TensorInfo* fp8 = make.make("x.weight", DType::kE4M3, {128, 128});
    const TensorInfo* u8 = make.make("x.weight", DType::kU8, {128, 128});
    const TensorInfo* scale = make.make("x.scale", DType::kF32, {1, 1});
    auto refused = [](const WeightSiblings& s, std::initializer_list<std::string_view> fragments) {
        expect_error(detect_format("x", s), Code::kInvalidFile, fragments);
    };
    expect_error(detect_format("x", {}), Code::kNotFound, {"expected 'x.weight'"});
    refused({.weight = bf16, .weight_scale_inv = scale},
            {"expected a plain weight without scales, got 'x.weight' BF16 [128, 128], 'x.scale' "
             "F32 [1, 1]"});
    refused({.weight = fp8}, {"either weight_scale_inv or weight_scale", "'x.weight' F8_E4M3"});
    refused({.weight = fp8, .weight_scale = scale, .weight_scale_inv = scale}, {"either"});
    refused({.weight = fp8, .weight_scale = scale, .weight_scale_2 = scale}, {"either"});
    refused({.weight = u8}, {"a U8 weight with weight_scale and weight_scale_2"});
    refused({.weight = u8, .weight_packed = u8}, {"weight_packed without weight"});
    refused({.weight_packed = u8, .weight_scale = scale}, {"and weight_global_scale"});
    refused({.weight = make.make("x.weight", DType::kE4M3, {5}), .weight_scale = scale},
            {"an FP8 weight [N, K]"});
    const TensorInfo unknown{"x.weight", "F64", std::nullopt, {2, 2}, nullptr, 0};
    refused({.weight = &unknown}, {"a weight in BF16, F16, F32, F8_E4M3 or U8", "F64 [2, 2]"});
}

TEST(QuantFormat, LooksUpSiblingsInACheckpoint) {
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {
        {"a.weight", DType::kE4M3, {1, 2}},         {"a.weight_scale_inv", DType::kF32, {1, 1}},
        {"b.weight_packed", DType::kU8, {1}},       {"b.weight_global_scale", DType::kF32, {1}},
        {"b.input_global_scale", DType::kF32, {1}}, {"c", DType::kBF16, {1}},
    };
    auto writer = SafetensorsWriter::create(folder.file("model.safetensors"), specs);
    ASSERT_TRUE(writer);
    const std::vector<std::byte> zeros(16);
    for (const TensorSpec& spec : specs)
        ASSERT_TRUE(
            writer
                ->append(spec.name, std::span(zeros).first(static_cast<std::size_t>(spec.bytes())))
                .ok());
    ASSERT_TRUE(writer->finish().ok());
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint);
    const WeightSiblings a = find_siblings(*checkpoint, "a");
    EXPECT_EQ(detect_format("a", a)->format, StoredFormat::kFp8Block);
    const WeightSiblings b = find_siblings(*checkpoint, "b");
    EXPECT_EQ(b.weight, nullptr);
    EXPECT_EQ(b.weight_packed->name, "b.weight_packed");
    EXPECT_EQ(b.input_global_scale->name, "b.input_global_scale");
    EXPECT_EQ(find_siblings(*checkpoint, "c").weight->name, "c") << "fused experts have no suffix";
}

Result<std::optional<QuantizationConfig>> read(std::string_view text) {
    const auto json = parse_json(text, "config.json");
    EXPECT_TRUE(json);
    return read_quantization_config(JsonCursor("config.json", *json));
}

TEST(QuantizationConfig, IsReadFromTheRootOrTheTextPart) {
    const auto fp8 = read(R"({"quantization_config":{"quant_method":"fp8","fmt":"e4m3",
        "weight_block_size":[128,128],"modules_to_not_convert":["lm_head","model.visual"]}})");
    ASSERT_TRUE(fp8 && *fp8);
    EXPECT_EQ((*fp8)->method, "fp8");
    EXPECT_EQ((*fp8)->scheme, "e4m3");
    EXPECT_EQ((*fp8)->block, (std::array<std::int64_t, 2>{128, 128}));
    EXPECT_EQ((*fp8)->excluded, (std::vector<std::string>{"lm_head", "model.visual"}));
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
}

TEST(QuantizationConfig, DisagreementsAreNamed) {
    using Found = std::map<StoredFormat, std::int64_t>;
    QuantizationConfig fp8{"fp8", "e4m3", std::array<std::int64_t, 2>{128, 128}, {}};
    EXPECT_TRUE(quantization_disagreements(std::nullopt, Found{{StoredFormat::kPlain, 9}}).empty());
    EXPECT_TRUE(quantization_disagreements(
                    fp8, Found{{StoredFormat::kPlain, 9}, {StoredFormat::kFp8Block, 4}})
                    .empty());
    EXPECT_EQ(quantization_disagreements(std::nullopt, Found{{StoredFormat::kFp8Block, 4}}),
              std::vector<std::string>{"config.json declares no quantization, but 4 weights are "
                                       "stored as fp8-block"});
    EXPECT_EQ(quantization_disagreements(fp8, Found{{StoredFormat::kPlain, 4}}),
              std::vector<std::string>{"config.json declares quantization 'fp8', but every weight "
                                       "is stored plain"});
    EXPECT_EQ(quantization_disagreements(fp8, Found{{StoredFormat::kFp8Channel, 3}}),
              std::vector<std::string>{"config.json declares quantization 'fp8' in blocks, but 3 "
                                       "weights are stored as fp8-channel"});
    fp8.block = {64, 64};
    const auto blocks = quantization_disagreements(fp8, Found{{StoredFormat::kFp8Block, 1}});
    ASSERT_EQ(blocks.size(), 1u);
    EXPECT_EQ(blocks[0], "config.json declares blocks of 64x64, but only 128x128 is known");
    const QuantizationConfig modelopt{"modelopt", "MIXED_PRECISION", std::nullopt, {}};
    EXPECT_TRUE(quantization_disagreements(modelopt, Found{{StoredFormat::kNvfp4ModelOpt, 1},
                                                           {StoredFormat::kFp8Tensor, 1}})
                    .empty());
    EXPECT_EQ(
        quantization_disagreements(modelopt, Found{{StoredFormat::kNvfp4Compressed, 1}}).size(),
        1u);
}

} // namespace
} // namespace lr::checkpoint
