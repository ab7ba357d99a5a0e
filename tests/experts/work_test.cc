// SPDX-License-Identifier: Apache-2.0
#include "experts/work.h"
#include "tests/experts/worked_example.h"

#include <gtest/gtest.h>

namespace lr::experts {
namespace {

Element element(const Problem& problem, std::size_t gemm, std::int64_t row, std::int64_t column,
                std::int64_t depth) {
    const auto traced = trace_element(problem, gemms(problem)[gemm], row, column, depth);
    EXPECT_TRUE(traced) << traced.error().message();
    return traced ? *traced : Element{};
}

TEST(Work, WorkedExampleReadsTheseElementsInTheGateUpGemm) {
    const Element e = element(worked_problem(), 0, 65, 129, 130);
    EXPECT_EQ(e.expert, 0);
    EXPECT_EQ(e.position, 197);
    EXPECT_EQ(e.local_row, 5);
    EXPECT_EQ(e.program, 10);
    EXPECT_EQ(e.activation, 16770);
    EXPECT_EQ(e.weight, 33154);
    EXPECT_EQ(e.activation_scale, 131);
    EXPECT_EQ(e.weight_scale, 3);
    EXPECT_EQ(e.output, 16769);
}

TEST(Work, WorkedExampleReadsTheseElementsInTheDownGemm) {
    const Element e = element(worked_problem(), 1, 65, 129, 2);
    EXPECT_EQ(e.program, 10);
    EXPECT_EQ(e.activation, 8322);
    EXPECT_EQ(e.weight, 16514);
    EXPECT_EQ(e.activation_scale, 65);
    EXPECT_EQ(e.weight_scale, 1);
    EXPECT_EQ(e.output, 16769);
}

TEST(Work, TheOtherExpertsWeightsLieBehind) {
    const Element e = element(worked_problem(), 0, 130, 0, 0);
    EXPECT_EQ(e.expert, 1);
    EXPECT_EQ(e.weight, 256 * 256);
    EXPECT_EQ(e.weight_scale, 4);
    EXPECT_EQ(e.program, 5);
    EXPECT_EQ(element(worked_problem(), 0, 130, 255, 0).program, 12);
}

TEST(Work, RefusesElementsThatAreNotThere) {
    const Problem problem = worked_problem();
    const auto message = [&](std::int64_t q, std::int64_t n, std::int64_t k) {
        return trace_element(problem, gemms(problem)[1], q, n, k).error().message();
    };
    EXPECT_EQ(message(256, 0, 0), "element: row: expected 0 to 255, got 256");
    EXPECT_EQ(message(0, 256, 0), "element: column: expected 0 to 255, got 256");
    // Feature 130 of the first GEMM is none of the second, whose sum has 128.
    EXPECT_EQ(message(65, 129, 130), "element: depth: expected 0 to 127, got 130");
    EXPECT_EQ(message(100, 0, 0),
              "element: expected a row of an expert, got row 100, which is dead");
}

TEST(Work, EndpointsHaveAProgramToo) {
    Problem problem = worked_problem();
    problem.layout = Layout::kEndpoints;
    const Element e = element(problem, 0, 130, 129, 0); // row 2 of expert 1, which starts at 128
    EXPECT_EQ(e.expert, 1);
    EXPECT_EQ(e.position, -1);
    EXPECT_EQ(e.local_row, 2);
    EXPECT_EQ(e.program, 4 + 2); // 4 row blocks; the third one, second column block
}

TEST(Work, TheSumOfTheTwoGemmsHasTwoStepsAndOne) {
    const Problem problem = worked_problem();
    const auto [gate_up, down] = gemms(problem);
    EXPECT_EQ(gate_up.columns, 256);
    EXPECT_EQ(gate_up.depth, 256);
    EXPECT_EQ(down.columns, 256);
    EXPECT_EQ(down.depth, 128);
    EXPECT_EQ(depth_steps(gate_up, problem.tiling), 2);
    EXPECT_EQ(depth_steps(down, problem.tiling), 1);
}

TEST(Work, WorkedExampleBytesAndFlops) {
    const Problem problem = worked_problem();
    // w13 [256,256] with scales [2,2] and w2 [256,128] with scales [2,1]; bf16 scales as released.
    EXPECT_EQ(expert_weight_bytes(problem), 256 * 256 + 2 * 2 * 2 + 256 * 128 + 2 * 1 * 2);
    const Work work = measure(problem);
    EXPECT_EQ(work.live_rows, 82);
    EXPECT_EQ(work.live_experts, 2);
    EXPECT_EQ(work.weight_bytes, 2 * expert_weight_bytes(problem));
    EXPECT_EQ(work.tile_weight_bytes, 3 * expert_weight_bytes(problem));
    EXPECT_EQ(work.flops, std::int64_t{6} * 82 * 256 * 128);
    EXPECT_EQ(work.tile_flops, std::int64_t{6} * 192 * 256 * 128);
}

TEST(Work, StagesOfTheTracedChainWalkMoreThanLiveRows) {
    const std::vector<Stage> chain = stages(worked_problem());
    ASSERT_EQ(chain.size(), 6u);
    // FP8 rows of 256 features are 256 + 2 scales of 4 bytes; bf16 rows 512 bytes.
    EXPECT_EQ(chain[0].name, "unpack FP8 slots to bf16");
    EXPECT_EQ(chain[0].rows, 256);
    EXPECT_EQ(chain[0].bytes, 82 * 264 + 256 * 512);
    EXPECT_EQ(chain[0].live_bytes, 82 * (264 + 512));
    EXPECT_EQ(chain[1].rows, 256);
    EXPECT_EQ(chain[1].bytes, 256 * (512 + 264));
    EXPECT_EQ(chain[2].name, "gate and up GEMM");
    EXPECT_EQ(chain[2].rows, 256); // 82 computed, 174 zeroed
    EXPECT_EQ(chain[2].bytes, 82 * (264 + 512) + 174 * 512);
    EXPECT_EQ(chain[3].rows, 82);
    EXPECT_EQ(chain[3].bytes, 82 * (512 + 256));
    EXPECT_EQ(chain[4].rows, 256);
    EXPECT_EQ(chain[4].bytes, 256 * (256 + 132));
    EXPECT_EQ(chain[5].bytes, 82 * (132 + 512) + 174 * 512);
}

TEST(Work, OnlyFp8WeightsQuantiseTheirRows) {
    Problem problem = worked_problem();
    problem.weights = numerics::WeightFormat::kFp8Channel; // a scale a row
    EXPECT_EQ(stages(problem)[1].bytes, 256 * (512 + 256 + 4));
    for (auto format : {numerics::WeightFormat::kPlain, numerics::WeightFormat::kNvfp4}) {
        problem.weights = format;
        const std::vector<Stage> chain = stages(problem);
        ASSERT_EQ(chain.size(), 3u);
        EXPECT_EQ(chain[0].name, "gate and up GEMM");
        EXPECT_EQ(chain[0].bytes, 82 * (512 + 512) + 174 * 512);
        EXPECT_EQ(chain[2].bytes, 82 * (256 + 512) + 174 * 512);
    }
}

TEST(Work, EndpointsWalkLiveRowsAndAlignedEndsTheirPadding) {
    Problem problem = worked_problem();
    problem.layout = Layout::kEndpoints;
    for (const Stage& stage : stages(problem)) {
        EXPECT_EQ(stage.rows, 82) << stage.name;
        EXPECT_EQ(stage.bytes, stage.live_bytes) << stage.name;
    }
    const Work live = measure(problem);
    EXPECT_EQ(live.moved_bytes, live.live_bytes);
    problem.layout = Layout::kAlignedEnd;
    for (const Stage& stage : stages(problem))
        EXPECT_EQ(stage.rows, 256) << stage.name;
    EXPECT_EQ(measure(problem).live_bytes, live.live_bytes);
}

TEST(Work, FloorIsTheSlowerOfMemoryAndArithmetic) {
    const Work work{.weight_bytes = 4'000'000, .live_bytes = 800'000, .flops = 1000};
    EXPECT_NEAR(floor_seconds(work, {.bytes_per_second = 4.8e12, .flops_per_second = 1e15}), 1e-6,
                1e-12);
    EXPECT_NEAR(floor_seconds(work, {.bytes_per_second = 4.8e12, .flops_per_second = 1e6}), 1e-3,
                1e-12);
}

TEST(Work, ExpertWeightsOfReleasedSizes) {
    struct Size {
        std::int64_t hidden, width;
        double fp8_mb, nvfp4_mb;
    };
    for (const Size& size : {Size{2048, 512, 3.15, 1.77}, Size{3072, 1024, 9.44, 5.31},
                             Size{4096, 1024, 12.58, 7.08}}) {
        Problem problem = worked_problem();
        problem.hidden = size.hidden;
        problem.width = size.width;
        EXPECT_NEAR(static_cast<double>(expert_weight_bytes(problem)) / 1e6, size.fp8_mb, 0.006);
        problem.weights = numerics::WeightFormat::kNvfp4;
        EXPECT_NEAR(static_cast<double>(expert_weight_bytes(problem)) / 1e6, size.nvfp4_mb, 0.006);
    }
}

} // namespace
} // namespace lr::experts
