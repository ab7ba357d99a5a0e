// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/samples.h"
#include "core/json.h"
#include "tests/cli/command.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace lr::cli {
namespace {

// What a command that was given --json printed, and nothing else was.
Json document(std::vector<const char*> arguments) {
    arguments.push_back("--json");
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Result<Json> json = parse_json(outcome.out, "stdout");
    EXPECT_TRUE(json) << outcome.out;
    return json ? *json : Json();
}

double number(const Json& json, std::string_view key) {
    const Json* value = json.find(key);
    EXPECT_TRUE(value && value->is_number()) << key;
    return value && value->is_number() ? value->as_double() : NAN;
}

void expect_positive(const Json& json, const std::vector<const char*>& keys) {
    for (const char* key : keys)
        EXPECT_GT(number(json, key), 0) << key;
}

const JsonArray& array(const Json& json, std::string_view key) {
    static const JsonArray none;
    const Json* value = json.find(key);
    EXPECT_TRUE(value && value->is_array()) << key;
    return value && value->is_array() ? value->as_array() : none;
}

double sum(const JsonArray& rows, std::string_view key) {
    double total = 0;
    for (const Json& row : rows)
        total += number(row, key);
    return total;
}

TEST(Samples, MedianAndSpreadAreThoseOfTheMiddle) {
    Samples samples;
    EXPECT_EQ(samples.median(), 0);
    EXPECT_EQ(samples.spread(), 0);
    for (double value : {5.0, 1.0, 100.0, 4.0, 2.0})
        samples.add(value);
    EXPECT_EQ(samples.median(), 4);
    EXPECT_EQ(samples.spread(), (5.0 - 2.0) / 4.0);
    samples.add(6.0);
    EXPECT_EQ(samples.median(), 4.5);
}

TEST(Bench, MeasuresTheMachine) {
    const Json json = document({"bench", "cpu", "--threads", "2"});
    expect_positive(json, {"read_gbs", "f32_gflops", "processors", "measured_bytes"});
    ASSERT_TRUE(json.find("huge_pages"));
    EXPECT_TRUE(json.find("huge_pages")->is_bool());
    const JsonArray& rows = array(json, "rows");
    ASSERT_EQ(rows.size(), 2u);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(number(rows[i], "threads"), static_cast<double>(i + 1));
        expect_positive(rows[i], {"read_gbs", "copy_gbs", "f32_gflops"});
    }
}

TEST(Bench, MeasuresALinearLayerInEveryFormat) {
    const Json json =
        document({"bench", "op", "-N", "512", "-K", "256", "-n", "1,3", "-r", "3", "--threads", "1",
                  "--format", "bf16,fp8-block,fp8-channel,fp8-tensor,nvfp4"});
    const JsonArray& rows = array(json, "rows");
    ASSERT_EQ(rows.size(), 10u);
    for (const Json& row : rows) {
        expect_positive(row, {"cold_us", "hot_us", "floor_us", "copies"});
        EXPECT_EQ(number(row, "flops"), 2.0 * number(row, "n") * 512 * 256);
    }
    // Codes and their scales (numerics/weight_format.h).
    const std::vector<double> bytes = {2 * 512 * 256, 512 * 256 + 2 * 4 * 2, 512 * 256 + 4 * 512,
                                       512 * 256, 512 * 256 / 2 + 512 * 256 / 16};
    for (std::size_t i = 0; i < bytes.size(); ++i)
        EXPECT_EQ(number(rows[2 * i], "weight_bytes"), bytes[i]) << i;
}

TEST(Bench, MeasuresEveryPairOfFormatsThatHasAProduct) {
    for (const auto& [activations, format] :
         std::vector<std::pair<const char*, const char*>>{{"fp8-token", "fp8-channel"},
                                                          {"fp8-static", "fp8-tensor"},
                                                          {"fp8-group", "fp8-block"},
                                                          {"nvfp4", "nvfp4"}}) {
        const Json json =
            document({"bench", "op", "-N", "4096", "-K", "1024", "-r", "1", "--threads", "1",
                      "--activations", activations, "--format", format});
        ASSERT_EQ(array(json, "rows").size(), 1u) << activations;
        expect_positive(array(json, "rows")[0], {"cold_us", "hot_us"});
    }
}

