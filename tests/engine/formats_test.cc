// SPDX-License-Identifier: Apache-2.0
//
// Every stored format: what the loader binds is what numerics says the codes are worth, bit for
// bit, whole and divided; and a whole model runs on it as on that model in F32.
#include "cpu/kernels/kernels.h"
#include "engine/stored_matrix.h"
#include "engine/weights.h"
#include "numerics/convert.h"
#include "tests/engine/quantised_model.h"

#include <set>

namespace lr::engine {
namespace {

// A format for each kind of module: routed experts NVFP4, the rest FP8, one scale of calibration.
Recipe mixed(std::string name) {
    return {std::move(name), [](const model::Entry& entry, const std::string&) {
                if (entry.kind == model::TensorKind::kRouted)
                    return Flavor::kModelOpt;
                return entry.quantisable() ? Flavor::kTensorStatic : Flavor::kPlain;
            }};
}

// Modules that no release quantises, but some exports do.
Recipe unusual(std::string name, Flavor flavor) {
    return {std::move(name), [flavor](const model::Entry& entry, const std::string&) {
                return entry.runs_quantised() || entry.widens() ? flavor : Flavor::kPlain;
            }};
}

Recipe fused(std::string name, Flavor flavor, bool halves) {
    Recipe recipe{std::move(name), [flavor](const model::Entry& entry, const std::string&) {
                      return entry.kind == model::TensorKind::kRouted ? flavor : Flavor::kPlain;
                  }};
    recipe.fused_experts = true;
    recipe.halves = halves;
    return recipe;
}

std::vector<Recipe> recipes() {
    return {everywhere("block-inv", Flavor::kBlockInv),
            everywhere("block", Flavor::kBlock),
            everywhere("channel", Flavor::kChannel),
            everywhere("channel-flat", Flavor::kChannelFlat),
            everywhere("tensor", Flavor::kTensor),
            everywhere("tensor-static", Flavor::kTensorStatic),
            everywhere("modelopt", Flavor::kModelOpt),
            everywhere("w4a16", Flavor::kModelOptW4A16),
            everywhere("compressed", Flavor::kCompressed),
            mixed("mixed"),
            unusual("unusual-block", Flavor::kBlockInv),
            unusual("unusual-channel", Flavor::kChannel),
            unusual("unusual-modelopt", Flavor::kModelOpt),
            fused("fused-block", Flavor::kBlockInv, false),
            fused("fused-channel", Flavor::kChannel, false),
            fused("fused-tensor", Flavor::kTensorStatic, false),
            fused("fused-tensor-halves", Flavor::kTensorStatic, true),
            fused("fused-modelopt", Flavor::kModelOpt, false),
            fused("fused-modelopt-halves", Flavor::kModelOpt, true),
            fused("fused-compressed", Flavor::kCompressed, false)};
}

class Formats : public testing::TestWithParam<Recipe> {};
INSTANTIATE_TEST_SUITE_P(Engine, Formats, testing::ValuesIn(recipes()),
                         [](const auto& info) { return test_name(info.param.name); });

// All elements of an entry on this rank, in order.
std::vector<float> values_of(const Weights& weights, const model::Model& model, std::size_t entry) {
    const model::WeightFormat format = model.entries()[entry].format;
    std::vector<float> values;
    for (const ops::WeightPart& part : weights.parts(static_cast<std::int32_t>(entry))) {
        const std::int64_t rows = part.data.shape[0], columns = part.data.shape.row_count();
        std::vector<float> found(static_cast<std::size_t>(rows * columns));
        if (format != model::WeightFormat::kPlain) {
            const auto wide = widen(format, part);
            EXPECT_TRUE(wide);
            std::memcpy(found.data(), wide->data(), found.size() * sizeof(float));
        } else {
            for (std::int64_t i = 0; i < rows; ++i)
                numerics::decode_to_f32(part.data.dtype, part.data.row(i), columns,
                                        found.data() + i * columns);
        }
        values.insert(values.end(), found.begin(), found.end());
    }
    return values;
}

model::OpenModel opened(const std::string& folder) {
    auto model = model::open_model(folder);
    EXPECT_TRUE(model) << (model ? "" : model.error().message());
    return std::move(*model);
}

TEST_P(Formats, WhatIsBoundIsWorthWhatNumericsSays) {
    for (bool moe : {true, false}) {
        if (!moe && GetParam().fused_experts)
            continue;
        const QuantisedModel made = write_quantised(GetParam(), moe);
        const model::OpenModel stored = opened(made.stored), widened = opened(made.widened);
        for (const model::Shard shard : {model::Shard{}, model::Shard{.tp = 2, .tp_rank = 0},
                                         model::Shard{.tp = 2, .tp_rank = 1},
                                         model::Shard{.ep = moe ? 2 : 1, .ep_rank = moe ? 1 : 0}}) {
            const auto ours = Weights::bind(stored, shard), theirs = Weights::bind(widened, shard);
            ASSERT_TRUE(ours) << ours.error().message();
            ASSERT_TRUE(theirs) << theirs.error().message();
            std::set<model::WeightFormat> formats;
            for (std::size_t i = 0; i < stored.model().entries().size(); ++i) {
                const model::Entry& entry = stored.model().entries()[i];
                formats.insert(entry.format);
                EXPECT_EQ(values_of(*ours, stored.model(), i),
                          values_of(*theirs, widened.model(), i))
                    << entry.name << " tp " << shard.tp << " rank " << shard.tp_rank;
            }
            EXPECT_GE(formats.size(), 2u) << "something must be quantised";
        }
    }
}

std::vector<float> run(const std::string& folder, EngineOptions options) {
    options.threads = 2;
    options.context = 256;
    auto [model, engine] = load_engine(folder, options);
    if (!engine)
        return {};
    const SequenceId sequence = open(*engine);
    auto logits =
        prefill(*engine, sequence, some_ids(40, engine->config().vocab_size, 3), Logits::kAll);
    const auto next = decode(*engine, sequence, 5);
    logits.insert(logits.end(), next.begin(), next.end());
    return logits;
}

// Of two runs of rows of logits.
double mean_divergence(const std::vector<float>& a, const std::vector<float>& b) {
    const auto vocabulary = static_cast<std::ptrdiff_t>(quantisable_config().vocab_size);
    double kl = 0;
    for (auto row = a.begin(), other = b.begin(); row != a.end();
         row += vocabulary, other += vocabulary)
        kl += divergence({row, row + vocabulary}, {other, other + vocabulary});
    return kl / static_cast<double>(std::ssize(a) / vocabulary);
}

// Where scales and factors are powers of two, multiplying weights, activations or sums by them is
// the same. So not a bit may differ.
TEST_P(Formats, AWholeModelRunsAsItsF32Weights) {
    Recipe recipe = GetParam();
    recipe.powers_of_two = true;
    const QuantisedModel made = write_quantised(recipe);
    const EngineOptions exact{.precision = ops::Precision::kF32};
    const std::vector<float> expected = run(made.widened, exact);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(run(made.stored, exact), expected);
    // With activations left alone, bf16 mode rounds the same sums; but f32 weights, which are not
    // exact in bf16, are added up in the common order on every instruction set.
    const std::vector<float> stored = run(made.stored, {.a16 = true}), wide = run(made.widened, {});
    ASSERT_EQ(stored.size(), wide.size());
    if (!cpu::kernels().bf16)
        EXPECT_EQ(stored, wide);
    else
        // KL is half the square of a distance, and those of the two to f32's add up at most.
        EXPECT_LE(mean_divergence(stored, wide),
                  2 * (mean_divergence(expected, stored) + mean_divergence(expected, wide)));
}

TEST_P(Formats, TwoRanksRunAsOne) {
    Recipe recipe = GetParam();
    const QuantisedModel made = write_quantised(recipe);
    const EngineOptions one{.precision = ops::Precision::kF32};
    EngineOptions two = one;
    two.tp = 2;
    EXPECT_LE(relative_difference(run(made.stored, two), run(made.stored, one)), 1e-5);
}

// Quantised activations cost what their format costs, and change something.
TEST_P(Formats, QuantisedActivationsStayNearPlainOnes) {
    const QuantisedModel made = write_quantised(GetParam());
    const std::vector<float> plain = run(made.stored, {.a16 = true});
    const std::vector<float> codes = run(made.stored, {.w4a4 = true});
    ASSERT_EQ(codes.size(), plain.size());
    const double mean = mean_divergence(plain, codes);
    RecordProperty("mean_kl", fmt::format("{:.2e}", mean));
    const bool weights_only = GetParam().name == "w4a16";
    if (weights_only)
        EXPECT_EQ(codes, plain) << "no calibrated scale: activations stay plain";
    else
        EXPECT_GT(mean, 0);
    // A random model, whose logits have a deviation of 3: FP8 loses 2^-4 of an activation, NVFP4
    // 2^-2.
    bool fp4 = false;
    for (const auto& [name, tensor] : made.tensors)
        fp4 = fp4 || tensor.dtype == DType::kU8;
    EXPECT_LT(mean, fp4 ? 0.25 : 0.03) << GetParam().name;
}

} // namespace
} // namespace lr::engine
