// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"
#include "tests/cli/command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lr::cli {
namespace {

class TextFile {
  public:
    explicit TextFile(const std::string& text)
        : path_(testing::TempDir() + "liverow-tokenize.txt") {
        std::ofstream(path_, std::ios::binary) << text;
    }
    ~TextFile() { std::filesystem::remove(path_); }
    const char* path() const { return path_.c_str(); }

  private:
    std::string path_;
};

std::string output(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"tokenize", "models/tiny"});
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
}

TEST(Tokenize, ShowsEachTokenReadably) {
    EXPECT_EQ(output({"-p", "Once \xC3\xA9\n<|im_end|>", "--special"}),
              " place       id  kind     text\n"
              "     0     2551           \"On\"\n"
              "     1      364           \"ce\"\n"
              "     2      220           \" \"\n"
              "     3      127           \"\\xC3\"\n"
              "     4      102           \"\\xA9\"\n"
              "     5      198           \"\\n\"\n"
              "     6     4062  control  \"<|im_end|>\"\n"
              "7 tokens, 18 bytes, 2.57 bytes a token\n");
    EXPECT_EQ(output({"-p", ""}), " place       id  kind     text\n0 tokens, 0 bytes\n");
    EXPECT_NE(output({"-p", "<think>"}).find("4084  added    \"<think>\""), std::string::npos);
}

TEST(Tokenize, PrintsIdsCountOrJson) {
    EXPECT_EQ(output({"-p", "Once upon", "--ids"}), "2551,364,627\n");
    EXPECT_EQ(output({"-p", "Once upon", "--count"}), "3\n");
    const Result<Json> json = parse_json(output({"-p", "a\xC3\xA9", "--json"}), "output");
    ASSERT_TRUE(json.has_value());
    EXPECT_EQ(to_json_string(*json->find("ids")), "[64,127,102]");
    EXPECT_EQ(json->find("count")->as_int(), 3);
    EXPECT_EQ(json->find("bytes")->as_int(), 3);
    EXPECT_EQ(to_json_string(json->find("tokens")->as_array()[1]),
              "{\"id\":127,\"text\":\"\xEF\xBF\xBD\",\"bytes\":[195],\"special\":false}");
}

TEST(Tokenize, TakesControlTokensForTextUnlessAsked) {
    EXPECT_EQ(output({"-p", "<|im_end|>", "--ids", "--special"}), "4062\n");
    EXPECT_EQ(output({"-p", "<|im_end|>", "--ids"}).find("4062"), std::string::npos);
}

TEST(Tokenize, DecodesIds) {
    EXPECT_EQ(output({"--decode", "2551,364,627,4062"}), "Once upon\n");
    EXPECT_EQ(output({"--decode", "2551,364,627,4062", "--special"}), "Once upon<|im_end|>\n");
}

TEST(Tokenize, AnswersLinesOfJson) {
    const TextFile lines("\"Once upon\"\n[2551,364,4062]\n\"\"\n[]\n\"<|im_end|>\"\n");
    EXPECT_EQ(output({"--batch", "--special", "-f", lines.path()}),
              "[2551,364,627]\n\"Once<|im_end|>\"\n[]\n\"\"\n[4062]\n");
    const Outcome outcome = run({"tokenize", "models/tiny", "--batch", "-f", lines.path()});
    EXPECT_NE(outcome.err.find("5 lines, "), std::string::npos) << outcome.err;
}

TEST(Tokenize, SkipsBlankLinesAndStillCountsThem) {
    const TextFile lines("\n\"Once upon\"\r\n \t\n[2551,364]");
    EXPECT_EQ(output({"--batch", "-f", lines.path()}), "[2551,364,627]\n\"Once\"\n");
    const TextFile broken("\n\n[1");
    expect_refused(run({"tokenize", "models/tiny", "--batch", "-f", broken.path()}), 2,
                   {"line 3:1:3: expected the rest of the document"});
}

TEST(Tokenize, ReadsATokenizerWithoutAModel) {
    const Outcome outcome =
        run({"tokenize", "tests/text/data/tokenizer.json", "-p", "the heron", "--count"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out, "2\n");
}

TEST(Tokenize, RefusesWhatItCannotDo) {
    const char* model = "models/tiny";
    expect_refused(run({"tokenize"}), 2, {"MODEL is required"});
    expect_refused(run({"tokenize", "no-such-folder", "-p", "x"}), 1, {"no-such-folder"});
    expect_refused(run({"tokenize", model, "-p", "\xFF"}), 2, {"UTF-8", "byte 0"});
    expect_refused(run({"tokenize", model, "-p", "x", "-f", "y"}), 2, {"excludes"});
    expect_refused(run({"tokenize", model, "-p", "x", "--ids", "--json"}), 2, {"excludes"});
    expect_refused(run({"tokenize", model, "-f", "no-such-file"}), 1, {"no-such-file"});
    expect_refused(run({"tokenize", model, "--decode", "1,x"}), 2,
                   {"--decode: expected numbers such as 1,2,3, got \"x\" at item 2"});
    expect_refused(run({"tokenize", model, "--decode", "1,4086"}), 2,
                   {"--decode: token 1: expected an id in 0..4085, got 4086"});
    const auto refused_line = [&](const std::string& line, const std::string& expected) {
        const TextFile file(line);
        expect_refused(run({"tokenize", model, "--batch", "-f", file.path()}), 2, {expected});
    };
    refused_line("{}", "line 1: expected a string or an array of ids, got an object of 0 members");
    refused_line("[1,-1]", "line 1: [1]: expected an integer from 0 to 4085, got -1");
    refused_line("[1", "line 1:1:3: expected the rest of the document");
    refused_line("\"\\ud800\"", "line 1:1:");
}

} // namespace
} // namespace lr::cli
