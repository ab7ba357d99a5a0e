// SPDX-License-Identifier: Apache-2.0
#include "report/fusions.h"
#include "tests/graph/steps.h"

#include <map>

namespace lr::report {
namespace {

std::vector<FusionRow> fusions(const graph::Step& step) {
    auto rows = find_fusions(step, *graph::machine("h200"));
    EXPECT_TRUE(rows) << (rows ? "" : rows.error().message());
    return rows ? std::move(*rows) : std::vector<FusionRow>{};
}

const graph::Step& traced() {
    static const graph::Step step =
        graph::build(graph::declare("397B-A17B", "nvfp4-mixed"), graph::decode_shape(54), {.tp = 2},
                     {.w4a4 = true});
    return step;
}

// Nodes, and what one place saves at batch 54 on two ranks, counted by hand: a row [54, 4096] bf16
// is 442,368 bytes.
TEST(Fusions, AreTheCandidatesOfTheTracesAnalysis) {
    struct Expected {
        const char* numbers;
        std::int64_t launches, bytes;
    };
    const std::map<std::string, Expected> expected = {
        {"8+9", {"8 9", 1, 884'736}},
        {"8+9-amax", {"8 9", 0, -2 * 54 * 32 * 4}},
        {"16+18", {"16 18", 1, 6'480}},
        {"23+24", {"23 24", 1, 884'736}},
        {"13+15", {"13 15", 1, 442'368}},
        {"15+16", {"15 16", 1, 0}},
        {"15-shared-lane", {"15", 0, 0}},
        {"17+19", {"17 19", 1, 110'592}},
        {"1+3", {"1 3", 1, 442'368}},
        {"11+13", {"11 13", 1, 442'368}},
        {"11+13+15", {"11 13 15", 2, 884'736}},
        {"23+24+next.1+next.3", {"23 24 1 3", 3, 5 * 442'368}},
        {"6+7", {"6 7", 1, 1'340'928}},
        {"6-preprocess", {"6 7", 0, -456'192}},
        {"7+8", {"7 8", 1, 884'736}},
        {"6+7+8+9", {"6 7 8 9", 3, 3'995'136}},
    };
    const std::vector<FusionRow> rows = fusions(traced());
    EXPECT_EQ(rows.size(), expected.size());
    for (const FusionRow& row : rows) {
        const std::string name(row.rewrite->name);
        ASSERT_TRUE(expected.contains(name)) << name;
        ASSERT_FALSE(row.places.empty()) << name;
        const FusionPlace& place = row.places.front();
        EXPECT_EQ(place.path, "decode-gdn");
        std::string numbers;
        for (std::int32_t id : place.nodes)
            numbers += fmt::format("{}{}", numbers.empty() ? "" : " ",
                                   traced().nodes[static_cast<std::size_t>(id)].number);
        EXPECT_EQ(numbers, expected.at(name).numbers) << name;
        EXPECT_EQ(place.launches, expected.at(name).launches) << name;
        EXPECT_EQ(place.bytes, expected.at(name).bytes) << name;
        EXPECT_EQ(place.count, 45) << name;
        for (std::string_view text : {row.rewrite->vanishes, row.rewrite->keeps,
                                      row.rewrite->constraint, row.rewrite->verdict})
            EXPECT_FALSE(text.empty()) << name;
    }
}

TEST(Fusions, SayWhereTheyStandNowhere) {
    const graph::Step dense =
        graph::build(graph::declare("27B", "fp8-channel"), graph::decode_shape(1));
    for (const FusionRow& row : fusions(dense)) {
        const std::string_view name = row.rewrite->name;
        const bool mixer = name == "8+9" || name == "8+9-amax" || name == "1+3" || name == "6+7" ||
                           name == "6-preprocess" || name == "7+8" || name == "6+7+8+9";
        EXPECT_EQ(row.places.size(), mixer ? 1u : 0u) << name;
    }
    // One format for shared and routed experts: both quantisations are one node already.
    const graph::Step block =
        graph::build(graph::declare("35B-A3B", "fp8-block"), graph::decode_shape(1));
    for (const FusionRow& row : fusions(block))
        if (row.rewrite->name == "13+15" || row.rewrite->name == "15-shared-lane")
            EXPECT_TRUE(row.places.empty()) << row.rewrite->name;
}

TEST(Fusions, AreWrittenWithWhatTheyMustKeep) {
    const auto rows = fusions(traced());
    const std::string text = fusions_text(rows, *graph::machine("h200"), "the traced step");
    for (const char* part :
         {"the traced step\n", "15-shared-lane: another lane\n",
          "6+7: one launch, its blocks wait for one another\n",
          "  nodes       decode-gdn: 23 routed_finalize, 24 shared_gate_sigmoid_mul_add, next.1 "
          "input_allreduce_add_rmsnorm, next.3 in_proj_qkvz_input_fp8_quant\n",
          "  keeps       y rounded to bf16 before the scale and the codes are taken\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part;
    const Json json = fusions_json(rows, *graph::machine("h200"));
    EXPECT_EQ(json.find("rewrites")->as_array().size(), 16u);
    EXPECT_EQ(json.find("rewrites")
                  ->as_array()[0]
                  .find("places")
                  ->as_array()[0]
                  .find("bytes_saved")
                  ->as_int(),
              884'736);
}

} // namespace
} // namespace lr::report
