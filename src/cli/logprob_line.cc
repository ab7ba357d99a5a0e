// SPDX-License-Identifier: Apache-2.0
#include "cli/logprob_line.h"

#include "text/tokenizer.h"
#include "text/unicode.h"

namespace lr::cli {
namespace {

std::string quoted_byte(unsigned char byte) {
    switch (byte) {
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return byte < 0x20 || byte >= 0x7F ? fmt::format("\\x{:02X}", byte)
                                           : std::string(1, static_cast<char>(byte));
    }
}

std::string token_text(std::int32_t id, const text::Tokenizer* tokenizer) {
    return tokenizer ? fmt::format("{} {}", id, quoted(tokenizer->token_bytes(id)))
                     : std::to_string(id);
}

} // namespace

std::string quoted(std::string_view bytes) {
    std::string out = "\"";
    while (!bytes.empty()) {
        const text::Utf8Step step = text::step_utf8(bytes);
        const auto length = static_cast<std::size_t>(step.length);
        const bool whole = step.kind == text::Utf8Step::Kind::kCharacter;
        // U+0080 to U+009F are control characters too.
        if (whole && step.code_point >= 0xA0)
            out += bytes.substr(0, length);
        else
            for (char byte : bytes.substr(0, length))
                out += quoted_byte(static_cast<unsigned char>(byte));
        bytes.remove_prefix(length);
    }
    return out + "\"";
}

std::string logprob_line(const engine::RowLogprobs& row, const text::Tokenizer* tokenizer) {
    std::string line = fmt::format("{}  {:.6f}  rank {}", token_text(row.token.id, tokenizer),
                                   row.token.logprob, row.rank);
    for (std::size_t i = 0; i < row.top.size(); ++i)
        line += fmt::format("{}{} {:.6f}", i == 0 ? " | " : ", ",
                            token_text(row.top[i].id, tokenizer), row.top[i].logprob);
    return line;
}

} // namespace lr::cli
