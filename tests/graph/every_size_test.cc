// SPDX-License-Identifier: Apache-2.0
//
// Every released size in every format: its graphs build, weigh what the published dimensions say,
// and all their plans are proved.
#include "graph/verify_plan.h"
#include "tests/graph/steps.h"

#include <set>

namespace lr::graph {
namespace {

struct Size {
    const char* preset;
    std::int64_t bf16, fp8_block, nvfp4; // bytes of matrices that a token reads
};

// Computed from the dimension table of the spec (1.3) and its rules for bytes (7): bf16 2NK,
// fp8-block NK + 2 ceil(N/128) ceil(K/128), nvfp4 NK/2 + NK/16; in_proj_ba, conv1d, router,
// shared_expert_gate and lm_head bf16 in all; of the embedding one row, of the experts K and the
// shared one.
constexpr Size kSizes[] = {
    {"0.8B", 1'504'675'840, 1'007'711'488, 790'202'368},
    {"2B", 3'763'441'664, 2'392'071'680, 1'791'856'640},
    {"4B", 8'411'157'504, 4'846'434'304, 3'286'242'304},
    {"9B", 15'872'827'392, 8'961'458'176, 5'936'521'216},
    {"27B", 51'247'851'520, 26'923'857'920, 16'277'841'920},
    {"3.6-27B", 51'247'851'520, 26'923'857'920, 16'277'841'920},
    {"3.8-27B", 51'247'851'520, 26'923'857'920, 16'277'841'920},
    {"35B-A3B", 5'892'509'696, 3'481'079'296, 2'425'655'296},
    {"3.6-35B-A3B", 5'892'509'696, 3'481'079'296, 2'425'655'296},
    {"122B-A10B", 18'016'278'528, 9'825'802'752, 6'241'032'192},
    {"397B-A17B", 32'662'822'912, 17'502'264'832, 10'866'860'032},
    {"3.8-2.4T-A95B", 186'504'167'424, 95'834'384'384, 56'150'441'984},
};

TEST(EverySize, IsInTheTableOfSizes) {
    std::set<std::string_view> presets;
    for (std::string_view name : model::preset_names())
        presets.insert(name);
    std::set<std::string_view> sizes;
    for (const Size& size : kSizes)
        sizes.insert(size.preset);
    EXPECT_EQ(sizes, presets);
}

TEST(EverySize, ATokenReadsTheBytesOfThePublishedDimensions) {
    for (const Size& size : kSizes)
        for (const auto& [format, bytes] :
             {std::pair{"bf16", size.bf16}, std::pair{"fp8-block", size.fp8_block},
              std::pair{"nvfp4", size.nvfp4}})
            EXPECT_EQ(
                build(declare(size.preset, format), decode_shape(1)).total_cost().weight_bytes,
                bytes)
                << size.preset << " " << format;
}

// Spec 6: what one request and one token of context hold on one rank.
TEST(EverySize, StatesWeighWhatThePublishedDimensionsSay) {
    struct States {
        const char* preset;
        std::int64_t ssm, conv, token;
    };
    constexpr States kStates[] = {{"0.8B", 18'874'368, 663'552, 12'288},
                                  {"27B", 150'994'944, 2'949'120, 65'536},
                                  {"35B-A3B", 62'914'560, 1'474'560, 20'480},
                                  {"122B-A10B", 150'994'944, 2'654'208, 24'576},
                                  {"397B-A17B", 188'743'680, 3'317'760, 30'720}};
    for (const States& expected : kStates)
        for (std::int32_t tp : {1, 2}) {
            const Step step = build(declare(expected.preset, "bf16"), decode_shape(1), {.tp = tp});
            std::int64_t ssm = 0, conv = 0, counts = 0, cache = 0;
            for (const Tensor& tensor : step.tensors)
                if (tensor.role == Role::kState)
                    (tensor.state == StateKind::kSsm           ? ssm
                     : tensor.state == StateKind::kConv        ? conv
                     : tensor.state == StateKind::kTokenCounts ? counts
                                                               : cache) += tensor.bytes();
            EXPECT_EQ(ssm, expected.ssm / tp) << expected.preset;
            EXPECT_EQ(conv, expected.conv / tp) << expected.preset;
            EXPECT_EQ(counts, 2 * 248'320) << expected.preset; // on every rank
            EXPECT_EQ(cache, expected.token / tp * step.shape.kv_pages * ops::kKvPage)
                << expected.preset;
        }
}

// Spec 7: bytes of all routed experts of one layer, on one rank.
TEST(EverySize, AllExpertsOfALayerWeighWhatTheSpecSays) {
    const auto experts = [](const char* preset, const char* format, const model::Shard& shard) {
        const model::Model model = declare(preset, format);
        const Step step = build(model, prefill_shape(8192), shard);
        return node(step, "L0.32").cost.weight_bytes + node(step, "L0.33").cost.weight_bytes;
    };
    EXPECT_EQ(experts("397B-A17B", "bf16", {}), 12'884'901'888);
    EXPECT_EQ(experts("397B-A17B", "fp8-block", {}), 6'443'237'376);
    EXPECT_EQ(experts("397B-A17B", "fp8-block", {.tp = 2}), 3'221'618'688);
    EXPECT_EQ(experts("397B-A17B", "nvfp4", {}), 3'623'878'656);
    EXPECT_EQ(experts("397B-A17B", "nvfp4", {.ep = 2, .ep_rank = 1}), 3'623'878'656 / 2);
    EXPECT_EQ(experts("35B-A3B", "bf16", {}), 1'610'612'736);
    EXPECT_EQ(experts("35B-A3B", "fp8-block", {}), 805'404'672);
    EXPECT_EQ(experts("35B-A3B", "nvfp4", {}), 452'984'832);
}

// Ranks: what builds, and exactly what cannot be divided.
TEST(EverySize, BuildsOnOneTwoAndFourRanks) {
    std::set<std::string> refused;
    for (const Size& size : kSizes)
        for (std::string_view format : model::format_policy_names())
            for (std::int32_t tp : {1, 2, 4})
                for (std::int32_t ep : {1, 2}) {
                    const auto model = declare_layers(size.preset, format, 4);
                    if (ep == 2 && !model.config().moe())
                        continue;
                    for (const StepShape& shape : {decode_shape(1), prefill_shape(64)}) {
                        const model::Shard shard{
                            .tp = tp, .tp_rank = tp - 1, .ep = ep, .ep_rank = ep - 1};
                        const auto step = build_step(model, shard, shape);
                        if (!step)
                            refused.insert(fmt::format("{} {} tp={} ep={}: {}", size.preset, format,
                                                       tp, ep, step.error().message()));
                    }
                }
    const char* granule = "layers.0.mlp.shared_expert.gate_up_proj: tp=4: rows per rank is 64, and "
                          "fp8-block weights divide only at multiples of 128";
    EXPECT_EQ(refused,
              (std::set<std::string>{fmt::format("35B-A3B fp8-block tp=4 ep=2: {}", granule),
                                     fmt::format("3.6-35B-A3B fp8-block tp=4 ep=2: {}", granule)}));
}

// ok, or the first plan that is not proved: the reference and every rewrite alone, each with its
// memory, and with every launch that may be early.
Status verify_all_plans(const Step& step, int& plans) {
    const auto verify = [&](const Plan& plan) -> Status {
        for (const Plan& variant : {plan, with_pdl(plan)}) {
            const MemoryPlan memory = plan_memory(step, variant);
            LR_TRY(verify_plan(step, variant, &memory));
            ++plans;
        }
        return {};
    };
    const Plan reference = reference_plan(step);
    LR_TRY(verify(reference));
    for (const Rewrite& rewrite : all_rewrites())
        if (const auto plan = apply_rewrite(step, reference, rewrite.name))
            LR_TRY(verify(*plan));
    return {};
}

// Five layers hold each kind of layer and each pair of neighbours.
TEST(EverySize, EveryPlanOfEveryFormatIsProved) {
    int plans = 0;
    for (const Size& size : kSizes)
        for (std::string_view format : model::format_policy_names()) {
            const auto model = declare_layers(size.preset, format, 5);
            for (bool w4a4 : {false, true})
                for (std::int32_t tp : {1, 2})
                    for (const StepShape& shape : {decode_shape(54), prefill_shape(512)}) {
                        const Step step = build(model, shape, {.tp = tp}, {.w4a4 = w4a4});
                        const Status status = verify_all_plans(step, plans);
                        ASSERT_TRUE(status.ok()) << size.preset << " " << format << " tp " << tp
                                                 << ": " << status.message();
                    }
        }
    EXPECT_GT(plans, 5'000);
}

TEST(EverySize, EveryPlanOfTwoWholeModelsIsProved) {
    int plans = 0;
    for (const char* preset : {"27B", "397B-A17B"})
        for (const StepShape& shape : {decode_shape(54), prefill_shape(512)}) {
            const Step step = build(declare(preset, "nvfp4-mixed"), shape, {}, {.w4a4 = true});
            const Status status = verify_all_plans(step, plans);
            ASSERT_TRUE(status.ok()) << preset << ": " << status.message();
        }
    EXPECT_GT(plans, 30);
}

// Rewrites stack: the fusions that touch different nodes, one upon the other.
TEST(EverySize, StackedRewritesAreProved) {
    const Step step = build(declare_layers("397B-A17B", "nvfp4-mixed", 8), decode_shape(54),
                            {.tp = 2}, {.w4a4 = true});
    Plan plan = reference_plan(step);
    for (const char* name : {"23+24+next.1+next.3", "6+7+8+9", "16+18", "11+13+15", "17+19",
                             "expand-routed-gate-up", "expand-routed-down"}) {
        auto next = apply_rewrite(step, plan, name);
        ASSERT_TRUE(next) << next.error().message();
        plan = std::move(*next);
        const MemoryPlan memory = plan_memory(step, plan);
        const Status status = verify_plan(step, plan, &memory);
        ASSERT_TRUE(status.ok()) << status.message();
    }
}

} // namespace
} // namespace lr::graph
