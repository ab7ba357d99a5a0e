// SPDX-License-Identifier: Apache-2.0
//
// The commands that answer, as a user types them: run, run --chat, run --json, chat, score, ppl
// with models/tiny.
#include "cli/terminal.h"
#include "core/json.h"
#include "tests/cli/command.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <pthread.h>
#include <thread>
#include <unistd.h>

namespace lr::cli {
namespace {

// While it lives, standard input is a pipe that was fed this text (and is closed unless `open`).
class Typed {
  public:
    explicit Typed(const std::string& text, bool open = false) : saved_(dup(STDIN_FILENO)) {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        into_ = ends[1];
        say(text);
        if (!open)
            shut();
        forget_end();
    }
    ~Typed() {
        shut();
        dup2(saved_, STDIN_FILENO);
        close(saved_);
        forget_end();
    }
    void say(const std::string& text) const {
        EXPECT_EQ(write(into_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

  private:
    static void forget_end() {
        std::clearerr(stdin);
        std::cin.clear();
    }
    void shut() {
        if (into_ >= 0)
            close(into_);
        into_ = -1;
    }
    int saved_, into_ = -1;
};

std::string file_with(const std::string& name, const std::string& text) {
    const std::string path =
        testing::TempDir() + "liverow-answer-" + std::to_string(getpid()) + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

Json parsed(const std::string& text) {
    auto json = parse_json(text, "stdout");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json();
}

Json choice(const Json& answer, std::size_t index = 0) {
    return (*answer.as_object().find("choices")).as_array()[index];
}

std::string member(const Json& json, const char* name) {
    const Json* found = json.as_object().find(name);
    return found == nullptr     ? "absent"
           : found->is_string() ? found->as_string()
                                : to_json_string(*found);
}

TEST(AnswerCommands, RepeatedFlagsDoNotSwallowTheModel) {
    EXPECT_EQ(run({"run", "--stop", "zzz", "models/tiny", "-p", "Hi", "-n", "2", "-q"}).status, 0);
    EXPECT_EQ(
        run({"run", "--logit-bias", "5=-1,6=1", "models/tiny", "-p", "Hi", "-n", "2", "-q"}).status,
        0);
}

TEST(AnswerCommands, AStopStringIsNotShown) {
    const Outcome whole = run({"run", "models/tiny", "-p", "Once upon a time", "-n", "12", "-q"});
    ASSERT_EQ(whole.status, 0);
    const std::string stop = whole.out.substr(8, 5); // in the middle of some tokens
    const Outcome cut = run(
        {"run", "models/tiny", "-p", "Once upon a time", "-n", "12", "-q", "--stop", stop.c_str()});
    EXPECT_EQ(cut.out, whole.out.substr(0, whole.out.find(stop)) + "\n");
}

TEST(AnswerCommands, LengthsEndWithTheContext) {
    const Outcome plain = run({"run", "models/tiny", "-p", "Hi", "-n", "4000000", "--ignore-eos",
                               "--context", "24", "--json", "-q"});
    ASSERT_EQ(plain.status, 0) << plain.err;
    EXPECT_EQ(member(choice(parsed(plain.out)), "finish_reason"), "length");
}

TEST(AnswerCommands, JsonHasWhatClientsAskFor) {
    const Outcome outcome = run({"run", "models/tiny", "-p", "Once upon", "-n", "3", "--choices",
                                 "2", "--temp", "1", "--logprobs", "2", "--json", "-q"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json answer = parsed(outcome.out);
    EXPECT_EQ(member(answer, "object"), "text_completion");
    EXPECT_EQ(member(answer, "id").substr(0, 5), "cmpl-");
    EXPECT_GT(std::stoll(member(answer, "created")), 1700000000);
    for (std::size_t c : {0u, 1u}) {
        const Json one = choice(answer, c);
        EXPECT_EQ(member(one, "index"), std::to_string(c));
        const Json& logprobs = *one.as_object().find("logprobs");
        EXPECT_EQ(logprobs.as_object().find("tokens")->as_array().size(), 3u);
        EXPECT_EQ(to_json_string(logprobs.as_object().find("text_offset")->as_array()[0]), "0");
    }
}

TEST(AnswerCommands, AChatAnswersInJson) {
    const Outcome outcome =
        run({"run", "models/tiny", "--chat", "-p", "What is a fox?", "-n", "6", "--json", "-q"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json answer = parsed(outcome.out);
    EXPECT_EQ(member(answer, "object"), "chat.completion");
    const Json first = choice(answer);
    const Json& message = *first.as_object().find("message");
    EXPECT_EQ(member(message, "role"), "assistant");
    EXPECT_NE(member(message, "content"), "");
}

TEST(AnswerCommands, AnEmptyPromptOfATemplateIsRefused) {
    const std::string path = file_with("empty.jinja", "\n");
    expect_refused(
        run({"run", "models/tiny", "--chat", "-p", "hi", "--chat-template", path.c_str(), "-q"}), 2,
        {"chat template: expected a prompt of at least one token"});
    const Typed typed("hi\n");
    const Outcome chat = run({"chat", "models/tiny", "--chat-template", path.c_str()});
    EXPECT_EQ(chat.status, 0);
    EXPECT_NE(chat.err.find("expected a prompt of at least one token"), std::string::npos);
}

TEST(AnswerCommands, ContradictionsAreRefused) {
    expect_refused(run({"chat", "models/tiny", "--greedy", "--temp", "1"}), 2, {"--greedy"});
    expect_refused(run({"chat", "models/tiny", "--greedy", "--sample"}), 2, {"--greedy"});
    expect_refused(run({"run", "models/tiny", "--chat", "-p", "x", "--logprobs", "1"}), 2,
                   {"--logprobs: expected --json"});
    expect_refused(run({"run", "models/tiny", "--chat", "-p", "x", "--special"}), 2, {"--special"});
    expect_refused(run({"run", "models/tiny", "-p", "x", "--template-kwargs", "{}"}), 2,
                   {"--template-kwargs speak of a conversation; expected --chat"});
    EXPECT_EQ(run({"chat", "models/tiny", "--logprobs", "1"}).status, 2);
    EXPECT_EQ(run({"score", "models/tiny", "--chat-template", "x"}).status, 2);
}

TEST(AnswerCommands, AChatTakesSettingsOneByOne) {
    const Typed typed("/set seed nan\n/set top-k 2.7\n/set temp nan\n/set tokens -1\n/set seed "
                      "18446744073709551615\n/set tokens 3\n/retry\n/stats on\nHi\n/undo\n/exit\n");
    const Outcome chat = run({"chat", "models/tiny", "--temp", "0.7"});
    EXPECT_EQ(chat.status, 0);
    for (const char* expected :
         {"temperature 0.7, top-k 40, top-p 0.95, seed 0",
          "/set: expected NAME and a whole number, got \"seed nan\"",
          "/set: expected NAME and a whole number, got \"top-k 2.7\"",
          "/set: expected NAME and a number, got \"temp nan\"",
          "/set tokens: expected 0 or more, got -1", "/retry: nothing has been asked"})
        EXPECT_NE(chat.err.find(expected), std::string::npos) << expected << " in " << chat.err;
    for (const char* expected : {"seed 18446744073709551615", "at most 3 tokens", "statistics: on",
                                 "[prompt ", "taken back: Hi"})
        EXPECT_NE(chat.out.find(expected), std::string::npos) << expected << " in " << chat.out;
}

TEST(AnswerCommands, CtrlCAtThePromptEndsNothing) {
    const InterruptGuard guard;
    const Typed typed("", true);
    const pthread_t reader = pthread_self();
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        pthread_kill(reader, SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        typed.say("hello\n");
    });
    EXPECT_EQ(read_line("> ", {}).state, LineState::kInterrupted);
    const TypedLine line = read_line("> ", {});
    other.join();
    EXPECT_EQ(line.state, LineState::kSent);
    EXPECT_EQ(line.text, "hello");
}

TEST(AnswerCommands, ScoreMovesAllWhiteSpaceAndNeedsNoContext) {
    const std::string path = file_with("score.jsonl", R"({"context":"A fox","continuation":"\n ran"}
{"context":"A fox\n ","continuation":"ran"}
{"context":"","continuation":"Once"}
)");
    const Outcome outcome = run({"score", "models/tiny", "-f", path.c_str()});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::size_t end = outcome.out.find('\n');
    const std::string first = outcome.out.substr(0, end);
    EXPECT_EQ(outcome.out.substr(end + 1, end), first); // the same tokens, the same answer
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3);
}

TEST(AnswerCommands, BitsAByteAreOfTheBytesScored) {
    const std::string text = "The cat sat on the mat, and the dog ran home to eat its food. ";
    const Typed typed(text + text + text + text);
    const Outcome outcome = run({"ppl", "models/tiny", "-", "--window", "2"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    double perplexity = 0, nll = 0, bits = 0;
    int scored = 0, all = 0, bytes = 0;
    ASSERT_EQ(
        std::sscanf(outcome.out.c_str(),
                    "perplexity %lf nll %lf a token, %d tokens scored of %d, windows of 2 bits "
                    "%lf a byte of the %d scored",
                    &perplexity, &nll, &scored, &all, &bits, &bytes),
        6)
        << outcome.out;
    EXPECT_EQ(scored, all / 2);
    EXPECT_LT(bytes, 4 * static_cast<int>(text.size()));
    EXPECT_NEAR(bits, nll * scored / bytes / 0.6931471805599453, 1e-5);
}

TEST(AnswerCommands, PerplexityReadsAPipe) {
    const std::string text = "The cat sat on the mat, and the dog ran home to eat its food.";
    const std::string path = file_with("ppl.txt", text);
    const Outcome file = run({"ppl", "models/tiny", path.c_str()});
    ASSERT_EQ(file.status, 0) << file.err;
    for (std::vector<const char*> arguments : {std::vector<const char*>{"ppl", "models/tiny"},
                                               {"ppl", "models/tiny", "-"},
                                               {"ppl", "models/tiny", "/dev/stdin"}}) {
        const Typed typed(text);
        EXPECT_EQ(run(arguments).out, file.out);
    }
    const Typed typed("a\xff");
    expect_refused(run({"ppl", "models/tiny"}), 2, {"standard input: ", "UTF-8"});
}

TEST(AnswerCommands, ScoreSkipsBlankLinesAndStillCountsThem) {
    const std::string path =
        file_with("blank.jsonl", "\n{\"context\":\"A fox\",\"continuation\":\" ran\"}\n  \n\r\n");
    const Outcome outcome = run({"score", "models/tiny", "-f", path.c_str()});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
    const std::string broken = file_with("broken.jsonl", "\n \n{}\n");
    expect_refused(run({"score", "models/tiny", "-f", broken.c_str()}), 2, {"line 3: "});
}

TEST(AnswerCommands, BrokenTextIsRefusedByName) {
    expect_refused(run({"run", "models/tiny", "--chat", "-q", "-p", "a\xff"}), 2,
                   {"question: expected UTF-8, got an invalid sequence at byte 1"});
    for (std::vector<const char*> command :
         {std::vector<const char*>{"run", "models/tiny", "--chat", "-q", "-p", "a"},
          {"chat", "models/tiny"}}) {
        command.insert(command.end(), {"--system", "\xff"});
        expect_refused(run(command), 2,
                       {"--system: expected UTF-8, got an invalid sequence at byte 0"});
    }
    const Typed typed("/system \xff\nhi\n");
    const Outcome chat = run({"chat", "models/tiny", "-n", "2"});
    EXPECT_NE(chat.err.find("this line: expected UTF-8"), std::string::npos) << chat.err;
    EXPECT_EQ(std::count(chat.err.begin(), chat.err.end(), '\n'), 2) << chat.err; // "hi" worked
    const std::string path = file_with("broken.txt", "ab\xff");
    expect_refused(run({"ppl", "models/tiny", path.c_str()}), 2, {path + ": ", "UTF-8"});
    expect_refused(run({"run", "models/tiny", "-q", "-f", path.c_str()}), 2,
                   {path + ": ", "UTF-8"});
}

} // namespace
} // namespace lr::cli
