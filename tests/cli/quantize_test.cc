// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "tests/checkpoint/files.h"
#include "tests/cli/command.h"

#include <filesystem>

namespace lr::cli {
namespace {

const std::string kTiny = "models/tiny";

class Quantize : public testing::Test {
  protected:
    std::string path(std::string_view name) const { return files_.file(name); }
    checkpoint::TempFolder files_;
};

TEST_F(Quantize, HelpTeachesFormatsAndWhatAnInterruptionLeaves) {
    const Outcome help = run({"quantize", "--help"});
    EXPECT_EQ(help.status, 0);
    for (const char* part : {"fp8-block", "nvfp4-mixed", "compressed-tensors", "--experts-only",
                             "--calibrate", "the same command\ngoes on from there", "liverow ppl"})
        EXPECT_NE(help.out.find(part), std::string::npos) << part;
    EXPECT_NE(run({"--help"}).out.find("quantize"), std::string::npos);
}

TEST_F(Quantize, PrintsATableOfErrorsAndTheCopyRuns) {
    const std::string out = path("fp8");
    const Outcome made = run({"quantize", kTiny.c_str(), out.c_str(), "--format", "fp8-block"});
    ASSERT_EQ(made.status, 0) << made.err;
    for (const char* part : {"kind", "gdn", "attention", "shared expert", "routed experts",
                             "fp8-block", "worst module"})
        EXPECT_NE(made.out.find(part), std::string::npos) << part;
    EXPECT_NE(made.err.find("fp8-block (hf), 558 tensors"), std::string::npos) << made.err;
    const Outcome answer = run({"run", out.c_str(), "-p", "Once upon a time", "-n", "2"});
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_FALSE(answer.out.empty());
}

TEST_F(Quantize, JsonHoldsEveryModule) {
    const std::string out = path("fp4");
    const Outcome made = run({"quantize", kTiny.c_str(), out.c_str(), "--format", "nvfp4",
                              "--experts-only", "--flavor", "compressed-tensors", "--json"});
    ASSERT_EQ(made.status, 0) << made.err;
    const auto report = parse_json(made.out, "stdout");
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->find("flavor")->as_string(), "compressed-tensors");
    EXPECT_FALSE(report->find("calibrated")->as_bool());
    EXPECT_EQ(report->find("modules")->as_array().size(), 8 * 4u);
    const JsonArray& kinds = report->find("kinds")->as_array();
    ASSERT_EQ(kinds.size(), 2u);
    const Json& error = *kinds[1].find("error");
    EXPECT_EQ(kinds[1].find("name")->as_string(), "routed experts");
    EXPECT_EQ(error.find("matrices")->as_int(), 8 * 8 * 3);
    // 16 values of a normal distribution in E2M1: about a tenth.
    EXPECT_GT(error.find("relative_rms")->as_double(), 0.08);
    EXPECT_LT(error.find("relative_rms")->as_double(), 0.11);
    EXPECT_GT(error.find("cosine")->as_double(), 0.994);
}

TEST_F(Quantize, WrongUseIsOneLine) {
    const std::string out = path("out");
    expect_refused(run({"quantize", kTiny.c_str(), out.c_str()}), 2, {"--format is required"});
    expect_refused(run({"quantize", kTiny.c_str(), out.c_str(), "--format", "int4"}), 2,
                   {"--format", "fp8-block", "int4"});
    expect_refused(
        run({"quantize", kTiny.c_str(), out.c_str(), "--format", "nvfp4", "--flavor", "hf"}), 2,
        {"format nvfp4 does not exist in flavor hf", "nvfp4 (modelopt, compressed-tensors)"});
    expect_refused(
        run({"quantize", kTiny.c_str(), out.c_str(), "--format", "fp8-block", "--scales", "mse"}),
        2, {"scales mse: expected a format with NVFP4 blocks"});
    expect_refused(run({"quantize", kTiny.c_str(), kTiny.c_str(), "--format", "nvfp4"}), 2,
                   {"is the folder of the input"});
    EXPECT_FALSE(std::filesystem::exists(out));
}

} // namespace
} // namespace lr::cli
