// SPDX-License-Identifier: Apache-2.0
#include "tests/text/jinja/rendering.h"
#include "text/chat_template.h"

#include <filesystem>

namespace lr::text {
namespace {

using jinja::json_of;

std::string prepared(std::string_view messages, LateSystem late = LateSystem::kKeep) {
    const Json json = json_of(messages);
    const Result<Json> out = prepare_messages(json, late);
    return out ? to_json_string(*out) : "error: " + out.error().message();
}

TEST(ChatMessages, TakeTheFormsThatTheOpenAiApiAllows) {
    EXPECT_EQ(prepared(R"([{"role": "user", "content": "a"}])"),
              R"([{"role":"user","content":"a"}])");
    EXPECT_EQ(prepared(R"([{"role": "developer", "content": "a"}])"),
              R"([{"role":"system","content":"a"}])");
    EXPECT_EQ(prepared(R"([{"role": "user", "content": [{"type": "text", "text": "a "},
                                                        {"type": "text", "text": "b"}]}])"),
              R"([{"role":"user","content":"a b"}])");
    EXPECT_EQ(prepared(R"([{"role": "assistant", "content": null, "tool_calls": null}])"),
              R"([{"role":"assistant","content":""}])");
    EXPECT_EQ(prepared(R"([{"role": "assistant"}])"), R"([{"role":"assistant","content":""}])");
    EXPECT_EQ(prepared(R"([{"role": "assistant", "content": "a", "reasoning": "r"}])"),
              R"([{"role":"assistant","content":"a","reasoning_content":"r"}])");
    EXPECT_EQ(prepared(R"([{"role": "assistant", "content": "a", "reasoning": "r",
                            "reasoning_content": "s"}])"),
              R"([{"role":"assistant","content":"a","reasoning_content":"s"}])");
    EXPECT_EQ(prepared(R"([{"role": "x", "content": "a", "own": [1, {"k": 2}], "name": null}])"),
              R"([{"role":"x","content":"a","own":[1,{"k":2}]}])");
}

