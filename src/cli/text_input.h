// SPDX-License-Identifier: Apache-2.0
//
// cli/text_input.h: text and token ids from the command line.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lr::cli {

struct TextInput {
    std::string text, file;
    bool has_text = false; // `text` was given, maybe empty
};

// The text; else the file's contents; else standard input up to its end. `what` ("prompt") is asked
// for when that is a terminal.
Result<std::string> read_text_input(const TextInput& input, std::string_view what);

// "1,2,3"; `flag` names the list in errors.
Result<std::vector<std::int32_t>> parse_ids(std::string_view list, std::string_view flag);

} // namespace lr::cli
