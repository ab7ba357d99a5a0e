// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "tests/cli/command.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace lr::cli {
namespace {

const std::vector<const char*> kWorked = {"experts",  "--counts", "70,12",   "--capacity", "128",
                                          "--hidden", "256",      "--width", "128"};

std::vector<const char*> worked(const std::vector<const char*>& more) {
    std::vector<const char*> arguments = kWorked;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

Json document(std::vector<const char*> arguments) {
    arguments.insert(arguments.end(), {"--as", "json"});
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Result<Json> json = parse_json(outcome.out, "stdout");
    EXPECT_TRUE(json) << outcome.out;
    return json ? *json : Json();
}

std::int64_t at(const Json& json, std::string_view section, std::string_view key) {
    const Json* part = json.find(section);
    const Json* value = part ? part->find(key) : nullptr;
    EXPECT_TRUE(value && value->is_int()) << section << "." << key;
    return value && value->is_int() ? value->as_int() : -1;
}

class FileOf {
  public:
    explicit FileOf(const std::string& text)
        : path_(std::filesystem::temp_directory_path() /
                ("experts_test_" +
                 std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
                 std::to_string(count_++))) {
        std::ofstream(path_) << text;
    }
    ~FileOf() { std::filesystem::remove(path_); }
    std::string path() const { return path_.string(); }

  private:
    static inline int count_ = 0;
    std::filesystem::path path_;
};

TEST(Experts, WorkedExampleInWords) {
    const Outcome outcome =
        run(worked({"--ctas", "2", "--next", "64,0", "--split", "35,6/35,6", "--sweep",
                    "bm=8,16,32,64", "--element", "65,129,130", "--tpot", "102.10,153.67,150.78"}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* part :
         {"82 live rows of 2 experts (from --counts), expert-major, capacity 128",
          "0 32 64 1 33 65 2 34 66 3 35 67 4 36 68 5 37 69 6 38 7 39",
          "2  2 9       [128, 192)      -1  46 dead rows, 18 of padding  zeroes", "T0 > T2 > T4",
          "T1 > T3 > T5", "6 tiles on 2 CTAs: 3 rounds", "next          14        2     6     6",
          "16,770  33,154", "the split does not pay",
          "8          11            88      93.2 %         22        277        70"})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
}

TEST(Experts, TheWholeOrderOfTheListIsInTheJson) {
    const Json json = document(worked({}));
    const JsonArray& ids = json.find("list")->find("sorted_ids")->as_array();
    const std::int64_t last[] = {28, 60, 29, 61, 30, 62, 31, 63};
    for (std::size_t i = 0; i < 8; ++i)
        EXPECT_EQ(ids[254 + i].as_int(), last[i]);
    EXPECT_TRUE(json.find("problem")->find("small_batch_order")->as_bool());
    EXPECT_TRUE(json.find("problem")->find("top_k")->is_null());
}

TEST(Experts, EveryLayoutAnswers) {
    for (const char* layout :
         {"expert-major", "rank-major", "endpoints", "aligned-end", "token-major"}) {
        const Json json = document(worked({"--layout", layout}));
        EXPECT_EQ(at(json, "rows", "live_rows"), 82) << layout;
        const Outcome page = run(worked({"--layout", layout, "--as", "html"}));
        EXPECT_TRUE(page.out.starts_with("<!doctype html>")) << layout;
    }
}

TEST(Experts, EndpointsOfTheWorkedExample) {
    const Json json =
        document({"experts", "--counts", "96,0,129,1", "--layout", "endpoints", "--align", "128"});
    const JsonArray& start = json.find("rows")->find("start")->as_array();
    const JsonArray& end = json.find("rows")->find("end")->as_array();
    const std::int64_t starts[] = {0, 128, 128, 384}, ends[] = {96, 128, 257, 385};
    for (std::size_t e = 0; e < 4; ++e) {
        EXPECT_EQ(start[e].as_int(), starts[e]);
        EXPECT_EQ(end[e].as_int(), ends[e]);
    }
}

TEST(Experts, EvenHalvesOfCountsHalveEachExpert) {
    const Json json = document(worked({"--split", "even"}));
    EXPECT_EQ(at(*json.find("split"), "halves", "tiles"), 8);
    EXPECT_EQ(at(*json.find("split"), "first", "live_rows"), 41);
}

TEST(Experts, CountsOfAFileAreThoseOfTheFlag) {
    for (const char* text : {"70\n12\n", " 70, 12", "[70, 12]"}) {
        const FileOf file(text);
        const std::string path = file.path();
        const Json json = document({"experts", "--counts-file", path.c_str(), "--capacity", "128",
                                    "--hidden", "256", "--width", "128"});
        EXPECT_EQ(at(json, "rows", "positions"), 445) << text;
    }
}

TEST(Experts, DistributionsDrawTheirTokens) {
    for (const char* how : {"uniform", "zipf:0.8", "skew:3"}) {
        const Json json = document({"experts", "--distribution", how, "--tokens", "32", "--experts",
                                    "64", "--top-k", "6", "--layout", "endpoints", "--align", "16",
                                    "--bm", "16", "--split", "even"});
        EXPECT_EQ(at(json, "rows", "live_rows"), 192) << how;
        EXPECT_EQ(json.find("rows")->find("counts")->as_array().size(), 64u);
        EXPECT_EQ(at(*json.find("split"), "first", "tokens"), 16) << how;
        EXPECT_EQ(at(json, "capacity", "compact"), 192) << how;
    }
    const FileOf file("9 1 0 0");
    const std::string how = "measured:" + file.path();
    const Json json = document({"experts", "--distribution", how.c_str(), "--experts", "4",
                                "--top-k", "1", "--tokens", "1000"});
    const JsonArray& counts = json.find("rows")->find("counts")->as_array();
    EXPECT_NEAR(static_cast<double>(counts[0].as_int()), 900, 50);
    EXPECT_EQ(counts[2].as_int(), 0);
}

TEST(Experts, RanksShareTheExperts) {
    std::int64_t rows = 0;
    for (const char* rank : {"0", "1", "2", "3"}) {
        const Json json =
            document({"experts", "--distribution", "uniform", "--experts", "64", "--top-k", "6",
                      "--tokens", "32", "--ranks", "4", "--rank", rank, "--rank-tokens", "8"});
        EXPECT_EQ(json.find("rows")->find("counts")->as_array().size(), 16u);
        EXPECT_EQ(at(json, "capacity", "tight"), 4 * 8 * 6);
        rows += at(json, "rows", "live_rows");
    }
    EXPECT_EQ(rows, 32 * 6);
}

TEST(Experts, ARunOfAModelIsRecorded) {
    const Json json = document({"experts", "--model", "models/tiny", "-p", "A fox is an animal.",
                                "--layer", "2", "--bm", "16", "--threads", "1"});
    const std::int64_t tokens = at(json, "problem", "tokens");
    EXPECT_GT(tokens, 3);
    EXPECT_EQ(at(json, "rows", "live_rows"), tokens * at(json, "problem", "top_k"));
    EXPECT_EQ(at(json, "problem", "experts"), 8);
    EXPECT_EQ(json.find("problem")->find("format")->as_string(), "bf16");
}

TEST(Experts, FloorsAreThoseOfTheMachinesOfTheGraph) {
    const auto problem = [](std::vector<const char*> more) {
        std::vector<const char*> all = {"experts", "--counts", "70,12", "--as", "json"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome shown = run(all);
        EXPECT_EQ(shown.status, 0) << shown.err;
        const auto json = parse_json(shown.out, "experts");
        EXPECT_TRUE(json);
        return std::pair{json->find("problem")->find("gbs")->as_double(),
                         json->find("problem")->find("tflops")->as_double()};
    };
    EXPECT_EQ(problem({}), std::pair(4460.0, 1300.0));
    EXPECT_EQ(problem({"--format", "bf16"}), std::pair(4460.0, 754.0));
    EXPECT_EQ(problem({"--format", "nvfp4"}), std::pair(4460.0, 754.0)); // beside bf16 activations
    EXPECT_EQ(problem({"--machine", "b300"}), std::pair(8000.0, 4500.0));
    EXPECT_EQ(problem({"--gbs", "1000", "--tflops", "2"}), std::pair(1000.0, 2.0));
}

TEST(Experts, RefusesCountsThatCannotBe) {
    const auto refuse = [](const char* counts, const std::vector<std::string>& fragments) {
        expect_refused(run({"experts", "--counts", counts, "--capacity", "128"}), 2, fragments);
    };
    refuse("70,129", {"--counts: expert 1", "at most 128 rows", "got 129"});
    refuse("70,-1", {"--counts: expert 1", "0 rows or more", "got -1"});
    refuse("70,x", {"--counts: expert 1", "expected a number", "'x'"});
    refuse("70,1.5", {"--counts: expert 1", "expected a number", "'1.5'"});
    refuse("70,99999999999999999999", {"--counts: expert 1", "expected a number"});
    refuse(",", {"--counts", "at least one expert"});
    expect_refused(run({"experts", "--counts", "2147483647,1", "--capacity", "2147483647"}), 2,
                   {"--counts", "2147483647 rows together", "got 2147483648"});
    expect_refused(run({"experts", "--counts", "2000000000,2000000000,2000000000"}), 2,
                   {"--counts", "2147483647 rows together"});
    expect_refused(run({"experts", "--counts", "3000000000"}), 2, {"--counts", "got 3000000000"});
    expect_refused(run({"experts", "--counts", "9,9", "--capacity", "12", "--top-k", "1"}), 2,
                   {"--counts", "at most 12 tokens", "got 18 rows"});
}

TEST(Experts, RefusesWhatDoesNotGoTogether) {
    expect_refused(run({"experts"}), 2, {"one of --counts", "got none"});
    expect_refused(run({"experts", "--counts", "1", "--distribution", "uniform"}), 2,
                   {"got --counts and --distribution"});
    expect_refused(run({"experts", "--counts", "1", "--preset", "36B"}), 2, {"36B", "35B-A3B"});
    expect_refused(run({"experts", "--counts", "1", "--preset", "0.8B"}), 2,
                   {"0.8B", "no experts", "--width"});
    expect_refused(run({"experts", "--counts", "1", "--layout", "expert"}), 2, {"--layout"});
    expect_refused(run({"experts", "--distribution", "normal"}), 2, {"uniform, zipf:A", "normal"});
    expect_refused(run({"experts", "--distribution", "zipf:-1"}), 2, {"zipf: expected 0", "-1"});
    expect_refused(run({"experts", "--distribution", "skew:99"}), 2, {"skew: expected 1 to 32"});
    expect_refused(run({"experts", "--distribution", "uniform", "--ranks", "3"}), 2,
                   {"--ranks", "divisor of the 256 experts", "got 3"});
    expect_refused(run({"experts", "--distribution", "uniform", "--ranks", "2", "--rank", "2"}), 2,
                   {"--rank", "0 to 1", "got 2"});
    expect_refused(run({"experts", "--model", "models/none", "-p", "x"}), 1, {"models/none"});
    expect_refused(run({"experts", "--model", "models/tiny", "-p", "x", "--layer", "99"}), 2,
                   {"--layer", "got 99"});
    expect_refused(run(worked({"--split", "35,6"})), 2, {"--split", "A,B/C,D"});
    expect_refused(run(worked({"--split", "35,6/35,5"})), 2, {"split: expert 1", "6 + 5"});
    expect_refused(run(worked({"--next", "1"})), 2, {"--next", "2 experts", "got 1"});
    expect_refused(run(worked({"--sweep", "bk=1"})), 2, {"--sweep", "bk=1"});
    expect_refused(run(worked({"--sweep", "bm="})), 2, {"--sweep", "got none"});
    expect_refused(run(worked({"--element", "1,2"})), 2, {"--element", "three numbers", "1,2"});
    expect_refused(run(worked({"--tpot", "1,2,0"})), 2, {"--tpot", "above 0"});
    expect_refused(run(worked({"--tpot", "1,2,inf"})), 2, {"--tpot", "at most 1e9"});
    expect_refused(run(worked({"--bm", "0"})), 2, {"--bm", "0 not in range 1"});
    expect_refused(run(worked({"--bn", "-3"})), 2, {"--bn", "-3 not in range 1"});
    expect_refused(run(worked({"--sweep", "bm=0,8"})), 2, {"tile rows (BM)", "got 0"});
    expect_refused(run(worked({"--gbs", "nan"})), 2, {"--gbs: expected 1e-06 to 1e9, got nan"});
    expect_refused(run(worked({"--tflops", "0"})), 2, {"--tflops", "got 0"});
    expect_refused(run(worked({"--launch-us", "inf"})), 2, {"--launch-us", "got inf"});
    expect_refused(run(worked({"--machine", "h300"})), 2, {"machine: expected h200", "h300"});
    expect_refused(run(worked({"--rank", "5"})), 2, {"--rank: expected 0 to 0, got 5"});
    expect_refused(run(worked({"--layout", "aligned-end", "--align", "96"})), 2,
                   {"multiple of BM 64", "96"});
    expect_refused(run({"experts", "--counts", "70,12", "--capacity", "128", "--top-k", "2",
                        "--rank-tokens", "40"}),
                   2, {"--rank-tokens", "got 40", "80 rows", "82 came"});
}

} // namespace
} // namespace lr::cli
