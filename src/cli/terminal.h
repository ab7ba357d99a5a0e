// SPDX-License-Identifier: Apache-2.0
//
// cli/terminal.h: what a command may ask of the terminal it runs in.
#pragma once

#include "cli/line_buffer.h"
#include "core/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace lr::cli {

// Escape sequences for text on stdout: empty unless stdout is a terminal that is not "dumb" and
// NO_COLOR is unset or empty.
struct Styles {
    std::string_view dim, off;
};
Styles stdout_styles();

// Text of a model as it may be written to stdout: where that is a terminal, control characters
// other than "\n" and "\t" become escapes (\x1B), so that no answer moves the cursor or sets the
// title.
std::string for_stdout(std::string_view text);

// Writes to stdout at once, or says why not.
Status print_out(std::string_view text);

// While it lives, Ctrl-C (SIGINT) sets a flag and ends nothing. One at a time.
class InterruptGuard {
  public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

    static bool interrupted();
    static void clear();
};

struct TypedLine {
    LineState state = LineState::kEnded; // kSent, kInterrupted or kEnded
    std::string text;                    // of kSent, without the end of the line
};

// One line from stdin. From a terminal it is edited (cli/line_buffer.h) and `history` recalled;
// else it is read as it comes, "\\" before the end of the line continuing it, and no prompt is
// shown.
TypedLine read_line(std::string_view prompt, const std::vector<std::string>& history);

} // namespace lr::cli
