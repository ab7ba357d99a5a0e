// SPDX-License-Identifier: Apache-2.0
//
// Faults planted into good plans: each must be found, and named for what it is.
#include "graph/verify_plan.h"
#include "tests/graph/steps.h"

namespace lr::graph {
namespace {

const Step& decode_step() {
    static const Step step =
        build(declare_layers("35B-A3B", "nvfp4-mixed", 4), decode_shape(4), {}, {.w4a4 = true});
    return step;
}

// A plan that is right, and the ways to spoil it.
struct Plant {
    explicit Plant(std::string_view rewrite = {}, Step of = decode_step())
        : step(std::move(of)), plan(reference_plan(step)) {
        if (!rewrite.empty())
            plan = *apply_rewrite(step, plan, rewrite);
        memory = plan_memory(step, plan);
    }

    std::string fault() const {
        const Status status = verify_plan(step, plan);
        EXPECT_NE(status.code(), Code::kOk);
        return status.message();
    }
    std::string memory_fault() const { return verify_plan(step, plan, &memory).message(); }

    std::ptrdiff_t at(std::string_view name) const {
        const auto found = std::find_if(plan.launches.begin(), plan.launches.end(),
                                        [&](const Launch& l) { return l.name == name; });
        EXPECT_NE(found, plan.launches.end()) << name;
        return found - plan.launches.begin();
    }
    Launch& launch(std::string_view name) { return *(plan.launches.begin() + at(name)); }
    std::int32_t node(std::string_view id) const {
        return static_cast<std::int32_t>(&graph::node(step, id) - step.nodes.data());
    }
    Node& node_at(std::string_view id) { return step.nodes[static_cast<std::size_t>(node(id))]; }
    TensorId tensor(std::string_view name) const { return tensor_id(step, name); }
    std::int64_t& offset(std::string_view name) {
        return memory.offset[static_cast<std::size_t>(tensor(name))];
    }

    void erase(std::string_view name) { plan.launches.erase(plan.launches.begin() + at(name)); }
    void move_behind(std::string_view name, std::string_view other) {
        const Launch moved = launch(name);
        erase(name);
        plan.launches.insert(plan.launches.begin() + at(other) + 1, moved);
    }

