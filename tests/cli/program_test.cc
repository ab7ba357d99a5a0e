// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace lr::cli {
namespace {

namespace fs = std::filesystem;

// A copy of models/tiny that a test may damage.
class TinyCopy {
  public:
    TinyCopy() : folder_(testing::TempDir() + "liverow-cli-" + std::to_string(::getpid())) {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        for (const auto& entry : fs::directory_iterator("models/tiny"))
            fs::copy(entry.path(), folder_);
    }
    ~TinyCopy() { fs::remove_all(folder_); }

    std::string path(const std::string& name = "") const {
        return name.empty() ? folder_ : folder_ + "/" + name;
    }
    std::string text(const std::string& name) const {
        std::ifstream file(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
    }
    void replace(const std::string& name, const std::string& from, const std::string& to) const {
        std::string content = text(name);
        const std::size_t at = content.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        write(name, content.replace(at, from.size(), to));
    }
    Outcome inspect() const { return run({"inspect", folder_.c_str()}); }

  private:
    std::string folder_;
};

TEST(Program, ExplainsItself) {
    EXPECT_EQ(run({"--version"}).status, 0);
    EXPECT_NE(run({"--version"}).out.find("liverow "), std::string::npos);
    const Outcome help = run({"--help"});
    EXPECT_EQ(help.status, 0);
    for (const char* command : {"run", "inspect", "tokenize", "ppl", "synth", "devices"})
        EXPECT_NE(help.out.find(command), std::string::npos) << command;
    const Outcome run_help = run({"run", "--help"});
    EXPECT_NE(run_help.out.find("--precision"), std::string::npos);
    const Outcome licenses = run({"--licenses"});
    EXPECT_NE(licenses.out.find("Boost"), std::string::npos);
    EXPECT_EQ(run({}).status, 2);
}

TEST(Program, ExplainsEveryCommandInGroups) {
    EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
    const Outcome help = run({"help", "run"});
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(help.out, run({"run", "--help"}).out);
    std::size_t last = 0;
    for (const char* heading : {"Prompt:", "Sampling:", "Chat:", "Output:", "Engine:"}) {
        const std::size_t at = help.out.find(std::string("\n\n") + heading + "\n");
        ASSERT_NE(at, std::string::npos) << heading << " in " << help.out;
        EXPECT_GT(at, last);
        last = at;
    }
    EXPECT_NE(help.out.find("--tokens N [128]"), std::string::npos);
    EXPECT_NE(help.out.find("--think on|off|auto [auto]"), std::string::npos);
    for (const char* noise : {"Excludes", "REQUIRED", "INT", "2147483648", "\n\n\n"})
        EXPECT_EQ(help.out.find(noise), std::string::npos) << noise;
    for (const char* command : {"run", "chat", "tokenize", "ppl", "score", "synth"})
        EXPECT_NE(run({"help", command}).out.find(std::string("liverow ") + command + " "),
                  std::string::npos)
            << command;
}

TEST(Program, NamesWhatAWrongWordWasMeantToBe) {
    const auto refused = [](std::vector<const char*> arguments, const std::string& expected) {
        const Outcome outcome = run(std::move(arguments));
        EXPECT_EQ(outcome.status, 2);
        EXPECT_EQ(outcome.err.substr(0, outcome.err.find('\n')), "error: " + expected);
    };
    refused({"run", "models/tiny", "--temprature", "1"},
            "no flag --temprature; did you mean --temperature?");
    refused({"run", "--tokesn=5", "models/tiny"}, "no flag --tokesn; did you mean --tokens?");
    refused({"run", "--modl"}, "no flag --modl");
    refused({"run", "models/tiny", "--frobnicate", "--stpo", "x"}, "no flag --frobnicate");
    refused({"run", "models/tiny", "x", "y"}, "expected no more arguments, got \"x\"");
    refused({"rnu", "models/tiny", "--temp", "1"}, "no command rnu; did you mean run?");
    refused({"help", "tokenise"}, "no command tokenise; did you mean tokenize?");
    refused({"--versoin"}, "no flag --versoin; did you mean --version?");
    EXPECT_NE(run({"dance"}).err.find("no command dance; expected one of run, chat, "),
              std::string::npos);
}

TEST(Program, RunsThePromptAndRepeatsWithASeed) {
    const std::vector<const char*> arguments = {
        "run",    "models/tiny", "-p", "Once upon a time", "-n", "20", "--temp", "0.9",
        "--seed", "4",           "-q"};
    const Outcome first = run(arguments), second = run(arguments);
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_GT(first.out.size(), 20u);
    EXPECT_EQ(first.out, second.out);
    EXPECT_EQ(first.err, "");
}

TEST(Program, SamplesAsTheFlagsAndTheModelSay) {
    const auto used = [](std::vector<const char*> flags) {
        std::vector<const char*> arguments = {"run", "models/tiny", "-p", "Once", "-n", "1"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        const std::string err = run(arguments).err;
        const std::size_t at = err.find("sampling: ");
        return at == std::string::npos ? err : err.substr(at + 10, err.find('\n', at) - at - 10);
    };
    EXPECT_EQ(used({}), "greedy");
    EXPECT_EQ(used({"--temp", "0", "--top-p", "0.5"}), "greedy");
    EXPECT_EQ(used({"--temp", "0.9", "--seed", "7"}), "temperature 0.9, seed 7");
    EXPECT_EQ(used({"--sample"}), "temperature 0.8, top-k 40, top-p 0.95, seed 0");
    EXPECT_EQ(used({"--sample", "--temp", "1.5", "--top-k", "0", "--min-p", "0.1"}),
              "temperature 1.5, top-p 0.95, min-p 0.1, seed 0");
    EXPECT_EQ(used({"--presence-penalty", "1", "--frequency-penalty", "-0.5",
                    "--repetition-penalty", "1.1", "--logit-bias", "5=1,6=-2.5"}),
              "greedy, repetition penalty 1.1, frequency penalty -0.5, presence penalty 1, logit "
              "biases 2");
}

TEST(Program, PenaltiesAndBiasesReachTheDraw) {
    const auto text = [](std::vector<const char*> flags) {
        std::vector<const char*> arguments = {"run", "models/tiny", "-p", "Once upon a time",
                                              "-n",  "24",          "-q"};
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        return run(arguments).out;
    };
    const std::string greedy = text({});
    EXPECT_NE(text({"--repetition-penalty", "1.3"}), greedy);
    EXPECT_NE(text({"--presence-penalty", "2"}), greedy);
    EXPECT_NE(text({"--frequency-penalty", "2"}), greedy);
    EXPECT_EQ(text({"--temp", "3", "--top-k", "1"}), greedy);
    EXPECT_EQ(text({"--temp", "3", "--top-p", "0"}), greedy);
    EXPECT_EQ(text({"--temp", "3", "--min-p", "1"}), greedy);
    // 11 is a comma.
    EXPECT_EQ(text({"--logit-bias", "11=100"}), std::string(24, ',') + "\n");
}

TEST(Program, PrintsLogProbabilities) {
    const Outcome outcome = run({"run", "models/tiny", "--ids", "7455,1", "-n", "3", "--logprobs",
                                 "2", "-q", "--ignore-eos", "--logit-bias", "11=100"});
    expect_refused(outcome, 2, {"token 0: expected an id in 0..4095, got 7455"});
    const Outcome two = run({"run", "models/tiny", "-p", "Once upon a time", "-n", "2",
                             "--logprobs", "2", "-q", "--logit-bias", "198=100"});
    ASSERT_EQ(two.status, 0) << two.err;
    EXPECT_EQ(std::count(two.out.begin(), two.out.end(), '\n'), 2 + 1 + 2) << two.out;
    // The forced token's own log-probability, not the biased one: it is not the likeliest.
    EXPECT_NE(two.out.find("\n198 \"\\n\"  -"), std::string::npos) << two.out;
    EXPECT_NE(two.out.find(" | 11 \",\" -0.697"), std::string::npos) << two.out;
}

TEST(Program, TreatsControlTokensInAPromptAsTextUnlessAsked) {
    const auto ids_of = [](std::vector<const char*> extra) {
        std::vector<const char*> arguments = {"run",          "models/tiny", "-p",
                                              "<|im_start|>", "-n",          "0"};
        arguments.insert(arguments.end(), extra.begin(), extra.end());
        return run(arguments).err;
    };
    EXPECT_NE(ids_of({"--special"}).find("prefill 1 tokens"), std::string::npos);
    EXPECT_EQ(ids_of({}).find("prefill 1 tokens"), std::string::npos);
}

TEST(Program, WritesLogitsAsNpy) {
    const std::string path = testing::TempDir() + "liverow-logits.npy";
    const Outcome outcome = run({"run", "models/tiny", "--ids", "1,2,3", "-n", "3", "--logits",
                                 path.c_str(), "-q", "--ignore-eos"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    // Three prompt positions and two generated ones: the last token is not fed back.
    EXPECT_NE(bytes.find("'shape': (5, 4096)"), std::string::npos);
    EXPECT_EQ(bytes.size(), 128u + 5 * 4096 * 4);
    fs::remove(path);
}

TEST(Program, SaysTheSameOnSeveralRanks) {
    const auto say = [](std::vector<const char*> ranks) {
        std::vector<const char*> arguments = {"run", "models/tiny", "-p",          "Once upon",
                                              "-n",  "12",          "--precision", "f32"};
        arguments.insert(arguments.end(), ranks.begin(), ranks.end());
        return run(std::move(arguments));
    };
    const Outcome one = say({});
    const Outcome four = say({"--tensor-parallel-size", "2", "--ep", "2"});
    EXPECT_EQ(four.status, 0) << four.err;
    EXPECT_EQ(four.out, one.out);
    EXPECT_NE(four.err.find(", 4 ranks"), std::string::npos) << four.err;
    EXPECT_EQ(one.err.find("ranks"), std::string::npos) << one.err;
}

TEST(Program, RefusesBadFlags) {
    expect_refused(run({"run"}), 2, {"MODEL is required"});
    expect_refused(run({"run", "models/tiny", "--frobnicate"}), 2, {"--frobnicate"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--ids", "1"}), 2, {"excludes"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "-n", "-1"}), 2, {"--tokens"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--temp", "-0.5"}), 2,
                   {"temperature: expected 0..100, got -0.5"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--temp", "nan"}), 2,
                   {"temperature: expected 0..100, got nan"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--temp", "1", "--top-p", "-1"}), 2,
                   {"top-p: expected 0..1, got -1"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--repetition-penalty", "0"}), 2,
                   {"repetition penalty: expected 0.01..100, got 0"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--top-k", "5"}), 2,
                   {"--top-k", "expected --temp or --sample"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--logprobs", "21"}), 2, {"--logprobs"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--logit-bias", "4090=1"}), 2,
                   {"logit bias: expected an id in 0..4085, got 4090"});
    for (const char* bias : {"5", "five=1", "5=", "=1", "5=1=2", "5=1x"})
        expect_refused(run({"run", "models/tiny", "-p", "x", "--logit-bias", bias}), 2,
                       {"--logit-bias: expected ID=VALUE pairs", bias});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--precision", "fp4"}), 2,
                   {"--precision", "fp4"});
    expect_refused(run({"run", "models/tiny", "--ids", "1,two,3", "-q"}), 2,
                   {"--ids: expected numbers such as 1,2,3, got \"two\" at item 2"});
    expect_refused(run({"run", "models/tiny", "--ids", "1,4096", "-q"}), 2,
                   {"token 1: expected an id in 0..4095, got 4096"});
    expect_refused(run({"run", "models/tiny", "--ids", "1,,2", "-q"}), 2, {"got \"\" at item 2"});
    expect_refused(run({"run", "models/tiny", "--ids", "1, 2", "-q"}), 2, {"got \" 2\" at item 2"});
    expect_refused(run({"run", "models/tiny", "-f", "docs", "-q"}), 2,
                   {"docs: expected a regular file, got a folder"});
    expect_refused(run({"run", "models/tiny", "-p", "", "-q"}), 2, {"at least one token"});
    expect_refused(run({"run", "models/tiny", "-p", "\xff", "-q"}), 2, {"UTF-8"});
    expect_refused(run({"run", "models/tiny", "-p", "one two three four", "--context", "2", "-q"}),
                   2, {"prompt: expected at most the context of 2 tokens, got"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--logits", "/no/such/place.npy", "-q"}),
                   2, {"/no/such/place.npy: cannot be opened for writing"});
    expect_refused(run({"run", "models/tiny", "-f", "no-such-file", "-q"}), 1,
                   {"no-such-file: cannot be opened"});
    expect_refused(run({"ppl", "models/tiny", "no-such-file"}), 1,
                   {"no-such-file: cannot be opened"});
    expect_refused(run({"synth", "made-nowhere", "--preset", "36B"}), 2,
                   {"preset: expected one of 0.8B", "got \"36B\""});
    expect_refused(run({"synth", "made-nowhere"}), 2, {"--preset", "--config"});
    expect_refused(run({"dance"}), 2, {"dance"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--tp", "3", "-q"}), 2,
                   {"tp=3: vocabulary=4096 cannot be divided evenly"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--tp", "17", "-q"}), 2, {"--tp"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--tp", "8", "--ep", "8", "-q"}), 2,
                   {"expected tp * ep in 1..16, got tp=8, ep=8"});
}

TEST(Program, CountsDecodeStepsAndNotTheTokenOfThePrompt) {
    const auto report = [](const char* tokens) {
        return run({"run", "models/tiny", "-p", "Once", "-n", tokens, "--ignore-eos"}).err;
    };
    EXPECT_NE(report("1").find("decode 0 steps, - tok/s"), std::string::npos) << report("1");
    EXPECT_NE(report("5").find("decode 4 steps, "), std::string::npos) << report("5");
}

TEST(Program, SaysWhenItsOutputCannotBeWritten) {
    std::fflush(stdout);
    const int saved = ::dup(1), full = ::open("/dev/full", O_WRONLY);
    ASSERT_TRUE(saved >= 0 && full >= 0);
    ::dup2(full, 1);
    testing::internal::CaptureStderr();
    const char* arguments[] = {"liverow", "run", "models/tiny", "-p", "hi", "-n", "4", "-q"};
    const int status = run_program(8, arguments);
    const std::string err = testing::internal::GetCapturedStderr();
    std::clearerr(stdout);
    ::dup2(saved, 1);
    ::close(saved);
    ::close(full);
    EXPECT_EQ(status, 1);
    EXPECT_NE(err.find("standard output: cannot be written: No space left"), std::string::npos)
        << err;
}

TEST(Program, RefusesBadFolders) {
    expect_refused(run({"inspect", "no-such-folder"}), 1, {"no-such-folder: no such model folder"});
    expect_refused(run({"inspect", "README.md"}), 2, {"expected a model folder"});
    expect_refused(run({"inspect", "docs"}), 1, {"docs/config.json: cannot be opened"});
}

TEST(Program, NamesWhatIsWrongWithAConfig) {
    const TinyCopy tiny;
    const std::string config = tiny.text("config.json");
    const auto expect_config = [&](const std::string& from, const std::string& to,
                                   const std::vector<std::string>& fragments) {
        tiny.replace("config.json", from, to);
        expect_refused(tiny.inspect(), 1, fragments);
        tiny.write("config.json", config);
    };
    expect_config("\"hidden_size\": 256", "\"hidden_size\": \"256\"",
                  {"config.json: text_config.hidden_size: expected an integer", "got \"256\""});
    expect_config("\"hidden_size\": 256", "\"hidden_size\": 0", {"hidden_size", "got 0"});
    expect_config("\"hidden_size\": 256", "\"hidden_size\": 512",
                  {"expected shape [4096, 512], got [4096, 256]"});
    expect_config("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9",
                  {"num_experts_per_tok", "got 9"});
    expect_config("qwen3_5_moe_text", "llama", {"model_type", "got \"llama\"", "Qwen3.5 family"});
    expect_config("\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 3",
                  {"linear_num_value_heads=3 must be a multiple of linear_num_key_heads=2"});
    expect_config("\"num_hidden_layers\": 8", "\"num_hidden_layers\": 9",
                  {"layer_types: expected num_hidden_layers=9 entries, got 8"});
    // The top-level key counts, not text_config's.
    tiny.write("config.json",
               "{\"tie_word_embeddings\": false," + config.substr(config.find('{') + 1));
    tiny.replace("config.json", "\n  \"tie_word_embeddings\": true,", "");
    expect_refused(tiny.inspect(), 1,
                   {"tie_word_embeddings=false: expected lm_head.weight, found none"});
    tiny.write("config.json", config);
    expect_config("\"hidden_size\": 256", "\"hidden_size\": 256, \"hidden_size\": 256",
                  {"config.json", "hidden_size"});
    tiny.write("config.json", config.substr(0, 100));
    expect_refused(tiny.inspect(), 1, {"config.json:"});
}

TEST(Program, NamesWhatIsWrongWithWeights) {
    const TinyCopy tiny;
    const std::string index = "model.safetensors.index.json";
    const std::string shard = "model-00002-of-00002.safetensors";
    const std::string index_text = tiny.text(index), shard_text = tiny.text(shard);
    // A weight that the model needs is renamed in header and index: missing, and unknown besides.
    const std::string name = "model.language_model.norm.weight";
    tiny.replace(index, name, "model.language_model.nrom.weight");
    expect_refused(tiny.inspect(), 1, {"nrom.weight"});
    tiny.replace(shard_text.find(name) != std::string::npos ? shard
                                                            : "model-00001-of-00002.safetensors",
                 name, "model.language_model.nrom.weight");
    expect_refused(tiny.inspect(), 1, {"1 weights are missing: " + name});
    tiny.write(index, index_text);
    tiny.write(shard, shard_text);
    // A shard cut short.
    fs::resize_file(tiny.path(shard), shard_text.size() - 1000);
    expect_refused(tiny.inspect(), 1, {shard, "expected", std::to_string(shard_text.size())});
    // A missing one.
    fs::remove(tiny.path(shard));
    expect_refused(tiny.inspect(), 1, {shard});
}

TEST(Program, NamesWhatIsWrongWithATokenizer) {
    const TinyCopy tiny;
    const auto run_it = [&] {
        return run({"run", tiny.path().c_str(), "-p", "x", "-n", "1", "-q"});
    };
    const std::string tokenizer = tiny.text("tokenizer.json");
    tiny.replace("tokenizer.json", "\"BPE\"", "\"Unigram\"");
    expect_refused(run_it(), 1, {"tokenizer.json", "Unigram"});
    tiny.write("tokenizer.json", tokenizer.substr(0, 5000));
    expect_refused(run_it(), 1, {"tokenizer.json:"});
    fs::remove(tiny.path("tokenizer.json"));
    fs::create_directory(tiny.path("tokenizer.json"));
    expect_refused(run_it(), 2, {"tokenizer.json: expected a regular file, got a folder"});
    fs::remove(tiny.path("tokenizer.json"));
    expect_refused(run_it(), 1, {"tokenizer.json: not found; give the prompt as token ids"});
}

} // namespace
} // namespace lr::cli
