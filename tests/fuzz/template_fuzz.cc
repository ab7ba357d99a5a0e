// SPDX-License-Identifier: Apache-2.0
//
// A chat template from anyone and a conversation from anyone else, with a line "=====" between
// them: refused, or a prompt in UTF-8 whose marks lie within it, the same each time.
#include "tests/fuzz/fuzz.h"
#include "text/chat_template.h"
#include "text/unicode.h"

namespace {

constexpr std::string_view kBetween = "\n=====\n";

void check_marks(const lr::text::MarkedText& prompt) {
    FUZZ_CHECK(!lr::text::first_invalid_utf8(prompt.text));
    std::size_t end = 0;
    for (const lr::text::ByteRange& range : prompt.outside) {
        FUZZ_CHECK(range.begin < range.end && range.end <= prompt.text.size());
        FUZZ_CHECK(range.begin > end || end == 0);
        end = range.end;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = lr::fuzz::as_text(data, size);
    const std::size_t between = input.find(kBetween);
    const bool both = between != std::string_view::npos;
    const auto chat = lr::text::ChatTemplate::compile(both ? input.substr(0, between) : input, "t",
                                                      {{"eos_token", lr::Json("<|im_end|>")}});
    if (!chat) {
        FUZZ_CHECK(!chat.error().message().empty());
        return 0;
    }
    const std::string_view conversation =
        both ? input.substr(between + kBetween.size()) : R"([{"role": "user", "content": "u"}])";
    const auto messages = lr::parse_json(conversation, "messages");
    if (!messages)
        return 0;
    const lr::text::ChatRequest request{.messages = &*messages, .kwargs = &*messages};
    const lr::text::ChatRequest plain{.messages = &*messages,
                                      .late_system = lr::text::LateSystem::kMerge};
    // Small, so that an input takes no seconds under a sanitizer.
    const lr::text::jinja::RenderOptions options{
        {.memory_bytes = 16 << 20, .output_bytes = 1 << 20, .steps = 100'000, .depth = 300}, 0};
    for (const lr::text::ChatRequest& each : {request, plain}) {
        const auto prompt = chat->render(each, options);
        const auto again = chat->render(each, options);
        FUZZ_CHECK(prompt.has_value() == again.has_value());
        if (!prompt) {
            FUZZ_CHECK(prompt.error().message() == again.error().message());
            continue;
        }
        FUZZ_CHECK(*prompt == *again);
        check_marks(*prompt);
        (void)lr::text::leaves_open(*prompt);
    }
    return 0;
}
