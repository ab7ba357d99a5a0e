// SPDX-License-Identifier: Apache-2.0
#include "graph/memory_plan.h"
#include "graph/plan.h"
#include "tests/graph/steps.h"

namespace lr::graph {
namespace {

bool has_node(const Step& step, std::string_view id) {
    return std::any_of(step.nodes.begin(), step.nodes.end(),
                       [&](const Node& n) { return n.id == id; });
}

TEST(BuildStep, BuildsEveryPresetInEveryFormatAndBothPhases) {
    for (std::string_view preset : model::preset_names())
        for (std::string_view format : model::format_policy_names()) {
            const auto model = declare_layers(preset, format, 8);
            for (bool w4a4 : {false, true})
                for (const StepShape& shape : {decode_shape(54), prefill_shape(512)}) {
                    const auto step = build_step(model, {}, shape, {.w4a4 = w4a4});
                    ASSERT_TRUE(step) << preset << " " << format << ": " << step.error().message();
                }
        }
}

TEST(BuildStep, OmitsQuantisationsOfPlainWeightsAndKeepsTheNumbers) {
    const Step step = build(declare("35B-A3B", "bf16"), decode_shape(1));
    EXPECT_FALSE(has_node(step, "L0.3"));
    EXPECT_FALSE(has_node(step, "L0.9"));
    EXPECT_FALSE(has_node(step, "L0.15"));
    EXPECT_EQ(node(step, "L0.5").name, "in_proj_qkvz_bf16_gemm");
    EXPECT_EQ(node(step, "L0.21").name, "routed_gate_up_swiglu_bf16_gemm");
    EXPECT_EQ(node(step, "L3.3").name, "qkv_proj_bf16_gemm");
}

TEST(BuildStep, NamesWeightOnlyProductsOfNvfp4) {
    const Step step = build(declare("35B-A3B", "nvfp4-mixed"), decode_shape(1));
    EXPECT_EQ(node(step, "L0.21").name, "routed_gate_up_swiglu_w4a16_gemm");
    EXPECT_FALSE(has_node(step, "L0.15"));
}

TEST(BuildStep, QuantisesOneTensorToOneFormatOnce) {
    const Step step = build(declare("35B-A3B", "fp8-block"), decode_shape(4));
    EXPECT_FALSE(has_node(step, "L0.15"));
    EXPECT_EQ(node(step, "L0.13").also, std::vector<std::int32_t>{15});
    const Step mixed =
        build(declare("35B-A3B", "nvfp4-mixed"), decode_shape(4), {}, {.w4a4 = true});
    EXPECT_TRUE(has_node(mixed, "L0.15"));
}

// A scale from calibration reaches the quantiser, the product, and the codes between two products.
TEST(BuildStep, UsesStaticActivationScales) {
    model::Model model = declare("35B-A3B", "fp8-tensor");
    for (model::Entry& entry : model.entries()) {
        if (entry.kind == model::TensorKind::kRouted)
            entry.format = model::WeightFormat::kNvfp4;
        entry.input_scale = entry.name.ends_with("down_proj") ? 0.25f : 0.5f;
    }
    const Step step = build(model, decode_shape(4), {}, {.w4a4 = true});
    const auto& quant = std::get<ops::Fp8QuantArgs>(node(step, "L0.3").args);
    EXPECT_EQ(quant.static_scale, 0.5f);
    EXPECT_EQ(quant.scale.shape.rank(), 0);
    EXPECT_EQ(std::get<ops::LinearArgs>(node(step, "L0.5").args).x_global, 0.5f);
    EXPECT_EQ(std::get<ops::Fp8QuantArgs>(node(step, "L0.19").args).static_scale, 0.25f);
    EXPECT_EQ(std::get<ops::LinearArgs>(node(step, "L0.20").args).x_global, 0.25f);
    EXPECT_EQ(std::get<ops::Nvfp4QuantArgs>(node(step, "L0.15").args).encode_scale, 2.0f);
    const auto& up = std::get<ops::ExpertsGateUpArgs>(node(step, "L0.21").args);
    EXPECT_EQ(up.x_global, 0.5f);
    EXPECT_EQ(up.f_global, 4.0f) << "NVFP4 encodes by G";
    EXPECT_EQ(std::get<ops::ExpertsDownArgs>(node(step, "L0.22").args).f_global, 0.25f);
    // FP8 between the two products: the decode multiplier.
    for (model::Entry& entry : model.entries())
        if (entry.kind == model::TensorKind::kRouted)
            entry.format = model::WeightFormat::kFp8Tensor;
    const Step fp8 = build(model, decode_shape(4));
    EXPECT_EQ(std::get<ops::ExpertsGateUpArgs>(node(fp8, "L0.21").args).f_global, 0.25f);
    EXPECT_FALSE(has_node(fp8, "L0.15")) << "one scale for both experts' inputs";
    for (model::Entry& entry : model.entries())
        if (entry.kind == model::TensorKind::kShared)
            entry.input_scale = 1.0f;
    EXPECT_TRUE(has_node(build(model, decode_shape(4)), "L0.15")) << "another scale, other codes";
}

TEST(BuildStep, WeightOnlyFormatsAndA16LeaveActivationsPlain) {
    model::Model model = declare("35B-A3B", "nvfp4");
    for (model::Entry& entry : model.entries())
        entry.input_scale = 0;
    const Step w4a16 = build(model, decode_shape(4), {}, {.w4a4 = true});
    EXPECT_FALSE(has_node(w4a16, "L0.15"));
    EXPECT_EQ(node(w4a16, "L0.21").name, "routed_gate_up_swiglu_w4a16_gemm");
    const Step w8a16 = build(declare("35B-A3B", "fp8-block"), decode_shape(4), {}, {.a16 = true});
    EXPECT_FALSE(has_node(w8a16, "L0.3"));
    EXPECT_EQ(node(w8a16, "L0.5").name, "in_proj_qkvz_w8a16_gemm");
}

TEST(BuildStep, TurnsRoundingsAndQuantisationsOffForF32) {
    const Step step = build(declare("35B-A3B", "fp8-block"), prefill_shape(64), {},
                            {.precision = ops::Precision::kF32});
    EXPECT_FALSE(has_node(step, "L0.2"));
    EXPECT_EQ(node(step, "L0.3").name, "in_proj_qkvz_w8a16_gemm");
    for (const Tensor& tensor : step.tensors)
        if (tensor.role == Role::kActivation) {
            EXPECT_NE(tensor.dtype, DType::kBF16) << tensor.name;
        }
}

TEST(BuildStep, KeepsCommunicationNodesAsAliasesWithOneRank) {
    const Step step = build(declare("35B-A3B", "bf16"), prefill_shape(64));
    const Node& reduce = node(step, "L0.21");
    EXPECT_TRUE(reduce.alias);
    EXPECT_EQ(reduce.cost.bytes(), 0);
    const Step two = build(declare("35B-A3B", "bf16"), prefill_shape(64), {.tp = 2});
    EXPECT_FALSE(node(two, "L0.21").alias);
    EXPECT_GT(node(two, "L0.21").cost.bytes(), 0);
}

// The shape tables of spec 7.3 and 7.5: weight bytes and FLOPs of a token.
TEST(BuildStep, CostsEqualTheShapeTables) {
    const auto check = [](const Step& step, const char* id, std::int64_t weight_bytes,
                          std::int64_t flops) {
        const Node& n = node(step, id);
        EXPECT_EQ(n.cost.weight_bytes, weight_bytes) << n.label();
        EXPECT_EQ(n.cost.flops, flops) << n.label();
    };
    const Step tp2 =
        build(declare("397B-A17B", "nvfp4-mixed"), decode_shape(1), {.tp = 2}, {.w4a4 = true});
    check(tp2, "L4.5", 41'984'000, 83'886'080);
    check(tp2, "L4.10", 16'793'600, 33'554'432);
    check(tp2, "L4.12", 4'194'304, 4'194'304);
    check(tp2, "L4.14", 4'198'400, 8'388'608);
    check(tp2, "L4.20", 2'113'536, 4'194'304);
    check(tp2, "L4.21", 10 * 2'359'296, 83'886'080);
    check(tp2, "L4.22", 10 * 1'179'648, 41'943'040);
    check(tp2, "L3.3", 35'686'400, 71'303'168);
    const Step one = build(declare("35B-A3B", "fp8-block"), decode_shape(1));
    check(one, "L0.5", 25'168'896, 50'331'648);
    check(one, "L0.10", 8'389'632, 16'777'216);
    check(one, "L0.21", 8 * 2'097'408, 33'554'432);
    check(one, "L0.22", 8 * 1'048'704, 16'777'216);
    check(one, "epi.3", 1'017'118'720, 1'017'118'720);
}

// One decode step of 35B-A3B reads every matrix once, but of the embedding one row and of the
// experts 8 of 256.
TEST(BuildStep, TotalCostCountsEachWeightOnce) {
    const model::Model model = declare("35B-A3B", "fp8-block");
    const Step step = build(model, decode_shape(1));
    std::int64_t expected = 0;
    for (const model::Entry& entry : model.entries()) {
        if (entry.mtp || entry.shape.rank() == 1)
            continue; // vectors are counted as inputs
        if (entry.kind == model::TensorKind::kRouted)
            expected += entry.bytes() / 256 * 8;
        else if (entry.kind == model::TensorKind::kEmbedding)
            expected += 2 * 2048;
        else
            expected += entry.bytes();
    }
    EXPECT_EQ(step.total_cost().weight_bytes, expected);
}

TEST(BuildStep, NumbersADenseModelsFfnAfterTheSecondNorm) {
    const Step step = build(declare("0.8B", "fp8-channel"), decode_shape(2));
    EXPECT_EQ(node(step, "L0.12").name, "ffn_gate_up_input_fp8_quant");
    EXPECT_EQ(node(step, "L0.13").name, "ffn_gate_up_fp8_gemm");
    EXPECT_EQ(node(step, "L0.14").name, "ffn_silu_mul");
    EXPECT_EQ(node(step, "L0.15").name, "ffn_down_input_fp8_quant");
    EXPECT_EQ(node(step, "L0.16").name, "ffn_down_fp8_gemm");
    EXPECT_EQ(node(step, "L3.11").name, "ffn_gate_up_input_fp8_quant");
}

TEST(BuildStep, RefusesRanksThatCannotDivideTheModel) {
    const auto model = declare("35B-A3B", "fp8-block");
    const auto step = build_step(model, {.tp = 8}, decode_shape(1));
    ASSERT_FALSE(step);
    EXPECT_NE(step.error().message().find("multiples of 128"), std::string::npos)
        << step.error().message();
    const auto three = build_step(model, {.tp = 3}, decode_shape(1));
    ASSERT_FALSE(three);
    EXPECT_NE(three.error().message().find("tp=3"), std::string::npos);
}

TEST(BuildStep, RefusesADecodeStepWithMoreRowsThanSequences) {
    StepShape shape = decode_shape(4);
    shape.sequences = 2;
    const auto step = build_step(declare("0.8B", "bf16"), {}, shape);
    ASSERT_FALSE(step);
    EXPECT_NE(step.error().message().find("one row a sequence"), std::string::npos);
}

// Independent of plan_memory's own bookkeeping: walk the launches in order, remember who owns each
// byte range, and demand that every read finds its tensor where it was written.
void expect_no_clobbering(const Step& step, const Plan& plan, const MemoryPlan& memory) {
    struct Owner {
        std::int64_t begin, end;
        TensorId tensor;
    };
    std::vector<Owner> owners;
    const auto claim = [&](TensorId id) {
        const std::int64_t begin = memory.offset[static_cast<std::size_t>(id)];
        const std::int64_t end = begin + step.tensors[static_cast<std::size_t>(id)].bytes();
        std::erase_if(owners, [&](const Owner& o) {
            return o.tensor == id || (o.begin < end && begin < o.end);
        });
        owners.push_back({begin, end, id});
    };
    const auto owned = [&](TensorId id) {
        return std::any_of(owners.begin(), owners.end(),
                           [&](const Owner& o) { return o.tensor == id; });
    };
    for (const Launch& launch : plan.launches)
        for (std::int32_t n : launch.nodes) {
            const Node& node = step.nodes[static_cast<std::size_t>(n)];
            for (const Use& use : node.uses)
                if (memory.offset[static_cast<std::size_t>(use.tensor)] >= 0 &&
                    use.access != Access::kWrite) {
                    EXPECT_TRUE(owned(use.tensor))
                        << node.label() << " reads " << use.slot << " after it was overwritten";
                }
            for (const Use& use : node.uses)
                if (memory.offset[static_cast<std::size_t>(use.tensor)] >= 0 &&
                    use.access != Access::kRead)
                    claim(use.tensor);
        }
}

TEST(MemoryPlan, SharesMemoryAndNeverOverwritesWhatIsStillRead) {
    for (const StepShape& shape : {decode_shape(16, 1024), prefill_shape(256)}) {
        const Step step = build(declare("35B-A3B", "fp8-block"), shape);
        const Plan plan = reference_plan(step);
        const MemoryPlan memory = plan_memory(step, plan);
        std::int64_t outputs = 0; // never shared
        for (const Tensor& tensor : step.tensors)
            outputs += tensor.role == Role::kOutput ? tensor.bytes() : 0;
        EXPECT_LT(memory.arena_bytes - outputs, (memory.unshared_bytes - outputs) / 16);
        expect_no_clobbering(step, plan, memory);
    }
}

TEST(MemoryPlan, TreatsLanesAsUnordered) {
    const Step step = build(declare("35B-A3B", "fp8-block"), decode_shape(16, 1024));
    const Plan plan = reference_plan(step);
    const MemoryPlan memory = plan_memory(step, plan);
    const auto overlap = [&](const char* a, const char* b) {
        const auto x = static_cast<std::size_t>(tensor_id(step, a));
        const auto y = static_cast<std::size_t>(tensor_id(step, b));
        return memory.offset[x] < memory.offset[y] + step.tensors[y].bytes() &&
               memory.offset[y] < memory.offset[x] + step.tensors[x].bytes();
    };
    // The shared branch may run at any time beside the routed one: none of its tensors may share
    // with those of the routed branch, whatever the list order says.
    for (const char* shared : {"L0.shared_gate_up", "L0.F_s"})
        for (const char* routed : {"L0.L", "L0.F", "L0.Z", "L0.Y_r"})
            EXPECT_FALSE(overlap(shared, routed)) << shared << " and " << routed;
}

// (ranks, group) of a node that adds up or gathers.
std::pair<std::int32_t, RankGroup> ranks_of(const Step& step, std::string_view id) {
    const ops::AnyArgs& args = node(step, id).args;
    if (const auto* norm = std::get_if<ops::AddRmsnormArgs>(&args))
        return {norm->ranks, norm->group};
    if (const auto* sum = std::get_if<ops::AllReduceArgs>(&args))
        return {sum->ranks, sum->group};
    const auto& gather = std::get<ops::AllGatherArgs>(args);
    return {gather.ranks, gather.group};
}

TEST(BuildStep, SaysWhichRanksASumRunsOver) {
    const model::Model moe = declare("35B-A3B", "bf16");
    const model::Shard shard{.tp = 2, .ep = 4};
    const std::pair tensor{2, RankGroup::kTensor}, world{8, RankGroup::kWorld};
    const Step decode = build(moe, decode_shape(4), shard);
    EXPECT_EQ(ranks_of(decode, "pro.2"), tensor); // embedding
    EXPECT_EQ(ranks_of(decode, "L0.1").first, 1); // nothing to add before the first layer
    EXPECT_EQ(ranks_of(decode, "L0.11"), tensor); // heads are divided by tp
    EXPECT_EQ(ranks_of(decode, "L1.1"), world);   // experts and the shared one by all
    EXPECT_EQ(ranks_of(decode, "L3.10"), tensor);
    EXPECT_EQ(ranks_of(decode, "epi.1"), world);
    EXPECT_EQ(ranks_of(decode, "epi.4"), tensor);
    const Step prefill = build(moe, prefill_shape(64), shard);
    EXPECT_EQ(ranks_of(prefill, "L0.21"), tensor);
    EXPECT_EQ(ranks_of(prefill, "L0.22").first, 1);
    EXPECT_EQ(ranks_of(prefill, "L0.36"), world);
    EXPECT_EQ(ranks_of(prefill, "L1.1").first, 1);
    EXPECT_EQ(ranks_of(prefill, "L3.26"), world);
    EXPECT_EQ(ranks_of(prefill, "epi.1").first, 1);
    const Step dense = build(declare("27B", "bf16"), decode_shape(4), {.tp = 2});
    EXPECT_EQ(ranks_of(dense, "L1.1"), tensor);
}

TEST(Plan, CoversEveryLaunchingNodeOnce) {
    const Step step = build(declare("35B-A3B", "fp8-block"), prefill_shape(64));
    const Plan plan = reference_plan(step);
    std::vector<int> seen(step.nodes.size(), 0);
    for (const Launch& launch : plan.launches)
        for (std::int32_t n : launch.nodes)
            ++seen[static_cast<std::size_t>(n)];
    for (std::size_t n = 0; n < seen.size(); ++n)
        EXPECT_EQ(seen[n], step.nodes[n].alias ? 0 : 1) << step.nodes[n].label();
}

TEST(Plan, FusesAPatternInEveryLayer) {
    const Step step = build(declare("35B-A3B", "nvfp4-mixed"), decode_shape(4), {}, {.w4a4 = true});
    const Plan reference = reference_plan(step);
    const auto fused = apply_rewrite(step, reference, "8+9");
    ASSERT_TRUE(fused) << fused.error().message();
    EXPECT_EQ(fused->launches.size(), reference.launches.size() - 30); // GDN layers
    const auto both = apply_rewrite(step, *fused, "13+15");
    ASSERT_TRUE(both) << both.error().message();
    EXPECT_EQ(both->launches.size(), fused->launches.size() - 40);
    const auto found = std::find_if(both->launches.begin(), both->launches.end(),
                                    [](const Launch& l) { return l.name == "L0.8+9"; });
    ASSERT_NE(found, both->launches.end());
    EXPECT_EQ(found->nodes.size(), 2u);
}

TEST(Plan, AppliesEveryRewriteToTheTracedStep) {
    const Step step =
        build(declare("397B-A17B", "nvfp4-mixed"), decode_shape(54), {.tp = 2}, {.w4a4 = true});
    const Plan reference = reference_plan(step);
    for (const Rewrite& rewrite : all_rewrites()) {
        const auto plan = apply_rewrite(step, reference, rewrite.name);
        ASSERT_TRUE(plan) << rewrite.name << ": " << plan.error().message();
        plan_order(*plan); // aborts where the list is no topological order
        EXPECT_FALSE(rewrite.vanishes.empty() || rewrite.keeps.empty()) << rewrite.name;
    }
}

TEST(Plan, FusesAcrossTheLayerBoundary) {
    const Step step =
        build(declare("397B-A17B", "nvfp4-mixed"), decode_shape(54), {.tp = 2}, {.w4a4 = true});
    const auto plan = apply_rewrite(step, reference_plan(step), "23+24+next.1+next.3");
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_TRUE(std::any_of(plan->launches.begin(), plan->launches.end(),
                            [](const Launch& l) { return l.name == "L0.23+24+next.1+next.3"; }));
}

// A dense layer has other nodes under the numbers of the expert half.
TEST(Plan, TakesNoDenseNodeForAnExpertOne) {
    const Step step = build(declare("27B", "fp8-channel"), decode_shape(4));
    for (const Rewrite& rewrite : all_rewrites())
        for (const auto& nodes : find_matches(step, rewrite))
            for (std::int32_t id : nodes) {
                const Node& node = step.nodes[static_cast<std::size_t>(id)];
                EXPECT_EQ(node.name.find("ffn"), std::string::npos) << rewrite.name << node.name;
            }
    EXPECT_EQ(apply_rewrite(step, reference_plan(step), "15+16").error().message(),
              "rewrite 15+16: its nodes stand nowhere in this decode step");
    EXPECT_TRUE(apply_rewrite(step, reference_plan(step), "8+9"));
}

TEST(Plan, RefusesOverlappingRewritesAndUnknownNames) {
    const Step step = build(declare("35B-A3B", "nvfp4-mixed"), decode_shape(4), {}, {.w4a4 = true});
    const auto fused = apply_rewrite(step, reference_plan(step), "8+9");
    ASSERT_TRUE(fused);
    const auto again = apply_rewrite(step, *fused, "6+7+8+9");
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message(),
              "rewrite 6+7+8+9: L0.8+9 is already part of another rewrite");
    const auto unknown = apply_rewrite(step, *fused, "7+9");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code(), Code::kInvalidArgument);
}

TEST(Plan, ExpandsANodeIntoStagesInOrder) {
    const Step step = build(declare("35B-A3B", "fp8-block"), decode_shape(4));
    const auto plan = apply_rewrite(step, reference_plan(step), "expand-routed-gate-up");
    ASSERT_TRUE(plan) << plan.error().message();
    const HappensBefore order = plan_order(*plan);
    std::vector<std::int32_t> stages;
    for (std::size_t i = 0; i < plan->launches.size(); ++i)
        if (plan->launches[i].name.starts_with("L0.21 "))
            stages.push_back(static_cast<std::int32_t>(i));
    ASSERT_EQ(stages.size(), 4u);
    for (std::size_t i = 1; i < stages.size(); ++i)
        EXPECT_TRUE(order.before(stages[i - 1], stages[i]));
}

} // namespace
} // namespace lr::graph
