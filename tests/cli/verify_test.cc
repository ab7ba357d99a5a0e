// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/command.h"

#include <filesystem>
#include <unistd.h>

namespace lr::cli {
namespace {

const std::string kTiny = std::string(LR_SOURCE_DIR) + "/models/tiny";

// Few rows: every path and every op runs all the same.
Outcome verify(std::vector<const char*> flags) {
    std::vector<const char*> arguments = {"verify",  kTiny.c_str(), "--rows",          "2",
                                          "--steps", "1",           "--prompt-tokens", "9"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return run(arguments);
}

TEST(Verify, TheSmallModelAgreesOnEveryPathAndPlan) {
    const Outcome outcome = verify({"--plan", "all"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("codes and integers equal, floats within their bounds"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(
        outcome.out.find("plan 16+18: 149 launches compared; 8 as its 2 leaf ops, one by one"),
        std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("8 as the whole node at its last stage"), std::string::npos);
}

TEST(Verify, PrecisionsAndResidualsAgree) {
    EXPECT_EQ(verify({"--precision", "f32"}).status, 0);
    EXPECT_EQ(verify({"--numerics", "seed"}).status, 0);
}

// Weights and activations in every format that a folder can be quantised to here; every plan.
TEST(Verify, QuantisedCopiesAgree) {
    const std::string prose = std::string(LR_SOURCE_DIR) + "/docs/ARCHITECTURE.md";
    const struct {
        const char *format, *activations;
        bool calibrated;
    } kCases[] = {{"fp8-block", "auto", false},
                  {"fp8-channel", "auto", false},
                  {"fp8-channel", "16", false},
                  {"nvfp4", "auto", false},
                  {"nvfp4-mixed", "quant", true}};
    for (const auto& c : kCases) {
        const std::string folder =
            testing::TempDir() + "liverow-verify-test-" + std::to_string(::getpid());
        std::vector<const char*> quantize = {"quantize", kTiny.c_str(), folder.c_str(), "--format",
                                             c.format};
        if (c.calibrated)
            quantize.insert(quantize.end(),
                            {"--calibrate", prose.c_str(), "--calibrate-tokens", "100"});
        const Outcome quantised = run(quantize);
        ASSERT_EQ(quantised.status, 0) << quantised.err;
        const Outcome outcome =
            run({"verify", folder.c_str(), "--rows", "2", "--steps", "1", "--prompt-tokens", "9",
                 "--plan", "all", "--activations", c.activations});
        EXPECT_EQ(outcome.status, 0) << c.format << " " << c.activations << ": " << outcome.err;
        EXPECT_NE(outcome.out.find("verdict"), std::string::npos) << outcome.out;
        std::filesystem::remove_all(folder);
    }
}

TEST(Verify, FreeRunsDifferByRoundingsOnly) {
    const Outcome outcome = run({"verify", kTiny.c_str(), "--free-run", "--plan", "16+18", "--rows",
                                 "2", "--prompt-tokens", "40", "--steps", "1"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("only roundings differ"), std::string::npos) << outcome.out;
}

TEST(Verify, NodesOfARangeAlone) {
    const Outcome outcome = verify({"--path", "decode-gdn", "--nodes", "6-7", "--layer", "4"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("plan reference: 2 launches compared; 2 as one kernel"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("recurrent_update"), std::string::npos);
    EXPECT_EQ(outcome.out.find("add_rmsnorm"), std::string::npos);
}

// Ten wrong kernels, on all four paths and on every kind of tensor.
TEST(Verify, TenInjectedFaultsAreNoticed) {
    const struct {
        const char *path, *inject;
        const char* seen; // of the report
    } kCases[] = {
        {"decode-gdn", "L0.7:element", "L0.ssm_state"},
        {"decode-gdn", "L0.7:stale", "L0.o"},
        {"decode-gdn", "L4.8:swap", "L4.y"},
        {"decode-gdn", "L0.21:row", "L0.F"},
        {"decode-gdn", "L0.18:id", "L0.row_map"},
        {"decode-attention", "L3.5:pad", "L3.k_cache"},
        {"decode-attention", "L3.6:nan", "L3.o"},
        {"prefill-gdn", "L0.15:element", "L0.h"},
        {"prefill-attention", "L3.20:id", "L3.topk_ids"},
        {"epilogue", "epi.5:id", "tokens"},
    };
    for (const auto& c : kCases) {
        const Outcome outcome = verify({"--path", c.path, "--inject", c.inject});
        EXPECT_EQ(outcome.status, 0) << c.inject << outcome.err;
        EXPECT_NE(outcome.out.find(c.seen), std::string::npos) << c.inject << outcome.out;
        EXPECT_NE(outcome.out.find("caught at ["), std::string::npos) << c.inject;
        EXPECT_EQ(outcome.out.find("NOT NOTICED"), std::string::npos) << c.inject;
    }
}

TEST(Verify, RefusesFlagsThatSayNothing) {
    expect_refused(run({"verify"}), 2, {"either MODEL or --preset"});
    expect_refused(verify({"--nodes", "9-6"}), 2, {"--nodes", "smaller number first", "9-6"});
    expect_refused(verify({"--nodes", "six"}), 2, {"--nodes", "6-9", "six"});
    expect_refused(verify({"--inject", "L0.7:crash"}), 2, {"--inject", "element", "crash"});
    expect_refused(verify({"--inject", "L99.7"}), 2, {"--inject", "L99.7"});
    const Outcome elsewhere = verify({"--inject", "L0.7", "--path", "decode-attention"});
    EXPECT_EQ(elsewhere.status, 2);
    EXPECT_NE(elsewhere.err.find("--inject: nothing that L0.7 writes"), std::string::npos)
        << elsewhere.err;
    expect_refused(verify({"--free-run", "--nodes", "6"}), 2, {"--free-run", "--nodes"});
    expect_refused(run({"verify", "--preset", "9000B"}), 2, {"9000B"});
}

TEST(Verify, RefusesPlansThatThereAreNot) {
    const Outcome outcome = verify({"--plan", "8+99"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("8+99"), std::string::npos) << outcome.err;
    // A BF16 model has no node 9 to fuse with.
    const Outcome nowhere = verify({"--plan", "8+9"});
    EXPECT_EQ(nowhere.status, 2);
    EXPECT_NE(nowhere.err.find("no launch of this model"), std::string::npos) << nowhere.err;
}

} // namespace
} // namespace lr::cli
