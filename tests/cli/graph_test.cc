// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "tests/cli/command.h"
#include "tests/cli/spec_tables.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace lr::cli {
namespace {

// A row of `graph --as table`: number, kernel, lane, weight bytes, read, written, (from ranks,)
// FLOPs, floor, bound.
using Rows = std::map<int, std::vector<std::string>>;

Rows rows_of(const std::string& table) {
    Rows rows;
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::vector<std::string> cells;
        for (std::string word; words >> word;)
            cells.push_back(word);
        if (cells.size() >= 8 && std::isdigit(static_cast<unsigned char>(cells[0][0])) &&
            (cells[2] == "main" || cells[2] == "shared"))
            rows[std::stoi(cells[0])] = cells;
    }
    return rows;
}

std::int64_t number(std::string cell) {
    std::erase(cell, ',');
    return cell == "-" ? 0 : std::stoll(cell);
}

Rows table(const SpecTable& spec, const char* format, const char* activations = "quant") {
    const Outcome shown =
        run({"graph", "--preset", spec.preset, "--tp", spec.tp, "--path", spec.path, "--format",
             format, "--context", "8192", "--activations", activations, "--as", "table"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    return rows_of(shown.out);
}

// Which column holds the FLOPs: several ranks have one more.
std::size_t flops_column(const SpecTable& spec) {
    return std::string_view(spec.tp) == "1" ? 6 : 7;
}

TEST(Graph, ReproducesTheShapeTablesOfTheSpec) {
    ASSERT_EQ(kSpecTables.size(), 6u);
    for (const SpecTable& spec : kSpecTables) {
        const Rows rows = table(spec, "nvfp4-mixed");
        EXPECT_EQ(rows.size(), spec.rows.size()) << spec.preset << spec.path;
        for (const SpecRow& row : spec.rows) {
            SCOPED_TRACE(
                fmt::format("{} tp {} {} {}", spec.preset, spec.tp, row.number, row.kernel));
            ASSERT_TRUE(rows.contains(row.number));
            const auto& cells = rows.at(row.number);
            EXPECT_EQ(cells[1], row.kernel);
            // Routed experts NVFP4, the other linears FP8 with a scale for each channel.
            EXPECT_EQ(number(cells[3]),
                      row.per_expert ? row.nvfp4 * spec.experts_per_token : row.fp8_channel);
            if (row.flops != kNotStated) {
                EXPECT_EQ(number(cells[flops_column(spec)]), row.flops);
            }
        }
    }
}

TEST(Graph, WeighsEveryKernelInEveryFormatAsTheSpecDoes) {
    const std::pair<const char*, std::int64_t SpecRow::*> formats[] = {
        {"bf16", &SpecRow::bf16},
        {"fp8-channel", &SpecRow::fp8_channel},
        {"fp8-block", &SpecRow::fp8_block},
        {"nvfp4", &SpecRow::nvfp4}};
    for (const SpecTable& spec : kSpecTables)
        for (const auto& [format, bytes] : formats) {
            const Rows rows = table(spec, format);
            int compared = 0;
            for (const SpecRow& row : spec.rows) {
                if (!rows.contains(row.number)) {
                    // A quantisation that this format needs not, or has made once already.
                    EXPECT_NE(std::string_view(row.kernel).find("quant"), std::string_view::npos)
                        << row.kernel;
                    continue;
                }
                ++compared;
                const auto& cells = rows.at(row.number);
                const std::int64_t times = row.per_expert ? spec.experts_per_token : 1;
                EXPECT_EQ(number(cells[3]), row.*bytes * times)
                    << spec.preset << " tp " << spec.tp << " " << format << " " << row.kernel;
                // Quantising to NVFP4 is another kernel than the table's, to FP8.
                const bool same = cells[1].ends_with("quant") ? cells[1] == row.kernel : true;
                if (row.flops != kNotStated && same) {
                    EXPECT_EQ(number(cells[flops_column(spec)]), row.flops) << row.kernel;
                }
            }
            EXPECT_GE(compared, 18) << format;
        }
}

Json json_of(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "graph");
    arguments.insert(arguments.end(), {"--as", "json"});
    const Outcome shown = run(std::move(arguments));
    EXPECT_EQ(shown.status, 0) << shown.err;
    auto parsed = parse_json(shown.out, "graph");
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return parsed ? std::move(*parsed) : Json();
}

// Node and edge sets are held against the charts by tests/graph/charts_test.cc; here that the tool
// shows them, and marks what the chart has not.
TEST(Graph, ShowsTheEdgesAndMarksTheOneThatTheChartLeavesOut) {
    const Json root = json_of(
        {"--preset", "397B-A17B", "--tp", "2", "--path", "prefill-gdn", "--context", "8192"});
    const Json& section = root.find("sections")->as_array().at(0);
    EXPECT_EQ(section.find("launches")->as_array().size(), 36u);
    std::vector<std::string> added, into_14;
    for (const Json& edge : section.find("edges")->as_array()) {
        const std::string text =
            edge.find("from")->as_string() + ">" + edge.find("to")->as_string();
        if (!edge.find("in_traced_chart")->as_bool())
            added.push_back(text);
        if (edge.find("to")->as_string() == "14")
            into_14.push_back(text);
    }
    EXPECT_EQ(added, std::vector<std::string>{"15>17"});
    EXPECT_EQ(into_14, (std::vector<std::string>{"7>14", "8>14", "10>14", "11>14", "13>14"}));
    const Json& last = section.find("launches")->as_array().back();
    EXPECT_EQ(last.find("name")->as_string(), "moe_tp_allreduce");
    EXPECT_TRUE(last.find("communicates")->as_bool());
    EXPECT_EQ(last.find("work")->find("link_bytes")->as_int(), 8192LL * 4096 * 2);
}

TEST(Graph, ShowsAWholeStepOfAModelFolder) {
    const Json root = json_of({"models/tiny", "-n", "2", "--context", "128"});
    std::vector<std::string> paths;
    for (const Json& section : root.find("sections")->as_array())
        paths.push_back(section.find("path")->as_string());
    EXPECT_EQ(paths,
              (std::vector<std::string>{"prologue", "decode-gdn", "decode-attention", "epilogue"}));
    EXPECT_EQ(root.find("rows")->as_int(), 2);
    EXPECT_GT(root.find("step")->find("floor_us")->as_double(), 0);
}

TEST(Graph, ShowsAPlan) {
    const Json root = json_of({"--preset", "397B-A17B", "--tp", "2", "-n", "54", "--path",
                               "decode-gdn", "--plan", "8+9,23+24+next.1+next.3,13+15"});
    std::vector<std::string> numbers;
    std::int64_t uncounted = 0;
    for (const Json& launch :
         root.find("sections")->as_array().at(0).find("launches")->as_array()) {
        numbers.push_back(launch.find("number")->as_string());
        uncounted += !launch.find("counted")->as_bool();
    }
    EXPECT_EQ(numbers, (std::vector<std::string>{"prev.23+prev.24+1+3",
                                                 "2",
                                                 "4",
                                                 "5",
                                                 "6",
                                                 "7",
                                                 "8+9",
                                                 "10",
                                                 "11",
                                                 "12",
                                                 "13+15",
                                                 "14",
                                                 "16",
                                                 "17",
                                                 "18",
                                                 "19",
                                                 "20",
                                                 "21",
                                                 "22",
                                                 "23+24+next.1+next.3"}));
    EXPECT_EQ(uncounted, 1);
    EXPECT_EQ(root.find("sections")->as_array().at(0).find("launch_count")->as_int(), 19);
}

TEST(Graph, WritesAFlowchart) {
    const Outcome shown = run(
        {"graph", "--preset", "397B-A17B", "--tp", "2", "--path", "decode-gdn", "--as", "mermaid"});
    ASSERT_EQ(shown.status, 0) << shown.err;
    for (const char* line :
         {"flowchart LR\n", "K7[\"7<br/>gdn_packed_recurrent_qk_norm_gating_state_update\"]\n",
          "    K2 -->|\"ba_partial\"| K4\n", "    class K1,K11 comm\n",
          "K7_ssm_state[(\"ssm_state\")] --> K7", "K1 -->|\"R1\"| K11"})
        EXPECT_NE(shown.out.find(line), std::string::npos) << line << "\n" << shown.out;
}

// A step's floor is what DESIGN's table of goals starts from.
TEST(Graph, FloorOfADecodeStepIsThatOfTheDesign) {
    const Json root =
        json_of({"--preset", "35B-A3B", "--format", "fp8-block", "--context", "1024"});
    EXPECT_NEAR(root.find("step")->find("floor_us")->as_double(), 810, 15);
}

class TempFile {
  public:
    TempFile(const char* name, const std::string& text) : path_(testing::TempDir() + name) {
        std::ofstream(path_) << text;
    }
    ~TempFile() { std::remove(path_.c_str()); }
    const char* path() const { return path_.c_str(); }

  private:
    std::string path_;
};

TEST(Graph, TakesAMachineFromAFile) {
    const Json root = json_of({"--preset", "0.8B", "--path", "decode-gdn"});
    Json machine = *root.find("machine");
    std::string text = to_json_string(machine);
    const std::string h200 = "\"h200\"";
    text.replace(text.find(h200), h200.size(), "\"half\"");
    text.replace(text.find("4460"), 4, "2230");
    const TempFile file("half.json", text);
    const Json half =
        json_of({"--preset", "0.8B", "--path", "decode-gdn", "--machine", file.path()});
    EXPECT_EQ(half.find("machine")->find("name")->as_string(), "half");
    EXPECT_GT(half.find("step")->find("floor_us")->as_double(),
              1.9 * root.find("step")->find("floor_us")->as_double());
}

TEST(Graph, ListsFusionsWithWhatATraceSaysOfThem) {
    const Outcome shown =
        run({"graph", "fusions", "--preset", "397B-A17B", "--tp", "2", "-n", "54", "--machine",
             "b300", "--trace", "tests/fixtures/decode_gdn_layer.csv", "--as", "json"});
    ASSERT_EQ(shown.status, 0) << shown.err;
    const auto root = parse_json(shown.out, "fusions");
    ASSERT_TRUE(root) << root.error().message();
    const Json& first = root->find("rewrites")->as_array().at(0);
    EXPECT_EQ(first.find("rewrite")->as_string(), "8+9");
    EXPECT_EQ(first.find("places")->as_array().at(0).find("bytes_saved")->as_int(), 884'736);
    EXPECT_EQ(first.find("traced")->find("on_critical_path")->as_int(), 1);
    const Outcome table = run({"graph", "fusions", "--preset", "35B-A3B"});
    EXPECT_EQ(table.status, 0) << table.err;
    EXPECT_NE(table.out.find("23+24+next.1+next.3  decode-gdn"), std::string::npos) << table.out;
}

TEST(Graph, WritesAPageThatIsComplete) {
    const std::string path = testing::TempDir() + "graph_page.html";
    const Outcome written = run({"graph", "models/tiny", "--as", "html", "-o", path.c_str()});
    ASSERT_EQ(written.status, 0) << written.err;
    EXPECT_EQ(written.out, "");
    std::ifstream file(path);
    const std::string page((std::istreambuf_iterator<char>(file)), {});
    EXPECT_TRUE(page.starts_with("<!doctype html>"));
    EXPECT_TRUE(page.ends_with("</html>\n"));
    std::remove(path.c_str());
    expect_refused(run({"graph", "models/tiny", "-o", "/no/such/folder/x.html"}), 1,
                   {"/no/such/folder"});
}

TEST(Graph, WritesToADeviceAndDoesNotReplaceIt) {
    if (!std::filesystem::is_character_file("/dev/full"))
        GTEST_SKIP() << "no /dev/full";
    // Through a link, which a rename would replace.
    const std::string path = testing::TempDir() + "graph_full";
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/dev/full", path);
    expect_refused(run({"graph", "models/tiny", "-o", path.c_str()}), 1, {"cannot be written"});
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    std::filesystem::remove(path);
    expect_refused(run({"graph", "models/tiny", "-o", testing::TempDir().c_str()}), 1,
                   {"cannot be written"});
}

// A recorded trace begins with the prompts.
TEST(Graph, TakesTheTracesFirstStepOfThePath) {
    std::string rows = "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct\n"
                       "0,0,prefill-gdn,1,cpu,0,1,1,,\n";
    rows += "1,0,decode-gdn,23,cpu,2,3,1,,\n1,0,decode-gdn,24,cpu,3,5,2,,\n";
    const TempFile file("recorded.csv", rows);
    const Outcome shown =
        run({"graph", "fusions", "models/tiny", "--as", "json", "--trace", file.path()});
    ASSERT_EQ(shown.status, 0) << shown.err;
    const auto root = parse_json(shown.out, "fusions");
    ASSERT_TRUE(root) << root.error().message();
    for (const Json& rewrite : root->find("rewrites")->as_array())
        if (rewrite.find("rewrite")->as_string() == "23+24")
            EXPECT_NEAR(rewrite.find("traced")->find("sum_us")->as_double(), 3, 1e-9);
}

TEST(Graph, RefusesTracesOfSomethingElse) {
    const auto fusions = [](const char* trace) {
        return run({"graph", "fusions", "--preset", "35B-A3B", "--trace", trace});
    };
    expect_refused(fusions("./none.csv"), 1, {"./none.csv"});
    const TempFile columns("columns.csv", "step,layer,path\n0,4,decode-gdn\n");
    expect_refused(fusions(columns.path()), 1, {"columns.csv", "nodes"});
    const TempFile foreign(
        "foreign.csv", "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct\n"
                       "0,3,decode-gdn,7,main,0,1,1,,\n");
    expect_refused(fusions(foreign.path()), 1,
                   {"foreign.csv: step 0 layer 3: expected nodes of this graph, got decode-gdn 7"});
    const TempFile empty(
        "empty.csv", "step,layer,path,nodes,lane,start_us,end_us,duration_us,bytes,floor_pct\n");
    expect_refused(fusions(empty.path()), 1, {"empty.csv: expected at least one launch, got none"});
}

TEST(Graph, RefusesWhatItCannotShow) {
    expect_refused(run({"graph"}), 2, {"expected a MODEL folder or --preset, got neither"});
    expect_refused(run({"graph", "models/tiny", "--preset", "0.8B"}), 2, {"got both"});
    expect_refused(run({"graph", "models/tiny", "--format", "bf16"}), 2, {"--format", "MODEL"});
    expect_refused(run({"graph", "--preset", "36B"}), 2, {"preset: expected one of 0.8B", "36B"});
    expect_refused(run({"graph", "no-such-folder"}), 1, {"no-such-folder"});
    expect_refused(run({"graph", "--preset", "0.8B", "--path", "decode-moe"}), 2,
                   {"path: expected one of decode, decode-gdn", "\"decode-moe\""});
    expect_refused(run({"graph", "--preset", "0.8B", "--machine", "h300"}), 2,
                   {"machine: expected h200, b300, cpu or a file", "\"h300\""});
    expect_refused(run({"graph", "--preset", "0.8B", "--machine", "./none.json"}), 1,
                   {"./none.json"});
    const TempFile broken("broken.json", "{\"name\": 3}");
    expect_refused(run({"graph", "--preset", "0.8B", "--machine", broken.path()}), 1,
                   {"broken.json: name: expected a string, got 3"});
    expect_refused(run({"graph", "--preset", "0.8B", "--plan", "8+10"}), 2,
                   {"rewrite: expected one of 8+9", "\"8+10\""});
    expect_refused(run({"graph", "--preset", "35B-A3B", "--plan", "8+9,7+8"}), 2,
                   {"rewrite 7+8: L0.8+9 is already part of another rewrite"});
    expect_refused(run({"graph", "--preset", "0.8B", "--plan", "13+15"}), 2,
                   {"rewrite 13+15: its nodes stand nowhere in this decode step"});
    expect_refused(run({"graph", "--preset", "35B-A3B", "--tp", "3"}), 2, {"tp=3"});
    expect_refused(run({"graph", "--preset", "35B-A3B", "--tp", "17"}), 2, {"--tp", "17"});
    expect_refused(run({"graph", "--preset", "27B", "--ep", "2"}), 2, {"ep=2"});
    expect_refused(run({"graph", "--preset", "35B-A3B", "--format", "fp7"}), 2, {"fp7"});
    expect_refused(run({"graph", "--preset", "0.8B", "--tokens", "5"}), 2, {"--tokens", "--batch"});
    expect_refused(run({"graph", "--preset", "0.8B", "fusions"}), 2, {"stand after `fusions`"});
    expect_refused(
        run({"graph", "--preset", "397B-A17B", "-n", "16777216", "--context", "16777216"}), 2,
        {"2^40 pairs", "16777216 rows of context 16777216"});
    expect_refused(run({"graph", "--preset", "0.8B", "-n", "0"}), 2, {"--batch", "0"});
    expect_refused(run({"graph", "--preset", "0.8B", "--as", "dot"}), 2, {"--as", "dot"});
    expect_refused(run({"graph", "--preset", "0.8B", "--path", "prefill", "-n", "65536"}), 2,
                   {"prefill: batch 65536 * context 8192", "--tokens"});
}

} // namespace
} // namespace lr::cli
