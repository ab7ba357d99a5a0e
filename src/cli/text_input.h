// SPDX-License-Identifier: Apache-2.0
//
// cli/text_input.h: text, its lines and token ids from the command line, and names that were meant.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lr::cli {

struct TextInput {
    std::string text, file; // file: "-" and /dev/stdin are standard input
    bool has_text = false;  // `text` was given, maybe empty
};

// The text; else the file's contents; else standard input up to its end. `what` ("prompt") is asked
// for when that is a terminal.
Result<std::string> read_text_input(const TextInput& input, std::string_view what);
// Where it comes from, for errors: `what`, the file's name, or "standard input".
std::string origin_of(const TextInput& input, std::string_view what);

// kInvalidArgument, with `name` and the place, where the text is not UTF-8.
Status check_utf8(std::string_view text, std::string_view name);

struct TextLine {
    std::string_view text;
    std::int64_t number = 0; // from 1, blank lines counted
};
// The lines that hold more than white space, without their ends; they point into `text`.
std::vector<TextLine> lines_of(std::string_view text);

// Of `names`, the one that differs from `typed` by the fewest letters; names[0] of equals.
struct NearName {
    std::string name;
    bool likely = false; // few enough letters for a slip of the fingers
};
NearName nearest_name(std::string_view typed, std::span<const std::string> names);

// "1,2,3"; `flag` names the list in errors.
Result<std::vector<std::int32_t>> parse_ids(std::string_view list, std::string_view flag);

} // namespace lr::cli