TEST(Bench, MeasuresExpertsAttentionAndTheDeltaRule) {
    const Json up = document({"bench", "op", "--op", "experts_gate_up", "-N", "256", "-K", "512",
                              "--experts", "64", "--top-k", "4", "-r", "2", "--threads", "1"});
    // One row: its four experts, and no other.
    EXPECT_EQ(number(array(up, "rows")[0], "weight_bytes"), 4 * 2 * 256 * 512);
    const Json down =
        document({"bench", "op",        "--op",     "experts_down", "-N",        "512", "-K",
                  "128",   "--experts", "64",       "--top-k",      "4",         "-n",  "2",
                  "-r",    "2",         "--format", "nvfp4",        "--threads", "1"});
    EXPECT_EQ(number(array(down, "rows")[0], "flops"), 2.0 * 8 * 512 * 128);
    const Json attention = document({"bench", "op", "--op", "attention", "--context", "128", "-n",
                                     "2", "-r", "2", "--threads", "1"});
    EXPECT_EQ(number(array(attention, "rows")[0], "weight_bytes"), 0);
    const Json delta =
        document({"bench", "op", "--op", "recurrent_update", "-r", "2", "--threads", "1"});
    expect_positive(array(delta, "rows")[0], {"cold_us", "hot_us", "bytes"});
}

TEST(Bench, MeasuresDecodeStepsNodeByNode) {
    const Json json = document({"bench", "step", "models/tiny", "-n", "1", "--context", "70",
                                "--steps", "3", "--threads", "1"});
    expect_positive(json, {"step_ms", "tokens_per_second", "wall_tokens_per_second", "weight_gbs",
                           "read_share", "bytes", "flops", "floor_ms"});
    // Each row goes to two of eight experts, so the bytes of one row are exact.
    EXPECT_EQ(number(json, "live_experts"), 2);
    EXPECT_EQ(number(json, "counted_experts"), 2);
    const JsonArray& nodes = array(json, "nodes");
    EXPECT_EQ(sum(nodes, "weight_bytes"), number(json, "weight_bytes"));
    EXPECT_EQ(sum(nodes, "bytes"), number(json, "bytes"));
    EXPECT_NEAR(sum(nodes, "share"), 1, 1e-9);
    for (const Json& node : nodes)
        expect_positive(node, {"us", "count"});
}

TEST(Bench, CountsTheRowsThatLiveAndNotTheBucket) {
    const auto flops = [](const char* rows) {
        return number(document({"bench", "step", "models/tiny", "-n", rows, "--context", "0",
                                "--steps", "1", "--threads", "1"}),
                      "flops");
    };
    const double three = flops("3"), four = flops("4");
    EXPECT_NEAR(three / four, 0.75, 0.01);
}

TEST(Bench, ListsEveryLayerWhenAsked) {
    const Json groups = document({"bench", "step", "models/tiny", "--context", "0", "--steps", "1",
                                  "--threads", "1", "--sort", "order"});
    const Json each = document({"bench", "step", "models/tiny", "--context", "0", "--steps", "1",
                                "--threads", "1", "--sort", "order", "--each"});
    const JsonArray& nodes = array(each, "nodes");
    EXPECT_EQ(sum(array(groups, "nodes"), "count"), static_cast<double>(nodes.size()));
    EXPECT_GT(nodes.size(), array(groups, "nodes").size());
    ASSERT_FALSE(nodes.empty());
    EXPECT_EQ(nodes.front().find("id")->as_string(), "pro.1");
}