TEST(ChatMessages, ArgumentsGivenAsAStringOfJsonBecomeTheObject_B36) {
    const auto with = [](std::string_view arguments) {
        return prepared(fmt::format(
            R"([{{"role": "assistant", "content": "", "tool_calls": [{{"id": "1", "function":
                {{"name": "f", "arguments": {}}}}}]}}])",
            arguments));
    };
    const auto expected = [](std::string_view arguments) {
        return fmt::format(
            R"([{{"role":"assistant","content":"","tool_calls":[{{"id":"1","function":)"
            R"({{"name":"f"{}}}}}]}}])",
            arguments);
    };
    EXPECT_EQ(with(R"("{\"a\": [1, \"b\"]}")"), expected(R"(,"arguments":{"a":[1,"b"]})"));
    EXPECT_EQ(with(R"({"a": 1})"), expected(R"(,"arguments":{"a":1})"));
    EXPECT_EQ(with(R"("{broken")"), expected(R"(,"arguments":"{broken")"));
    EXPECT_EQ(with(R"("[1]")"), expected(R"(,"arguments":"[1]")"));
    EXPECT_EQ(with(R"("")"), expected(R"(,"arguments":"")"));
    EXPECT_EQ(with("null"), expected(""));
    EXPECT_EQ(with("5"), "error: messages[0].tool_calls[0].function.arguments: expected an object, "
                         "or a string of JSON, got 5");
}

TEST(ChatMessages, TextThatIsNotUtf8IsRefusedByName) {
    const auto refused = [](const char* key, Json value) {
        return prepare_messages(
                   Json(JsonArray{Json::object({{"role", Json("user")}, {"content", Json("a")}}),
                                  Json::object({{"role", Json("user")}, {key, std::move(value)}})}))
            .error()
            .message();
    };
    const std::string broken = "ab\xff";
    const std::string said = ": expected UTF-8, got an invalid sequence at byte 2";
    EXPECT_EQ(refused("content", Json(broken)), "messages[1].content" + said);
    EXPECT_EQ(
        refused("content",
                Json(JsonArray{Json::object({{"type", Json("text")}, {"text", Json(broken)}})})),
        "messages[1].content[0].text" + said);
    EXPECT_EQ(refused("name", Json(broken)), "messages[1].name" + said);
}

TEST(ChatMessages, ErrorsNameTheMessageAndTheMember) {
    const std::pair<const char*, const char*> cases[] = {
        {"[]", "messages: expected an array of one or more messages, got an array of 0"},
        {"{}", "messages: expected an array of one or more messages, got an object of 0 members"},
        {"[5]", "messages[0]: expected an object, got 5"},
        {R"([{"role": "user", "content": "a"}, {"content": "a"}])",
         "messages[1].role: expected a string, got null"},
        {R"([{"role": 5}])", "messages[0].role: expected a string, got 5"},
        {R"([{"role": "user", "content": 5}])",
         "messages[0].content: expected a string, an array of text parts or null, got 5"},
        {R"([{"role": "user", "content": ["a"]}])",
         "messages[0].content[0]: expected an object with a type, got \"a\""},
        {R"([{"role": "user", "content": [{"text": "a"}]}])",
         "messages[0].content[0].type: expected a string, got null"},
        {R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}])",
         "messages[0].content[1].type: expected \"text\", got \"image_url\""},
        {R"([{"role": "user", "content": [{"type": "text", "text": 1}]}])",
         "messages[0].content[0].text: expected a string, got 1"},
        {R"([{"role": "user", "content": "a", "name": 1}])",
         "messages[0].name: expected a string or null, got 1"},
        {R"([{"role": "assistant", "reasoning": {}}])",
         "messages[0].reasoning: expected a string or null, got an object of 0 members"},
        {R"([{"role": "assistant", "tool_calls": {}}])",
         "messages[0].tool_calls: expected an array or null, got an object of 0 members"},
        {R"([{"role": "assistant", "tool_calls": [1]}])",
         "messages[0].tool_calls[0]: expected an object, got 1"},
        {R"([{"role": "assistant", "tool_calls": [{"function": 1}]}])",
         "messages[0].tool_calls[0].function: expected an object, got 1"},
        {R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])",
         "messages[0].tool_calls[0].function.name: expected a string, got null"},
    };
    for (const auto& [messages, message] : cases)
        EXPECT_EQ(prepared(messages), std::string("error: ") + message);
}

constexpr const char* kLateSystem = R"([{"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"}, {"role": "system", "content": "s"},
    {"role": "developer", "content": "d"}, {"role": "user", "content": "c"}])";

TEST(ChatMessages, LateSystemMessagesAreKeptOrMergedAtTheFront_B35) {
    EXPECT_EQ(prepared(kLateSystem),
              R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
              R"({"role":"system","content":"s"},{"role":"system","content":"d"},)"
              R"({"role":"user","content":"c"}])");
    EXPECT_EQ(prepared(kLateSystem, LateSystem::kMerge),
              R"([{"role":"system","content":"s\n\nd"},{"role":"user","content":"a"},)"
              R"({"role":"assistant","content":"b"},{"role":"user","content":"c"}])");
    EXPECT_EQ(prepared(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "a"}])",
                       LateSystem::kMerge),
              R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])");
    EXPECT_EQ(prepared(R"([{"role": "user", "content": "a"}])", LateSystem::kMerge),
              R"([{"role":"user","content":"a"}])");
}

std::string source_path(const char* path) {
    return std::string(LR_SOURCE_DIR) + "/" + path;
}

TEST(ChatTemplate, TinysOwnTemplateWritesAPrompt) {
    const Result<ChatTemplate> chat = ChatTemplate::load(source_path("models/tiny"));
    ASSERT_TRUE(chat.has_value()) << chat.error().message();
    const Json messages = json_of(R"([{"role": "system", "content": "S"},
                                      {"role": "user", "content": "Hi"}])");
    const Result<MarkedText> prompt =
        chat->render({.messages = &messages, .enable_thinking = true});
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message();
    EXPECT_EQ(jinja::marked(*prompt), "<|im_start|>system\n⟦S⟧<|im_end|>\n<|im_start|>user\n⟦Hi⟧"
                                      "<|im_end|>\n<|im_start|>assistant\n<think>\n");
}

