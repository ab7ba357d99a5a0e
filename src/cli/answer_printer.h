// SPDX-License-Identifier: Apache-2.0
//
// cli/answer_printer.h: how `chat` and `run --chat` show an answer: reasoning first, then the
// answer, then complete tool calls.
//
// Reasoning is dimmed on a terminal with styles. Elsewhere it stands between lines of [thinking]
// and [answer], or is left out.
#pragma once

#include "cli/chat_session.h"
#include "cli/terminal.h"

#include <string>

namespace lr::cli {

class AnswerPrinter {
  public:
    enum class Reasoning { kMarked, kLeftOut }; // where it cannot be dimmed

    explicit AnswerPrinter(Reasoning reasoning) : styles_(stdout_styles()), reasoning_(reasoning) {}

    Status show(const text::AnswerDelta& delta);
    // The calls, [stopped] where Ctrl-C ended it, and the end of the line.
    Status end(const ChatAnswer& answer);
    // The end of a line that has no answer: it failed.
    Status break_off();
    // A line that is not the model's.
    Status note(const std::string& text);

  private:
    std::string end_reasoning();

    Styles styles_;
    Reasoning reasoning_;
    bool in_reasoning_ = false, any_ = false;
};

} // namespace lr::cli
