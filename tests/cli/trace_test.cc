// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "core/text_file.h"
#include "tests/cli/command.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace lr::cli {
namespace {

const std::string kTiny = std::string(LR_SOURCE_DIR) + "/models/tiny";
const std::string kFixture = std::string(LR_SOURCE_DIR) + "/tests/fixtures/decode_gdn_layer.csv";
const std::string kNsys = std::string(LR_SOURCE_DIR) + "/tests/fixtures/cuda_gpu_trace.csv";
const std::string kRules = std::string(LR_SOURCE_DIR) + "/tools/nsys/sglang.rules";

class TraceCommand : public testing::Test {
  protected:
    void TearDown() override { std::filesystem::remove_all(folder); }

    std::string written(const std::string& name, const std::string& text) {
        std::filesystem::create_directories(folder);
        std::ofstream(folder + "/" + name) << text;
        return folder + "/" + name;
    }

    const std::string folder = testing::TempDir() + "liverow-trace-" + std::to_string(::getpid());
};

void expect_line(const Outcome& outcome, const std::string& text) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in:\n" << outcome.out;
}

TEST_F(TraceCommand, RecordsAModelAndReadsItsOwnFile) {
    const Outcome recorded = run({"trace", kTiny.c_str(), "--out", folder.c_str(), "--steps", "4"});
    ASSERT_EQ(recorded.status, 0) << recorded.err;
    const std::size_t at = recorded.out.find("launches make up ");
    ASSERT_NE(at, std::string::npos) << recorded.out;
    EXPECT_GE(std::strtod(recorded.out.c_str() + at + 17, nullptr), 97.0) << recorded.out;
    EXPECT_TRUE(parse_json(*read_text_file(folder + "/trace.json"), "trace.json"));
    const std::string page = *read_text_file(folder + "/timeline.html");
    EXPECT_EQ(page.find("http://"), std::string::npos);
    EXPECT_EQ(page.find("https://"), std::string::npos);
    EXPECT_NE(page.find("gdn_packed_recurrent_qk_norm_gating_state_update"), std::string::npos);
    const std::string csv = folder + "/trace.csv";
    const Outcome analysed = run({"trace", "analyze", csv.c_str(), "--model", kTiny.c_str()});
    EXPECT_EQ(analysed.status, 0) << analysed.err;
    expect_line(analysed, "decode-gdn 7");
    expect_line(analysed, "16+18");
}

TEST_F(TraceCommand, ReproducesTheTracedLayer) {
    const Outcome outcome =
        run({"trace", "analyze", kFixture.c_str(), "--preset", "397B-A17B", "--tp", "2"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    expect_line(outcome, "235.680 us");
    expect_line(outcome, "211.202 us");
    expect_line(outcome, "98.081");
    expect_line(outcome, "10.752");
    expect_line(outcome, "48.191");
}

TEST_F(TraceCommand, ReadsNsys) {
    const Outcome outcome = run({"trace", "analyze", kNsys.c_str(), "--rules", kRules.c_str(),
                                 "--preset", "397B-A17B", "--tp", "2", "--layer", "0"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    expect_line(outcome, "235.680 us");
    expect_line(outcome, "no rule     1 x some_unrelated_kernel");
    const Outcome both = run({"trace", "analyze", kNsys.c_str(), "--rules", kRules.c_str(),
                              "--preset", "397B-A17B", "--tp", "2"});
    ASSERT_EQ(both.status, 0) << both.err;
    expect_line(both, "23+24+next.1+next.3"); // now the next layer is there
    expect_refused(run({"trace", "analyze", kNsys.c_str(), "--preset", "397B-A17B"}), 2,
                   {"--rules", "sglang.rules"});
}

TEST_F(TraceCommand, SaysWhereTheGraphIsAnothers) {
    // A BF16 graph has no quantisation: nodes 3, 9, 13, 15 and 19 of the fixture are not its own.
    expect_refused(run({"trace", "analyze", kFixture.c_str(), "--preset", "397B-A17B", "--format",
                        "bf16", "--tp", "2"}),
                   2, {"expected a node of 397B-A17B"});
    const std::string csv =
        written("bare.csv", "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,"
                            "floor_pct\n0,0,decode-gdn,7,main,5,6,1,,\n");
    const Outcome outcome = run({"trace", "analyze", csv.c_str(), "--model", kTiny.c_str()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("18 launches of"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("L0.1, L0.2"), std::string::npos) << outcome.err;
}

TEST_F(TraceCommand, RefusesBadInput) {
    const auto analyse = [](const std::string& file, std::vector<const char*> more = {}) {
        std::vector<const char*> all = {"trace", "analyze", file.c_str(), "--preset", "397B-A17B"};
        all.insert(all.end(), more.begin(), more.end());
        return run(all);
    };
    expect_refused(run({"trace"}), 2, {"MODEL"});
    expect_refused(run({"trace", kTiny.c_str(), "--out", kFixture.c_str()}), 2, {"--out", "csv"});
    expect_refused(run({"trace", "analyze", kFixture.c_str()}), 2, {"--model FOLDER or --preset"});
    expect_refused(analyse(kFixture, {"--model", "x"}), 2, {"--model excludes --preset"});
    expect_refused(analyse(kFixture, {"--rules", "x"}), 2, {"--rules", "names its nodes itself"});
    expect_refused(run({"trace", "analyze", kFixture.c_str(), "--model", "x", "--format", "bf16"}),
                   2, {"--format requires --preset"});
    expect_refused(run({"trace", kTiny.c_str()}), 2, {"--out"});
    expect_refused(analyse("/nowhere.csv"), 1, {"/nowhere.csv"});
    const std::string missing = written("missing.csv", "step,layer,nodes\n0,1,2\n");
    expect_refused(analyse(missing), 1, {"missing.csv", "path", "got step"});
    const std::string head =
        "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct\n";
    const std::string back = written(
        "back.csv", head + "0,0,decode-gdn,7,main,5,6,1,,\n0,0,decode-gdn,8,main,4,7,3,,\n");
    expect_refused(analyse(back), 1, {"back.csv:3", "backwards"});
    const std::string strange = written("strange.csv", head + "0,0,decode-gdn,99,main,5,6,1,,\n");
    expect_refused(analyse(strange), 2, {"L0.99", "397B"});
    expect_refused(analyse(kFixture, {"--step", "3"}), 2, {"--step", "got 3"});
    expect_refused(analyse(kFixture, {"--layer", "5"}), 2, {"--layer 5"});
    expect_refused(run({"trace", "analyze", kFixture.c_str(), "--preset", "1T"}), 2, {"1T"});
}

} // namespace
} // namespace lr::cli