TEST(ChatTemplate, TheTemplateRefusesALateSystemMessageInItsOwnWords_B35) {
    const Result<ChatTemplate> chat = ChatTemplate::load(source_path("models/tiny"));
    const Json messages = json_of(kLateSystem);
    const Result<MarkedText> refused = chat->render({.messages = &messages});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message(), "A system message must come first.");
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
    const Result<MarkedText> merged =
        chat->render({.messages = &messages, .late_system = LateSystem::kMerge});
    ASSERT_TRUE(merged.has_value());
    EXPECT_TRUE(merged->text.starts_with("<|im_start|>system\ns\n\nd<|im_end|>\n"));
}

TEST(ChatTemplate, WhetherThinkingIsOpenIsReadFromThePrompt_B37) {
    const Result<ChatTemplate> chat = ChatTemplate::load(source_path("models/tiny"));
    const auto prompt = [&](std::string_view said, std::optional<bool> thinking, bool generate) {
        const Json messages =
            json_of(fmt::format(R"([{{"role": "user", "content": {}}}])", json_quote(said)));
        Result<MarkedText> made = chat->render({.messages = &messages,
                                                .add_generation_prompt = generate,
                                                .enable_thinking = thinking});
        EXPECT_TRUE(made.has_value());
        return std::move(*made);
    };
    EXPECT_TRUE(leaves_open(prompt("a", true, true)));
    EXPECT_FALSE(leaves_open(prompt("a", false, true)));
    EXPECT_FALSE(leaves_open(prompt("a", {}, true)));
    EXPECT_FALSE(leaves_open(prompt("a <think>", true, false)));
    EXPECT_FALSE(leaves_open({"<think>", {{0, 7}}}));
    EXPECT_FALSE(leaves_open({"x<think>\n", {{1, 2}}}));
    EXPECT_TRUE(leaves_open({"x<think>\n", {{0, 1}}}));
    EXPECT_TRUE(leaves_open({"x<think>\ny", {{0, 1}, {8, 10}}}) == false);
    EXPECT_TRUE(leaves_open({"<seed:think>\n\n", {}}, "<seed:think>"));
    EXPECT_FALSE(leaves_open({"", {}}));
}

// A folder of files that goes away again.
class Folder {
  public:
    Folder()
        : path_(
              std::filesystem::path(testing::TempDir()) /
              fmt::format("chat_template_{}", ::testing::UnitTest::GetInstance()->random_seed())) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    void write(const char* name, std::string_view text) const {
        std::ofstream(path_ / name, std::ios::binary) << text;
    }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

// What the template found in the folder makes of a user who says "u".
std::string said(const Folder& folder, bool tools = false,
                 const std::optional<std::filesystem::path>& file = {}) {
    const Result<ChatTemplate> chat = ChatTemplate::load(folder.path(), file);
    if (!chat)
        return "error: " + chat.error().message().substr(folder.path().string().size());
    const Json messages = json_of(R"([{"role": "user", "content": "u"}])");
    const Json list = json_of(R"([{"name": "f"}])");
    const Result<MarkedText> prompt =
        chat->render({.messages = &messages, .tools = tools ? &list : nullptr});
    return prompt ? prompt->text : "error: " + prompt.error().message();
}

TEST(ChatTemplate, IsLookedForInTheFolderInOrder) {
    const Folder folder;
    EXPECT_EQ(said(folder), "error: : expected chat_template.jinja, or chat_template in "
                            "tokenizer_config.json, got neither: name a template file");
    folder.write("tokenizer_config.json", R"({"chat_template": "config {{ messages[0].content }}",
                 "bos_token": "<b>", "eos_token": {"content": "<e>"}, "pad_token": null})");
    EXPECT_EQ(said(folder), "config u");
    folder.write("chat_template.jinja", "{{ bos_token }}file {{ eos_token }}{{ pad_token }}");
    EXPECT_EQ(said(folder), "<b>file <e>");
    folder.write("other.jinja", "other{{ eos_token }}");
    EXPECT_EQ(said(folder, false, folder.path() / "other.jinja"), "other<e>");
    EXPECT_TRUE(said(folder, false, folder.path() / "none.jinja").starts_with("error: "));
}

