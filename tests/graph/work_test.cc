// SPDX-License-Identifier: Apache-2.0
#include "graph/machine.h"
#include "tests/graph/steps.h"

namespace lr::graph {
namespace {

// The traced shard: 397B, two ranks, 54 rows of context 8192.
const Step& traced() {
    static const Step step = build(declare_layers("397B-A17B", "nvfp4-mixed", 8), decode_shape(54),
                                   {.tp = 2}, {.w4a4 = true});
    return step;
}

Work launch(std::string_view rewrite, std::string_view name) {
    const auto plan = apply_rewrite(traced(), reference_plan(traced()), rewrite);
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
    for (std::size_t i = 0; i < plan->launches.size(); ++i)
        if (plan->launches[i].name == name)
            return launch_work(traced(), *plan, i);
    ADD_FAILURE() << "no launch " << name;
    return {};
}

Work nodes(std::initializer_list<const char*> ids) {
    Work work;
    for (const char* id : ids)
        work += node_work(traced(), node(traced(), id));
    return work;
}

constexpr std::int64_t kRow = 54 * 4096 * 2; // a bf16 [n, D], or [n, Hv*dv] on this shard

TEST(Work, CountsVectorsAmongTheWeights) {
    EXPECT_EQ(nodes({"L4.1"}).weight_bytes, 8'192);
    EXPECT_EQ(nodes({"L4.7"}).weight_bytes, 192);
    EXPECT_EQ(nodes({"L4.8"}).weight_bytes, 512);
    EXPECT_EQ(nodes({"L4.24"}).weight_bytes, 8'192) << "a matrix of one row, counted once";
    EXPECT_EQ(nodes({"L3.4"}).weight_bytes, 1'024);
    EXPECT_EQ(nodes({"L4.5"}).weight_bytes, 41'984'000);
}

TEST(Work, SaysWhoCommunicatesAndHowMuchComesIn) {
    EXPECT_TRUE(communicates(node(traced(), "L4.1")));
    EXPECT_TRUE(communicates(node(traced(), "L4.11")));
    EXPECT_FALSE(communicates(node(traced(), "L4.10")));
    EXPECT_FALSE(communicates(node(traced(), "L0.1"))) << "nothing to add before the first layer";
    EXPECT_EQ(nodes({"L4.1"}).link_bytes, kRow) << "2 * (2-1)/2 of the rows";
    const Step four = build(declare_layers("397B-A17B", "bf16", 4), decode_shape(54), {.tp = 4});
    EXPECT_EQ(node_work(four, node(four, "L1.1")).link_bytes, kRow * 3 / 2);
    // The gather of the logits: the columns of the other rank.
    EXPECT_EQ(nodes({"epi.4"}).link_bytes, 54 * 248'320 * 4 / 2);
}

TEST(Work, KnowsWhichUnitMultiplies) {
    const auto flops = [](const Work& work, Unit unit) {
        return work.flops[static_cast<std::size_t>(unit)];
    };
    EXPECT_EQ(flops(nodes({"L4.5"}), Unit::kFp8), 54 * 83'886'080LL);
    EXPECT_EQ(flops(nodes({"L4.21"}), Unit::kFp4), 54 * 83'886'080LL);
    EXPECT_EQ(flops(nodes({"L4.12"}), Unit::kBf16), 54 * 4'194'304LL);
    EXPECT_EQ(flops(nodes({"L4.8"}), Unit::kF32), 54 * 36'864);
    EXPECT_EQ(nodes({"L4.8", "L4.12"}).total_flops(), 54 * (36'864 + 4'194'304LL));
    const Step w4a16 = build(declare_layers("397B-A17B", "nvfp4", 4), decode_shape(54));
    EXPECT_EQ(flops(node_work(w4a16, node(w4a16, "L0.22")), Unit::kFp4), 0);
    EXPECT_GT(flops(node_work(w4a16, node(w4a16, "L0.22")), Unit::kBf16), 0);
}

// What each fusion of the seed saves, counted by hand.
TEST(Work, OfAFusionIsWithoutWhatItSwallowsOrReadsTwice) {
    const auto saved = [](std::string_view rewrite, std::string_view name,
                          std::initializer_list<const char*> ids) {
        return nodes(ids).bytes() - launch(rewrite, name).bytes();
    };
    EXPECT_EQ(saved("8+9", "L4.8+9", {"L4.8", "L4.9"}), 2 * kRow) << "y written, y read";
    EXPECT_EQ(saved("16+18", "L4.16+18", {"L4.16", "L4.18"}), 2 * 54 * 10 * (4 + 2));
    EXPECT_EQ(saved("23+24", "L4.23+24", {"L4.23", "L4.24"}), 2 * kRow);
    EXPECT_EQ(saved("13+15", "L4.13+15", {"L4.13", "L4.15"}), kRow);
    EXPECT_EQ(saved("15+16", "L4.15+16", {"L4.15", "L4.16"}), 0);
    EXPECT_EQ(saved("17+19", "L4.17+19", {"L4.17", "L4.19"}), 2 * 54 * 512 * 2);
    EXPECT_EQ(saved("1+3", "L4.1+3", {"L4.1", "L4.3"}), kRow) << "H is still written";
    EXPECT_EQ(saved("11+13", "L4.11+13", {"L4.11", "L4.13"}), kRow);
    EXPECT_EQ(saved("11+13+15", "L4.11+13+15", {"L4.11", "L4.13", "L4.15"}), 2 * kRow);
    EXPECT_EQ(
        saved("23+24+next.1+next.3", "L4.23+24+next.1+next.3", {"L4.23", "L4.24", "L5.1", "L5.3"}),
        (2 + 2 + 1) * kRow)
        << "Y_r and U go, H is read once less";
    const std::int64_t qkv = 54 * 6'144 * 2, gates = 54 * 2 * 32 * 2, o = kRow, z = kRow;
    EXPECT_EQ(saved("6+7", "L4.6+7", {"L4.6", "L4.7"}), 2 * (qkv + gates));
    EXPECT_EQ(saved("7+8", "L4.7+8", {"L4.7", "L4.8"}), 2 * o);
    EXPECT_EQ(saved("6+7+8+9", "L4.6+7+8+9", {"L4.6", "L4.7", "L4.8", "L4.9"}),
              2 * (qkv + gates + o + z + kRow));
}

TEST(Work, OfAShiftIsThatOfItsNodesAndWhatTheyHandOn) {
    const std::int64_t maxima = 54 * 32 * 4;
    EXPECT_EQ(launch("8+9-amax", "L4.8+9 head_amax").bytes(), nodes({"L4.8"}).bytes() + maxima);
    EXPECT_EQ(launch("8+9-amax", "L4.9 scale_and_codes").bytes(), nodes({"L4.9"}).bytes() + maxima);
    const std::int64_t wider = 54 * (2 * 8 * 128 + 2 * 32) * 2; // f32 where bf16 was
    EXPECT_EQ(launch("6-preprocess", "L4.6+7 norms_and_gates").bytes(),
              nodes({"L4.6"}).bytes() + wider);
    EXPECT_EQ(launch("6-preprocess", "L4.7 state_update").bytes(), nodes({"L4.7"}).bytes() + wider);
}

TEST(Work, OfAnExpansionCountsOnce) {
    EXPECT_EQ(launch("expand-routed-gate-up", "L4.21 gather").bytes(), 0);
    EXPECT_EQ(launch("expand-routed-gate-up", "L4.21 quantise").bytes(), nodes({"L4.21"}).bytes());
    EXPECT_EQ(launch("15-shared-lane", "L4.15").bytes(), nodes({"L4.15"}).bytes());
}

TEST(Machine, FloorsAreTheLargestOfMemoryArithmeticAndLink) {
    const Machine h200 = *machine("h200");
    // 4.46 GB read at 4,460 GB/s: a millisecond.
    Floor floor = floor_of(h200, {.read_bytes = 4'460'000'000});
    EXPECT_NEAR(floor.us, 1000, 1e-9);
    EXPECT_EQ(floor.bound, Bound::kMemory);
    // A copy of 4.21 GB, half read and half written, takes one too.
    floor = floor_of(h200, {.read_bytes = 2'105'000'000, .write_bytes = 2'105'000'000});
    EXPECT_NEAR(floor.us, 1000, 1e-9);
    Work work{.read_bytes = 4'460'000, .link_bytes = 393'000'000};
    floor = floor_of(h200, work);
    EXPECT_NEAR(floor.us, 1000, 1e-9);
    EXPECT_EQ(floor.bound, Bound::kLink);
    work.flops = {754'000'000'000, 1'300'000'000'000, 0, 0}; // a ms each: one after the other
    floor = floor_of(h200, work);
    EXPECT_NEAR(floor.us, 2000, 1e-9);
    EXPECT_EQ(floor.bound, Bound::kArithmetic);
    floor = floor_of(h200, {});
    EXPECT_EQ(floor.us, 0);
    EXPECT_EQ(floor.bound, Bound::kNothing);
}

TEST(Machine, EveryFigureHasASource) {
    for (std::string_view name : machine_names()) {
        const Machine known = *machine(name);
        for (const FigureField& field : figure_fields()) {
            EXPECT_GT((known.*field.figure).value, 0) << name << " " << field.key;
            EXPECT_FALSE((known.*field.figure).source.empty()) << name << " " << field.key;
        }
    }
    EXPECT_EQ(machine("h100").error().message(),
              "machine: expected one of h200, b300, got \"h100\"");
}

std::string description(std::string_view read = R"({"value": 1.5, "source": "by hand"})") {
    std::string json = fmt::format(R"({{"name": "mine", "device": "a box", "read_gb_s": {})", read);
    for (const FigureField& field : figure_fields())
        if (field.key != "read_gb_s")
            json += fmt::format(R"(, "{}": {{"value": 2, "source": "s"}})", field.key);
    return json + "}";
}

TEST(Machine, IsReadFromAFile) {
    const auto mine = parse_machine(description(), "box.json");
    ASSERT_TRUE(mine) << mine.error().message();
    EXPECT_EQ(mine->name, "mine");
    EXPECT_EQ(mine->read.value, 1.5);
    EXPECT_EQ(mine->read.source, "by hand");
    EXPECT_EQ(mine->launch.value, 2);
}

TEST(Machine, RefusesWhatIsNoDescription) {
    const auto fault = [](const std::string& json) {
        const auto parsed = parse_machine(json, "box.json");
        return parsed ? std::string("none") : parsed.error().message();
    };
    EXPECT_EQ(fault("[]"), "box.json: expected an object, got an array of 0");
    EXPECT_EQ(fault(R"({"name": "x"})"), "box.json: expected the key \"device\", got none");
    EXPECT_NE(fault(description("0")).find("box.json: read_gb_s: expected an object, got 0"),
              std::string::npos)
        << fault(description("0"));
    EXPECT_NE(fault(description(R"({"value": 0, "source": "s"})")).find("read_gb_s.value"),
              std::string::npos);
    EXPECT_EQ(fault(description(R"({"value": 1})")),
              "box.json: read_gb_s: expected the key \"source\", got none");
    std::string extra = description();
    extra.insert(1, R"("colour": 3, )");
    EXPECT_EQ(fault(extra), "box.json: colour: no figure of a machine has this name");
}

} // namespace
} // namespace lr::graph