TEST(Bench, MeasuresAPromptOfSeveralSteps) {
    const Json json =
        document({"bench", "prefill", "models/tiny", "-n", "600", "-r", "2", "--threads", "1"});
    expect_positive(json, {"prefill_ms", "tokens_per_second", "gflops", "peak_share", "floor_ms"});
    EXPECT_EQ(sum(array(json, "nodes"), "flops"), number(json, "flops"));
    const Json* sgemm = json.find("sgemm");
    ASSERT_TRUE(sgemm);
    if (sgemm->find("gflops"))
        EXPECT_GT(number(*sgemm, "gflops"), 0);
    else
        EXPECT_NE(sgemm->find("missing")->as_string().find("OpenBLAS"), std::string::npos);
}

TEST(Bench, PrintsTables) {
    const Outcome step =
        run({"bench", "step", "models/tiny", "--context", "0", "--steps", "1", "--top", "3"});
    EXPECT_EQ(step.status, 0) << step.err;
    for (const char* text : {"machine ", "floors ", "model ", "node ", "more, --top 0 shows them",
                             "\nstep ", "\nweights ", "\nfloor ", "\nexperts "})
        EXPECT_NE(step.out.find(text), std::string::npos) << text << "\n" << step.out;
    const Outcome op = run({"bench", "op", "--op", "attention", "--context", "64", "-r", "1"});
    EXPECT_EQ(op.status, 0) << op.err;
    EXPECT_NE(op.out.find("context 64"), std::string::npos) << op.out;
}

TEST(Bench, RefusesWhatItCannotMeasure) {
    expect_refused(run({"bench"}), 2, {"subcommand is required", "liverow bench --help"});
    expect_refused(run({"bench", "cpu", "--threads", "-1"}), 2,
                   {"--threads", "liverow bench cpu --help"});
    expect_refused(run({"bench", "op", "--op", "nothing"}), 2, {"--op", "nothing"});
    expect_refused(run({"bench", "op", "--format", "bf16,int3"}), 2, {"--format", "int3"});
    expect_refused(run({"bench", "op", "-n", "0"}), 2, {"--rows"});
    expect_refused(run({"bench", "op", "--activations", "nvfp4", "--format", "fp8-block", "-N",
                        "64", "-K", "64"}),
                   2, {"linear", "nvfp4", "fp8-block"});
    expect_refused(run({"bench", "op", "--format", "nvfp4", "-N", "64", "-K", "40"}), 2,
                   {"linear: nvfp4: expected -K a multiple of 16, got 40"});
    expect_refused(run({"bench", "op", "--op", "attention", "--context", "100"}), 2,
                   {"--context: expected a multiple of 64, got 100"});
    expect_refused(run({"bench", "op", "--op", "attention", "--format", "nvfp4"}), 2,
                   {"--format: attention has no weights"});
    expect_refused(run({"bench", "op", "--op", "experts_down", "--preset", "0.8B"}), 2,
                   {"experts_down: preset 0.8B has no experts"});
    expect_refused(run({"bench", "op", "--op", "experts_gate_up", "-N", "7", "-K", "16",
                        "--experts", "4", "--top-k", "2"}),
                   2, {"expected an even -N", "got 7"});
    expect_refused(run({"bench", "op", "--op", "experts_down", "-N", "16", "-K", "16", "--experts",
                        "4", "--top-k", "5"}),
                   2, {"expected --top-k of at most 4 experts, got 5"});
    expect_refused(run({"bench", "op", "-N", "16777216", "-K", "16777216"}), 1,
                   {"linear: expected at most", "got more"});
    expect_refused(run({"bench", "step"}), 2, {"MODEL is required"});
    expect_refused(run({"bench", "step", "no-such-folder"}), 1, {"no-such-folder"});
    expect_refused(run({"bench", "step", "models/tiny", "--sort", "size"}), 2, {"--sort", "size"});
    expect_refused(run({"bench", "step", "models/tiny", "--context", "2048"}), 2,
                   {"context: expected 1..2048", "got 2082"});
    expect_refused(run({"bench", "prefill", "models/tiny", "-n", "0"}), 2, {"--tokens"});
}

} // namespace
} // namespace lr::cli