    Step step;
    Plan plan;
    MemoryPlan memory;
};

TEST(VerifyPlan, FindsAMissingNode) {
    Plant plant;
    plant.erase("L0.8");
    EXPECT_EQ(plant.fault(), "reference plan: L0.8 output_rmsnorm_silu_gate: expected one launch, "
                             "got none");
}

TEST(VerifyPlan, FindsADoubledNode) {
    Plant plant("8+9");
    plant.plan.launches.push_back({.name = "L0.8", .nodes = {plant.node("L0.8")}});
    EXPECT_EQ(plant.fault(), "plan 8+9: L0.8 output_rmsnorm_silu_gate: expected one launch, got 2: "
                             "L0.8+9, L0.8");
}

TEST(VerifyPlan, FindsALaunchedAlias) {
    const Step prefill = build(declare_layers("35B-A3B", "bf16", 4), prefill_shape(64));
    Plant plant({}, prefill);
    plant.plan.launches.push_back({.name = "L0.21", .nodes = {plant.node("L0.21")}});
    EXPECT_EQ(plant.fault(), "reference plan: L0.21 attention_tp_allreduce: an alias: expected no "
                             "launch, got L0.21");
}

TEST(VerifyPlan, FindsNodesThatAreNotOfTheStep) {
    Plant plant;
    plant.launch("L0.8").nodes = {100'000};
    const auto last = plant.step.nodes.size() - 1;
    EXPECT_EQ(plant.fault(),
              fmt::format("reference plan: L0.8: expected nodes 0..{}, got 100000", last));
    plant.launch("L0.8").nodes = {};
    EXPECT_EQ(plant.fault(), "reference plan: L0.8: expected at least one node, got none");
    plant.launch("L0.8").nodes = {plant.node("L0.8")};
    plant.launch("L0.8").lane = static_cast<Lane>(2);
    EXPECT_EQ(plant.fault(), "reference plan: L0.8: expected one of 2 lanes, got lane 2");
}

TEST(VerifyPlan, FindsAFusionThatTurnsItsNodesAround) {
    Plant plant("8+9");
    std::swap(plant.launch("L0.8+9").nodes[0], plant.launch("L0.8+9").nodes[1]);
    EXPECT_EQ(plant.fault(), "plan 8+9: L0.8+9: expected its nodes in the order of the step, got "
                             "L0.8 after L0.9");
}

TEST(VerifyPlan, FindsSwappedLaunchesOfOneLane) {
    Plant plant;
    std::swap(plant.launch("L0.8"), plant.launch("L0.9"));
    EXPECT_EQ(plant.fault(), "reference plan: L0.9 reads L0.y, which L0.8 writes: expected L0.8 "
                             "ordered before L0.9, got the opposite order");
}

TEST(VerifyPlan, FindsAMissingWait) {
    Plant plant;
    plant.launch("L0.24").waits.clear();
    EXPECT_EQ(plant.fault(), "reference plan: L0.24 reads L0.Y_s, which L0.20 writes: expected "
                             "L0.20 ordered before L0.24, got no order");
    Plant fork;
    fork.launch("L1.13").waits.clear();
    EXPECT_EQ(fork.fault(), "reference plan: L1.13 reads L1.M, which L1.11 writes: expected L1.11 "
                            "ordered before L1.13, got no order");
}

TEST(VerifyPlan, FindsAnEventThatNobodyRecords) {
    Plant plant;
    plant.launch("L0.20").event = -1;
    EXPECT_EQ(plant.fault(), "reference plan: L0.24 waits for event 1: expected a launch to record "
                             "it, got none");
    plant.launch("L0.20").event = 99;
    EXPECT_EQ(plant.fault(), "reference plan: L0.20 records event 99: expected 0..7");
    plant.launch("L0.20").event = 0;
    EXPECT_EQ(plant.fault(), "reference plan: event 0: expected one launch to record it, got L0.11 "
                             "and L0.20");
}

TEST(VerifyPlan, FindsAnEventOfTheWrongLane) {
    Plant plant;
    plant.launch("L0.20").event = -1;
    plant.launch("L0.23").event = 1;
    EXPECT_EQ(plant.fault(), "reference plan: L0.24 waits for event 1: expected it of another lane "
                             "than its own, got L0.23 of lane main");
}

TEST(VerifyPlan, FindsAnEventRecordedTooEarlyInItsLane) {
    Plant plant;
    plant.launch("L0.20").event = -1;
    plant.launch("L0.19").event = 1;
    EXPECT_EQ(plant.fault(), "reference plan: L0.24 reads L0.Y_s, which L0.20 writes: expected "
                             "L0.20 ordered before L0.24, got no order");
}

TEST(VerifyPlan, FindsAnEventRecordedAfterTheWait) {
    Plant plant;
    plant.move_behind("L0.20", "L0.24");
    EXPECT_EQ(plant.fault(),
              "reference plan: L0.24 waits for event 1: expected it recorded earlier "
              "in the list, got L0.20, enqueued after the wait");
}

TEST(VerifyPlan, FindsLaunchesThatWaitForOneAnother) {
    Plant plant;
    plant.launch("L0.11").waits = {plant.launch("L0.14").event = plant.plan.events++};
    EXPECT_EQ(plant.fault(), "reference plan: L0.11 waits for L0.14 waits for L0.13 waits for "
                             "L0.11: expected no cycle, got a deadlock");
}

TEST(VerifyPlan, FindsALaneThatDoesNotForkOrJoin) {
    Plant plant;
    plant.launch("L0.13").waits.clear();
    EXPECT_EQ(plant.fault(), "reference plan: L0.13 begins lane shared: expected it to wait for an "
                             "event of another lane, got none");
    Plant unjoined;
    std::erase_if(unjoined.node_at("L3.23").uses,
                  [&](const Use& use) { return use.tensor == unjoined.tensor("L3.Y_s"); });
    unjoined.launch("L3.23").waits.clear();
    EXPECT_EQ(unjoined.fault(), "reference plan: L3.12 of lane shared: expected it ordered before "
                                "epi.6, which ends the step, got no order");
}

TEST(VerifyPlan, FindsAPdlLaunchThatDoesNotWait) {
    Plant plant;
    plant.plan = with_pdl(plant.plan);
    ASSERT_TRUE(verify_plan(plant.step, plant.plan).ok());
    ASSERT_EQ(plant.launch("L0.9").pdl, Pdl::kWaits);
    plant.launch("L0.9").pdl = Pdl::kNever;
    EXPECT_EQ(plant.fault(), "reference plan: L0.9 reads L0.y, which L0.8 writes: expected L0.8 "
                             "ordered before L0.9, got no order");
}

// Node 12 fills a buffer with zeros and needs nobody; but node 13 knows only of node 12's end.
TEST(VerifyPlan, KnowsThatALaunchWithoutAWaitHandsOnNoOrder) {
    Plant plant({}, build(declare_layers("0.8B", "fp8-channel", 4), prefill_shape(64)));
    plant.launch("L0.12").pdl = Pdl::kNever;
    EXPECT_EQ(plant.fault(), "reference plan: L0.13 reads L0.kn, which L0.10 writes: expected "
                             "L0.10 ordered before L0.13, got no order");
}

TEST(VerifyPlan, FindsPdlLaunchesThatFollowNoLaunchDirectly) {
    Plant plant;
    plant.launch("L0.24").pdl = Pdl::kWaits;
    EXPECT_EQ(plant.fault(), "reference plan: L0.24 is a PDL launch: expected it directly after "
                             "another of lane main, got an event to wait for between the two");
    Plant first;
    first.launch("pro.1").pdl = Pdl::kWaits;
    EXPECT_EQ(first.fault(), "reference plan: pro.1 is a PDL launch: expected it directly after "
                             "another of lane main, got none before it");
}

TEST(VerifyPlan, FindsBlocksThatWaitForOneAnotherInAPlainLaunch) {
    Plant plant("6+7");
    plant.launch("L0.6+7").cooperative = false;
    EXPECT_EQ(plant.fault(), "plan 6+7: L0.6+7: its blocks wait for one another: expected a "
                             "cooperative launch, got a plain one");
}

TEST(VerifyPlan, FindsATensorSwallowedWhileOthersReadIt) {
    Plant plant("1+3");
    plant.launch("L0.1+3").swallowed = {plant.tensor("L0.H")};
    EXPECT_EQ(plant.fault(),
              "plan 1+3: L0.2 reads L0.H, which L0.1+3 swallows: expected it stored, "
              "got it in no memory");
}

TEST(VerifyPlan, FindsSwallowedOutputsAndStates) {
    Plant plant;
    plant.launch("epi.5").swallowed = {plant.tensor("tokens")};
    EXPECT_EQ(plant.fault(), "reference plan: epi.5 swallows tokens: expected it stored for the "
                             "host, got it in no memory");
    plant.launch("epi.5").swallowed.clear();
    plant.launch("L0.7").swallowed = {plant.tensor("L0.ssm_state")};
    EXPECT_EQ(plant.fault(), "reference plan: L0.7 swallows L0.ssm_state: expected it stored for "
                             "later steps, got it in no memory");
    plant.launch("L0.7").swallowed = {-1};
    EXPECT_EQ(plant.fault(), fmt::format("reference plan: L0.7 swallows tensor -1: expected 0..{}",
                                         plant.step.tensors.size() - 1));
}

TEST(VerifyPlan, FindsReadsOfWhatNobodyWrites) {
    Plant plant({}, build(declare_layers("35B-A3B", "bf16", 4), decode_shape(4), {.tp = 2}));
    plant.node_at("epi.4").alias = true; // but its input and output are two tensors
    plant.erase("epi.4");
    EXPECT_EQ(plant.fault(), "reference plan: epi.5 reads logits: expected a launch to write it "
                             "first, got none");
    Plant silent;
    silent.node_at("epi.6").alias = true;
    silent.erase("epi.6");
    EXPECT_EQ(silent.fault(), "reference plan: the host reads scored_id: expected a launch to "
                              "write it, got none");
}

TEST(VerifyPlan, FindsAStateOverwrittenWhileItIsRead) {
    Plant plant;
    const TensorId state = plant.tensor("L0.ssm_state");
    plant.node_at("L0.12").uses.push_back({"late", state, Access::kRead});
    plant.node_at("L0.14").uses.push_back({"early", state, Access::kUpdate});
    const char* fault =
        "reference plan: L0.14 overwrites L0.ssm_state, which L0.12 reads: expected "
        "L0.12 ordered before L0.14, got no order";
    EXPECT_EQ(plant.fault(), fault);
    // The same memory under another number.
    plant.step.tensors.push_back(plant.step.tensors[static_cast<std::size_t>(state)]);
    plant.node_at("L0.14").uses.back().tensor =
        static_cast<TensorId>(plant.step.tensors.size()) - 1;
    EXPECT_EQ(plant.fault(), fault);
}

TEST(VerifyPlan, FindsTwoUnorderedWriters) {
    Plant plant;
    plant.node_at("L0.15").uses.push_back({"mine", plant.tensor("L0.Y_s"), Access::kWrite});
    EXPECT_EQ(plant.fault(),
              "reference plan: L0.20 overwrites L0.Y_s, which L0.15 writes: expected "
              "L0.15 ordered before L0.20, got no order");
}

TEST(VerifyPlan, FindsAFusionAcrossLayersThatLeavesANodeOut) {
    Plant plant;
    plant.launch("L0.24").nodes.push_back(plant.node("L1.3"));
    plant.erase("L1.3");
    EXPECT_EQ(plant.fault(), "reference plan: L0.24 reads L1.H, which L1.1 writes: expected L1.1 "
                             "ordered before L0.24, got the opposite order");
}

TEST(VerifyPlan, FindsMissingTurnedAndForeignStages) {
    const std::string expected = "plan expand-routed-gate-up: L0.21 "
                                 "routed_gate_up_swiglu_fp4_gemm: expected stages 0..3 (gather, "
                                 "gemm, silu_mul, quantise), each once and in order, got ";
    Plant missing("expand-routed-gate-up");
    missing.erase("L0.21 silu_mul");
    EXPECT_EQ(missing.fault(), expected + "0, 1, 3");
    Plant turned("expand-routed-gate-up");
    std::swap(turned.launch("L0.21 gemm"), turned.launch("L0.21 silu_mul"));
    EXPECT_EQ(turned.fault(), expected + "0, 2, 1, 3");
    Plant doubled("expand-routed-gate-up");
    doubled.launch("L0.21 silu_mul").stage = 1;
    EXPECT_EQ(doubled.fault(), expected + "0, 1, 1, 3");
    Plant foreign;
    foreign.launch("L0.21").stage = 0;
    EXPECT_EQ(foreign.fault(),
              "reference plan: L0.21 routed_gate_up_swiglu_fp4_gemm: no rewrite of "
              "the plan expands it: expected one launch, got L0.21");
}

TEST(VerifyPlan, FindsAShiftedNodeThatIsNotWhole) {
    const std::string expected = "plan 8+9-amax: L0.9 out_proj_input_fp8_quant: expected stages "
                                 "0..1 (head_amax, scale_and_codes), each once and in order, got ";
    Plant missing("8+9-amax");
    missing.erase("L0.9 scale_and_codes");
    EXPECT_EQ(missing.fault(), expected + "0");
    Plant turned("8+9-amax");
    std::swap(turned.launch("L0.8+9 head_amax"), turned.launch("L0.9 scale_and_codes"));
    EXPECT_EQ(turned.fault(), expected + "1, 0");
    Plant alone("8+9-amax"); // the first node is left out
    alone.launch("L0.8+9 head_amax").nodes = {alone.node("L0.9")};
    EXPECT_EQ(alone.fault(), "plan 8+9-amax: L0.8 output_rmsnorm_silu_gate: expected one launch, "
                             "got none");
    alone.plan.launches.push_back({.name = "L0.8", .nodes = {alone.node("L0.8")}});
    EXPECT_EQ(alone.fault(), expected + "0, 1");
    Plant swallowed("8+9-amax");
    swallowed.launch("L0.8+9 head_amax").swallowed = {swallowed.tensor("L0.y")};
    EXPECT_EQ(swallowed.fault(), "plan 8+9-amax: L0.9 scale_and_codes reads L0.y, which L0.8+9 "
                                 "head_amax swallows: expected it stored, got it in no memory");
}

TEST(VerifyPlan, FindsAMovedLaunchThatNobodyWaitsFor) {
    Plant plant("15-shared-lane");
    EXPECT_EQ(plant.launch("L0.15").lane, Lane::kShared);
    EXPECT_LT(plant.at("L0.15"), plant.at("L0.12"));
    EXPECT_LT(plant.at("L0.15"), plant.at("L0.13"));
    EXPECT_EQ(plant.launch("L0.21").waits.size(), 1u);
    plant.launch("L0.21").waits.clear();
    EXPECT_EQ(plant.fault(), "plan 15-shared-lane: L0.21 reads L0.routed_input_codes, which L0.15 "
                             "writes: expected L0.15 ordered before L0.21, got no order");
}

TEST(VerifyPlan, FindsUnorderedStages) {
    Plant plant("expand-routed-gate-up");
    plant.launch("L0.21 gemm").lane = Lane::kShared;
    EXPECT_EQ(plant.fault(), "plan expand-routed-gate-up: L0.21 gemm: expected it ordered after "
                             "L0.21 gather, got no order");
}

TEST(VerifyPlan, FindsTensorsThatShareBytesWhileBothLive) {
    Plant plant;
    plant.offset("L0.F") = plant.offset("L0.Z") = plant.memory.arena_bytes;
    plant.memory.arena_bytes *= 3;
    const std::int64_t at = plant.offset("L0.F");
    EXPECT_EQ(plant.memory_fault(),
              fmt::format("reference plan: L0.F [{0}, {1}) and L0.Z [{0}, {2}): expected the "
                          "launches of the one ordered before those of the other, got both "
                          "touched by L0.22",
                          at, at + 32 * 256, at + 32 * 2048 * 2));
}

TEST(VerifyPlan, FindsTensorsOfTwoLanesThatShareBytes) {
    Plant plant;
    plant.offset("L0.F_s") = plant.memory.arena_bytes;
    plant.offset("L0.L") = plant.memory.arena_bytes + 2048;
    plant.memory.arena_bytes *= 2;
    const std::int64_t at = plant.offset("L0.F_s");
    EXPECT_EQ(plant.memory_fault(),
              fmt::format("reference plan: L0.L [{}, {}) and L0.F_s [{}, {}): expected the "
                          "launches of the one ordered before those of the other, got L0.12 and "
                          "L0.17 with no order",
                          at + 2048, at + 2048 + 4 * 256 * 2, at, at + 4 * 512 * 2));
}

TEST(VerifyPlan, FindsAPlaceOutsideTheArena) {
    Plant plant;
    const std::int64_t arena = plant.memory.arena_bytes;
    plant.offset("L0.H") = arena - 256;
    EXPECT_EQ(plant.memory_fault(),
              fmt::format("reference plan: L0.H: expected it within the arena's {} bytes, got "
                          "[{}, {})",
                          arena, arena - 256, arena - 256 + 4 * 2048 * 2));
}

TEST(VerifyPlan, FindsAMisalignedPlace) {
    Plant plant;
    plant.offset("L0.H") = 128;
    EXPECT_EQ(plant.memory_fault(),
              "reference plan: L0.H: expected an offset that is a multiple of "
              "256, got 128");
}

TEST(VerifyPlan, FindsASharedOutput) {
    Plant plant;
    const std::int64_t at = plant.offset("tokens");
    plant.offset("L0.a") = at;
    EXPECT_EQ(plant.memory_fault(),
              fmt::format("reference plan: L0.a [{0}, {1}) and tokens [{0}, {2}): expected bytes "
                          "of its own for the output tokens, got shared ones",
                          at, at + 4 * 32 * 2, at + 4 * 4));
}

TEST(VerifyPlan, FindsTensorsInNoPlaceOrInOneThatIsNotTheirs) {
    Plant plant;
    plant.offset("L0.H") = -1;
    EXPECT_EQ(plant.memory_fault(),
              "reference plan: L0.H: expected a place in the arena, got none");
    Plant weight;
    weight.offset("layers.0.input_layernorm") = 512;
    EXPECT_EQ(weight.memory_fault(), "reference plan: layers.0.input_layernorm: the engine's, not "
                                     "the step's: expected no place in the arena, got offset 512");
    Plant few;
    few.memory.offset.pop_back();
    EXPECT_EQ(few.memory_fault(),
              fmt::format("reference plan: memory plan: expected {} tensors, got {}",
                          few.step.tensors.size(), few.step.tensors.size() - 1));
}

// reference_plan sets no event in vain: whichever wait is left out, something is no longer ordered.
TEST(VerifyPlan, MissesEveryWaitThatIsTakenAway) {
    Plant plant;
    int waits = 0;
    for (Launch& launch : plant.plan.launches)
        if (!launch.waits.empty()) {
            ++waits;
            const auto kept = std::exchange(launch.waits, {});
            EXPECT_NE(plant.fault(), "") << launch.name;
            launch.waits = kept;
        }
    EXPECT_EQ(waits, 2 * 4); // a fork and a join in each layer
    EXPECT_EQ(plant.plan.events, waits);
    EXPECT_EQ(plant.memory_fault(), "");
}

// What a fusion swallows has no memory, and a plan with all launches early is still ordered.
TEST(VerifyPlan, AcceptsSwallowedTensorsWithoutMemory) {
    Plant plant("6+7+8+9");
    EXPECT_EQ(plant.offset("L0.o"), -1);
    EXPECT_GE(plant.offset("L0.A"), 0);
    EXPECT_EQ(plant.memory_fault(), "");
    plant.plan = with_pdl(plant.plan);
    EXPECT_EQ(plant.memory_fault(), "");
}

} // namespace
} // namespace lr::graph
