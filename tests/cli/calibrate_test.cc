// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.h"
#include "core/text_file.h"
#include "numerics/convert.h"
#include "tests/checkpoint/files.h"
#include "tests/cli/command.h"
#include "text/tokenizer.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <type_traits>

namespace lr::cli {
namespace {

const std::string kTiny = "models/tiny";
const std::string kProse = "docs/ARCHITECTURE.md";

template <typename T, std::size_t N> View view_of(std::array<T, N>& values, Shape shape) {
    constexpr DType dtype = std::is_same_v<T, float> ? DType::kF32 : DType::kI32;
    return {reinterpret_cast<std::byte*>(values.data()), dtype, shape};
}

// One launch of a product with the weight of entry `name`.
class InputRange : public testing::Test {
  protected:
    InputRange() : opened_(*model::open_model(kTiny)) {}

    Status launch(const std::string& name, const ops::AnyArgs& args) {
        graph::Step step;
        step.tensors.resize(1);
        step.tensors[0].entry = opened_.model().index(name);
        const graph::Node node;
        return observer_.after({0, step, node, args});
    }
    float range(const std::string& name) const { return observer_.ranges().at(name); }

    model::OpenModel opened_;
    InputRangeObserver observer_{opened_.model()};
    std::array<float, 8> x_ = {1, -2, 3, 4, -5, 6, 7, 80};
    const ops::Weight w_{.id = 0};
};

TEST_F(InputRange, OfALinearIsThatOfLiveRowsInAllSteps) {
    const std::string name = "layers.0.linear_attn.out_proj";
    std::array<std::int32_t, 1> live = {2};
    const ops::LinearArgs args{.x = view_of(x_, {4, 2}), .n_live = view_of(live, {1}), .w = w_};
    ASSERT_TRUE(launch(name, args).ok());
    EXPECT_EQ(range(name), 4);
    live = {3};
    ASSERT_TRUE(launch(name, args).ok());
    EXPECT_EQ(range(name), 6);
    live = {1};
    ASSERT_TRUE(launch(name, args).ok());
    EXPECT_EQ(range(name), 6) << "of this step 2, of one before 6";
    EXPECT_EQ(observer_.ranges().size(), 1u);
}

TEST_F(InputRange, OfExpertsIsThatOfTheRowsSentToThem) {
    const std::string up = "layers.0.mlp.experts.gate_up_proj";
    const std::string down = "layers.0.mlp.experts.down_proj";
    // Expert 0 has rows 0 and 1, expert 1 row 3; what lies between and behind is padding.
    std::array<std::int32_t, 2> start = {0, 3}, end = {2, 4};
    std::array<std::int32_t, 6> row_map = {0, 1, 7, 4, 7, 7}; // of tokens 0, 0 and 2
    ASSERT_TRUE(launch(up, ops::ExpertsGateUpArgs{.x = view_of(x_, {4, 2}),
                                                  .start = view_of(start, {2}),
                                                  .end = view_of(end, {2}),
                                                  .row_map = view_of(row_map, {6}),
                                                  .w = w_,
                                                  .per_token = 2})
                    .ok());
    EXPECT_EQ(range(up), 6);
    ASSERT_TRUE(launch(down, ops::ExpertsDownArgs{.f = view_of(x_, {8, 1}),
                                                  .start = view_of(start, {2}),
                                                  .end = view_of(end, {2}),
                                                  .w = w_})
                    .ok());
    EXPECT_EQ(range(down), 4);
}

TEST_F(InputRange, ThatIsNotFiniteFailsTheStep) {
    const std::string name = "layers.3.self_attn.o_proj";
    for (const float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
        x_[1] = bad;
        checkpoint::expect_error(launch(name, ops::LinearArgs{.x = view_of(x_, {4, 2}), .w = w_}),
                                 Code::kInternal, {name + ": expected finite inputs, got"});
    }
}

// The first product reads the first norm of the embeddings, which is quickly computed.
float first_norm_range(const model::OpenModel& opened, std::span<const std::int32_t> ids) {
    const auto floats = [&](const char* name) {
        const auto tensor = *opened.checkpoint->require(opened.resolved.prefix + name);
        std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
        numerics::decode_to_f32(*tensor.dtype, tensor.data, tensor.shape.count(), values.data());
        return values;
    };
    const std::vector<float> table = floats("embed_tokens.weight");
    const std::vector<float> weight = floats("layers.0.input_layernorm.weight");
    const std::size_t width = weight.size();
    float amax = 0;
    for (const std::int32_t id : ids) {
        const auto row = std::span(table).subspan(static_cast<std::size_t>(id) * width, width);
        double squares = 0;
        for (const float v : row)
            squares += double(v) * v;
        const double mean = squares / static_cast<double>(width);
        for (std::size_t k = 0; k < width; ++k)
            amax = std::max(amax, static_cast<float>(
                                      std::fabs(row[k] / std::sqrt(mean + opened.config().rms_eps) *
                                                (1 + double(weight[k])))));
    }
    return amax;
}

TEST(Calibrate, RunsTheFirstTokensOfTheText) {
    const auto opened = model::open_model(kTiny);
    ASSERT_TRUE(opened);
    const auto ids = text::Tokenizer::load(kTiny)->encode(*read_text_file(kProse));
    ASSERT_GT(ids->size(), 600u);
    for (const std::size_t tokens : {1u, 40u, 600u}) {
        const auto ranges =
            calibrate(*opened, {.text = kProse, .tokens = static_cast<std::int64_t>(tokens)});
        ASSERT_TRUE(ranges) << ranges.error().message();
        const float expected = first_norm_range(*opened, std::span(*ids).first(tokens));
        EXPECT_NEAR(ranges->at("layers.0.linear_attn.in_proj_qkvz"), expected, expected * 0x1p-7f);
        for (const model::Entry& entry : opened->model().entries())
            if (entry.quantisable() && !entry.mtp) {
                ASSERT_TRUE(ranges->contains(entry.name)) << entry.name;
                EXPECT_GT(ranges->at(entry.name), 0) << entry.name;
            }
    }
}

class QuantizeCalibrated : public testing::Test {
  protected:
    std::string path(std::string_view name) const { return files_.file(name); }
    checkpoint::TempFolder files_;
};

TEST_F(QuantizeCalibrated, CopiesRunWithQuantisedActivations) {
    for (const char* flavor : {"modelopt", "compressed-tensors"}) {
        const std::string out = path(flavor);
        const Outcome made =
            run({"quantize", kTiny.c_str(), out.c_str(), "--format", "nvfp4", "--flavor", flavor,
                 "--calibrate", kProse.c_str(), "--calibrate-tokens", "300"});
        ASSERT_EQ(made.status, 0) << made.err;
        const Outcome answer = run(
            {"run", out.c_str(), "-p", "Once upon a time", "-n", "2", "--activations", "quant"});
        EXPECT_EQ(answer.status, 0) << answer.err;
        EXPECT_NE(answer.err.find("NVFP4: W4A4"), std::string::npos) << answer.err;
    }
}

TEST_F(QuantizeCalibrated, WrongUseIsOneLine) {
    const std::string out = path("out"), empty = files_.write("empty.txt", "");
    const auto refused = [&](std::vector<const char*> more, std::vector<std::string> fragments) {
        std::vector<const char*> words = {"quantize", kTiny.c_str(), out.c_str(), "--format"};
        words.insert(words.end(), more.begin(), more.end());
        expect_refused(run(words), 2, fragments);
        EXPECT_FALSE(std::filesystem::exists(out));
    };
    refused({"fp8-block", "--calibrate", kProse.c_str()},
            {"calibration: expected a format with static activation scales", "fp8-block"});
    refused({"nvfp4", "--calibrate-tokens", "5"}, {"--calibrate"});
    refused({"nvfp4", "--calibrate", empty.c_str()}, {"empty.txt: expected text", "no token"});
}

} // namespace
} // namespace lr::cli
