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
        EXPECT_EQ(found->factor, s.weight_scale);
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
    EXPECT_EQ(modelopt->factor, s.weight_scale_2);
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
    refused({.weight = u8}, {"a U8 weight with weight_scale, weight_scale_2"});
    refused({.weight = u8, .weight_packed = u8}, {"weight_packed without weight"});
    refused({.weight_packed = u8, .weight_scale = scale},
            {"weight_packed with weight_scale, weight_global_scale"});
    refused({.weight = make.make("x.weight", DType::kE4M3, {5}), .weight_scale = scale},
            {"an FP8 weight [N, K] or [E, N, K]"});
    const TensorInfo unknown{"x.weight", "F64", std::nullopt, {2, 2}, nullptr, 0};
    refused({.weight = &unknown}, {"a weight in BF16, F16, F32, F8_E4M3 or U8", "F64 [2, 2]"});
}

// A checkpoint of these tensors, all zero.
Result<Checkpoint> zeros_of(const TempFolder& folder, const std::vector<TensorSpec>& specs) {
    LR_TRY_ASSIGN(SafetensorsWriter writer,
                  SafetensorsWriter::create(folder.file("model.safetensors"), specs));
    for (const TensorSpec& spec : specs)
        LR_TRY(writer.append(spec.name,
                             std::vector<std::byte>(static_cast<std::size_t>(spec.bytes()))));
    LR_TRY(writer.finish());
    return Checkpoint::open(folder.path());
}

TEST(QuantFormat, LooksUpSiblingsInACheckpoint) {
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {
        {"a.weight", DType::kE4M3, {1, 2}},         {"a.weight_scale_inv", DType::kF32, {1, 1}},
        {"b.weight_packed", DType::kU8, {1}},       {"b.weight_global_scale", DType::kF32, {1}},
        {"b.input_global_scale", DType::kF32, {1}}, {"c", DType::kBF16, {1}},
    };
    const auto checkpoint = zeros_of(folder, specs);
    ASSERT_TRUE(checkpoint);
    const WeightSiblings a = find_siblings(*checkpoint, "a");
    EXPECT_EQ(detect_format("a", a)->format, StoredFormat::kFp8Block);
    const WeightSiblings b = find_siblings(*checkpoint, "b");
    EXPECT_EQ(b.weight, nullptr);
    EXPECT_EQ(b.weight_packed->name, "b.weight_packed");
    EXPECT_EQ(b.input_global_scale->name, "b.input_global_scale");
    EXPECT_EQ(find_siblings(*checkpoint, "c").weight->name, "c") << "fused experts have no suffix";
}

TEST(QuantFormat, AStackSpellsItsSiblingsWithoutDots) {
    const TempFolder folder;
    const std::vector<TensorSpec> specs = {
        {"experts.gate_up_proj", DType::kU8, {2, 32, 8}},
        {"experts.gate_up_proj_scale", DType::kE4M3, {2, 32, 1}},
        {"experts.gate_up_proj_scale_2", DType::kF32, {2, 2}},
        {"experts.gate_up_proj_input_scale", DType::kF32, {2}},
    };
    const auto checkpoint = zeros_of(folder, specs);
    ASSERT_TRUE(checkpoint);
    const auto found =
        detect_format("experts.gate_up_proj", find_siblings(*checkpoint, "experts.gate_up_proj"));
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->format, StoredFormat::kNvfp4ModelOpt);
    EXPECT_EQ(found->shape, (Shape{2, 32, 16}));
    EXPECT_EQ(found->matrices(), 2);
    EXPECT_EQ(found->factors_per_matrix(), 2);
    EXPECT_EQ(found->input_scale->name, "experts.gate_up_proj_input_scale");
}

TEST(QuantFormat, FactorsOfAStackAreOneOrOneForEachExpert) {
    Siblings make;
    WeightSiblings s;
    s.weight = make.make("x", DType::kE4M3, {4, 256, 128});
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}, Shape{4, 1}, Shape{4, 1, 1}}) {
        s.weight_scale = make.make("x_scale", DType::kF32, shape);
        const auto found = detect_format("x", s);
        ASSERT_TRUE(found) << found.error().message();
        EXPECT_EQ(found->format, StoredFormat::kFp8Tensor);
        EXPECT_EQ(found->factors_per_matrix(), 1);
    }
    for (const Shape& shape : {Shape{4, 256}, Shape{4, 256, 1}}) {
        s.weight_scale = make.make("x_scale", DType::kF32, shape);
        EXPECT_EQ(detect_format("x", s)->format, StoredFormat::kFp8Channel);
    }
    s.weight_scale = make.make("x_scale", DType::kF32, {3});
    expect_error(detect_format("x", s), Code::kInvalidFile, {"got [3]"});
    s.weight = make.make("x", DType::kU8, {4, 256, 64});
    s.weight_scale = make.make("x_scale", DType::kE4M3, {4, 256, 8});
    s.weight_scale_2 = make.make("x_scale_2", DType::kF32, {4, 3});
    expect_error(detect_format("x", s), Code::kInvalidFile,
                 {"'x_scale_2': expected F32 or BF16 [4], [4, 2] beside a stack [4, 256, 128], got "
                  "F32 [4, 3]"});
}

} // namespace
} // namespace lr::checkpoint