TEST(ChatTemplate, ToolsChooseTheirOwnTemplateFromAList) {
    const Folder folder;
    folder.write("tokenizer_config.json", R"({"chat_template": [
        {"name": "default", "template": "plain"}, {"name": "rag", "template": "rag"},
        {"name": "tool_use", "template": "tools {{ tools[0].name }}"}]})");
    EXPECT_EQ(said(folder), "plain");
    EXPECT_EQ(said(folder, true), "tools f");
    folder.write("tokenizer_config.json",
                 R"({"chat_template": [{"name": "default", "template": "plain"}]})");
    EXPECT_EQ(said(folder, true), "plain");
    folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "a", "template": ""}]})");
    EXPECT_EQ(said(folder),
              "error: /tokenizer_config.json: chat_template: expected a template named "
              "\"default\"");
    folder.write("tokenizer_config.json", R"({"chat_template": 5})");
    EXPECT_EQ(said(folder), "error: /tokenizer_config.json: chat_template: expected a string or an "
                            "array of {name, template}, got 5");
    folder.write("tokenizer_config.json", R"({"chat_template": "{% if %}"})");
    EXPECT_EQ(said(folder),
              "error: /tokenizer_config.json chat_template:1:7: expected an expression, "
              "got '%}'");
}

TEST(ChatTemplate, TokensAreTheTemplatesOwnAndKwargsAreNot) {
    const Result<ChatTemplate> chat =
        ChatTemplate::compile("{{ bos_token }}{{ style }}{{ eos_token }}{{ enable_thinking }}", "t",
                              {{"bos_token", Json("<b>")}, {"eos_token", Json("<e>")}});
    const Json messages = json_of(R"([{"role": "user", "content": "u"}])");
    const Json kwargs = json_of(R"({"style": "s", "eos_token": "<f>", "enable_thinking": "t"})");
    const Result<MarkedText> prompt = chat->render({.messages = &messages, .kwargs = &kwargs});
    ASSERT_TRUE(prompt.has_value());
    EXPECT_EQ(jinja::marked(*prompt), "<b>⟦s<f>t⟧");
    const Result<MarkedText> off =
        chat->render({.messages = &messages, .enable_thinking = false, .kwargs = &kwargs});
    EXPECT_EQ(off->text, "<b>s<f>False");
}

TEST(ChatTemplate, RequestsThatAreWrongSayWhere) {
    const Result<ChatTemplate> chat = ChatTemplate::compile("x", "t");
    const Json messages = json_of(R"([{"role": "user", "content": "u"}])");
    const Json five(5), list = json_of("[1]"), reserved = json_of(R"({"messages": []})");
    const auto error = [&](const ChatRequest& request) {
        const Result<MarkedText> out = chat->render(request);
        return out ? "" : out.error().message();
    };
    EXPECT_EQ(error({}), "messages: expected an array of one or more messages, got null");
    EXPECT_EQ(error({.messages = &messages, .tools = &five}),
              "tools: expected an array or null, got 5");
    EXPECT_EQ(error({.messages = &messages, .tools = &list}),
              "tools[0]: expected an object, got 1");
    EXPECT_EQ(error({.messages = &messages, .documents = &list}),
              "documents[0]: expected an object, got 1");
    EXPECT_EQ(error({.messages = &messages, .kwargs = &five}),
              "chat_template_kwargs: expected an object, got 5");
    EXPECT_EQ(error({.messages = &messages, .kwargs = &reserved}),
              "chat_template_kwargs: expected none of the request's own members, got \"messages\"");
}

} // namespace
} // namespace lr::text
