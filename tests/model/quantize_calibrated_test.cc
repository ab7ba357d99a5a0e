// SPDX-License-Identifier: Apache-2.0
//
// Activation scales of a quantised copy: what is written for measured ranges, and what is declared.
#include "checkpoint/quant_format.h"
#include "model/open.h"
#include "tests/model/quantize_fixture.h"

#include <limits>

namespace lr::model {
namespace {

using checkpoint::expect_error;

class QuantizedCalibrated : public QuantizeFolders {
  protected:
    void SetUp() override {
        write_plain("in", small_moe());
        const OpenModel in = opened("in");
        for (const Entry& entry : in.model().entries())
            if (entry.quantisable())
                ranges_[entry.name] = 0.5f + 0.25f * static_cast<float>(ranges_.size());
    }

    QuantizeOptions calibrated(const char* format, const char* flavor) const {
        const auto scheme =
            quantize_scheme(format, flavor, false, numerics::BlockScales::kAmax, true);
        EXPECT_TRUE(scheme) << (scheme ? "" : scheme.error().message());
        return {.scheme = *scheme, .ranges = ranges_};
    }

    // Every matrix of an entry stores its range over `divisor`, or `divisor` over its range.
    void expect_stored(const OpenModel& out, WeightFormat format, float divisor,
                       const char* suffix) {
        std::size_t seen = 0;
        for (std::size_t i = 0; i < out.model().entries().size(); ++i) {
            const Entry& entry = out.model().entries()[i];
            if (entry.format != format)
                continue;
            ++seen;
            const float scale = ranges_.at(entry.name) / divisor;
            EXPECT_FLOAT_EQ(entry.input_scale, scale) << entry.name;
            for (const checkpoint::StoredWeight& weight : out.resolved.stored[i]) {
                ASSERT_NE(weight.input_scale, nullptr) << weight.weight->name;
                EXPECT_TRUE(weight.input_scale->name.ends_with(suffix)) << weight.weight->name;
                EXPECT_EQ(weight.input_scale->shape, weight.factor->shape);
                const bool inverse = std::string_view(suffix) == ".input_global_scale";
                EXPECT_FLOAT_EQ(floats_of(*weight.input_scale)[0], inverse ? 1 / scale : scale);
            }
        }
        EXPECT_GT(seen, 0u);
    }

    OpenModel opened(const char* name) {
        auto model = open_model(folder(name));
        EXPECT_TRUE(model) << (model ? "" : model.error().message());
        EXPECT_EQ(model->disagreements, std::vector<std::string>());
        return std::move(*model);
    }

    InputRanges ranges_;
};

TEST_F(QuantizedCalibrated, ModelOptCopiesStoreAndDeclareThem) {
    quantize("in", "out", calibrated("nvfp4", "modelopt"));
    expect_stored(opened("out"), WeightFormat::kNvfp4, 6 * 448, ".input_scale");
    EXPECT_EQ(json("out/config.json").find("quantization_config")->find("quant_algo")->as_string(),
              "NVFP4");
}

TEST_F(QuantizedCalibrated, MixedCopiesHaveStaticFp8Beside) {
    quantize("in", "out", calibrated("nvfp4-mixed", "modelopt"));
    const OpenModel out = opened("out");
    expect_stored(out, WeightFormat::kNvfp4, 6 * 448, ".input_scale");
    expect_stored(out, WeightFormat::kFp8Tensor, 448, ".input_scale");
    const Json layers =
        *json("out/hf_quant_config.json").find("quantization")->find("quantized_layers");
    EXPECT_EQ(to_json_string(*layers.find(kText + "layers.2.mlp.experts")),
              R"({"quant_algo":"NVFP4","group_size":16})");
}

TEST_F(QuantizedCalibrated, CompressedTensorsCopiesStoreTheInverse) {
    quantize("in", "out", calibrated("nvfp4", "compressed-tensors"));
    expect_stored(opened("out"), WeightFormat::kNvfp4, 6 * 448, ".input_global_scale");
    const Json config = *json("out/config.json").find("quantization_config");
    EXPECT_EQ(
        to_json_string(*config.find("config_groups")->find("group_0")->find("input_activations")),
        R"({"num_bits":4,"type":"float","symmetric":true,"strategy":"tensor_group",)"
        R"("dynamic":"local","group_size":16,"scale_dtype":"torch.float8_e4m3fn"})");
}

TEST_F(QuantizedCalibrated, WeightsAreThoseOfTheUncalibratedCopy) {
    quantize("in", "out", calibrated("nvfp4", "modelopt"));
    quantize("in", "plain", options("nvfp4"));
    const Checkpoint out = open("out"), plain = open("plain");
    for (const checkpoint::TensorInfo& tensor : plain.tensors())
        EXPECT_EQ(bytes_of(*out.require(tensor.name)), bytes_of(tensor)) << tensor.name;
    EXPECT_GT(out.tensors().size(), plain.tensors().size());
}

TEST_F(QuantizedCalibrated, InputsThatWereAllZeroGetAScaleOfOne) {
    const std::string dead = "layers.2.mlp.experts.down_proj";
    ASSERT_TRUE(ranges_.contains(dead));
    ranges_[dead] = 0;
    testing::internal::CaptureStderr();
    quantize("in", "out", calibrated("nvfp4", "modelopt"));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(dead + ": its inputs were all 0 in calibration"), std::string::npos)
        << said;
    EXPECT_EQ(opened("out").model().entry(dead).input_scale, 1.0f);
}

TEST_F(QuantizedCalibrated, AWeightWithoutARangeIsRefused) {
    ranges_.erase("layers.3.self_attn.o_proj");
    expect_error(try_quantize("in", "out", calibrated("nvfp4", "modelopt")), Code::kInvalidArgument,
                 {"in: layers.3.self_attn.o_proj: expected the range of its inputs, got none"});
    EXPECT_FALSE(std::filesystem::exists(folder("out")));
}

TEST_F(QuantizedCalibrated, AnUnfinishedRunGoesOnWithTheSameScalesOnly) {
    const std::string bad = kText + "layers.3.self_attn.o_proj.weight";
    set_element("in", bad, 5, std::numeric_limits<float>::infinity(), true);
    const QuantizeOptions before = calibrated("nvfp4", "modelopt");
    expect_error(try_quantize("in", "out", before), Code::kInvalidFile, {bad});
    set_element("in", bad, 5, 0.5f, true);
    ranges_["layers.0.mlp.experts.down_proj"] *= 2;
    expect_error(try_quantize("in", "out", calibrated("nvfp4", "modelopt")), Code::kInvalidArgument,
                 {"out: holds an unfinished run with options", "input_scales"});
    expect_error(try_quantize("in", "out", options("nvfp4")), Code::kInvalidArgument,
                 {"\"input_scales\":null"});
    quantize("in", "out", before);
}

TEST(QuantizeScheme, DynamicFormatsAreNotCalibrated) {
    for (const char* format : {"fp8-block", "fp8-channel"})
        expect_error(quantize_scheme(format, "", false, numerics::BlockScales::kAmax, true),
                     Code::kInvalidArgument,
                     {"calibration: expected a format with static activation scales (nvfp4, "
                      "nvfp4-mixed), got",
                      format});
}

} // namespace
} // namespace lr::model
