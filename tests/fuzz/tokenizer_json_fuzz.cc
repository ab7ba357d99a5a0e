// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer.json from anyone, a zero byte, and a text: the file is refused, or what the text is
// encoded to decodes to the text again, at once and token by token.
#include "tests/fuzz/fuzz.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#include <string>
#include <vector>

namespace {

using lr::text::Tokenizer;

void check_stream(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, bool skip) {
    lr::text::Detokenizer detokenizer(tokenizer, skip);
    std::string streamed;
    for (std::int32_t id : ids) {
        FUZZ_CHECK(id >= 0 && id < tokenizer.vocab_size());
        streamed += detokenizer.push(id);
    }
    streamed += detokenizer.flush();
    FUZZ_CHECK(streamed == tokenizer.decode(ids, skip));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = lr::fuzz::as_text(data, size);
    const std::size_t zero = std::min(input.find('\0'), input.size());
    const auto tokenizer = Tokenizer::parse(input.substr(0, zero), "tokenizer.json");
    if (!tokenizer)
        return 0;
    const std::string text =
        lr::text::replace_invalid_utf8(input.substr(std::min(zero + 1, input.size())));

    const auto plain = tokenizer->encode(text, {.allow_special = false, .allow_added = false});
    FUZZ_CHECK(plain.has_value());
    const std::string decoded = tokenizer->decode(*plain, false);
    FUZZ_CHECK(decoded == text || decoded == lr::text::normalize_nfc(text));
    if (!text.empty()) {
        const auto outside = tokenizer->encode(lr::text::MarkedText{text, {{0, text.size()}}},
                                               {.allow_special = true});
        FUZZ_CHECK(outside.has_value() && *outside == *plain);
    }
    const auto all = tokenizer->encode(text, {.allow_special = true});
    FUZZ_CHECK(all.has_value());
    for (const auto* ids : {&*plain, &*all})
        for (bool skip : {false, true})
            check_stream(*tokenizer, *ids, skip);
    return 0;
}
