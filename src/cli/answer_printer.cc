// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_printer.h"

namespace lr::cli {

Status AnswerPrinter::show(const text::AnswerDelta& delta) {
    std::string text;
    const bool dimmed = !styles_.dim.empty();
    if (!delta.reasoning.empty() && (dimmed || reasoning_ == Reasoning::kMarked)) {
        if (!in_reasoning_)
            text += dimmed ? std::string(styles_.dim) : "[thinking]\n";
        in_reasoning_ = true;
        text += for_stdout(delta.reasoning);
    }
    if (!delta.content.empty())
        text += end_reasoning() + for_stdout(delta.content);
    any_ = any_ || !text.empty();
    return print_out(text);
}

std::string AnswerPrinter::end_reasoning() {
    if (!in_reasoning_)
        return "";
    in_reasoning_ = false;
    return styles_.dim.empty() ? "\n[answer]\n" : fmt::format("{}\n\n", styles_.off);
}

Status AnswerPrinter::end(const ChatAnswer& answer) {
    std::string text = end_reasoning();
    if (answer.finish == Finish::kInterrupted)
        text += fmt::format("{} [stopped]{}", styles_.dim, styles_.off);
    text += "\n";
    for (const text::ToolAnswer::Call& call : answer.answer.calls)
        text += fmt::format("call {}({}){}\n", for_stdout(call.name), for_stdout(call.arguments),
                            call.complete ? "" : " [cut short]");
    any_ = false;
    return print_out(text);
}

Status AnswerPrinter::break_off() {
    const std::string text = end_reasoning() + (any_ ? "\n" : "");
    any_ = false;
    return print_out(text);
}

Status AnswerPrinter::note(const std::string& text) {
    return print_out(fmt::format("{}{}{}\n", styles_.dim, for_stdout(text), styles_.off));
}

} // namespace lr::cli
