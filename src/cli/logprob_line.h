// SPDX-License-Identifier: Apache-2.0
//
// cli/logprob_line.h: a token's log-probability for people to read.
#pragma once

#include "engine/piece.h"

#include <string>
#include <string_view>

namespace lr::text {
class Tokenizer;
}

namespace lr::cli {

// In double quotes, one line of printable UTF-8 whatever the bytes are: quotes and backslashes get
// a backslash, line ends and tabs are \n, \r, \t, other control bytes and whatever is no whole
// character \xNN.
std::string quoted(std::string_view bytes);

// `1053 " time"  -0.482911  rank 1 | 1053 " time" -0.482911, 12 "," -1.7`: the token, and the
// likeliest. Without a tokenizer the texts are missing.
std::string logprob_line(const engine::RowLogprobs& row, const text::Tokenizer* tokenizer);

} // namespace lr::cli
