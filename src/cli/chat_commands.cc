// SPDX-License-Identifier: Apache-2.0
#include "cli/chat_commands.h"

#include "cli/text_input.h"

#include <algorithm>
#include <array>
#include <vector>

namespace lr::cli {
namespace {

enum class Argument { kNone, kOptional, kNeeded };

struct Row {
    std::string_view name;
    ChatCommand command;
    Argument argument;
    std::string_view shown; // of the argument
    std::string_view help;
};

constexpr std::array kRows = {
    Row{"help", ChatCommand::kHelp, Argument::kNone, "", "this list"},
    Row{"new", ChatCommand::kNew, Argument::kNone, "", "forget the conversation"},
    Row{"retry", ChatCommand::kRetry, Argument::kNone, "", "another answer to the last question"},
    Row{"undo", ChatCommand::kUndo, Argument::kNone, "", "take back the last question"},
    Row{"system", ChatCommand::kSystem, Argument::kOptional, "TEXT",
        "system message from the next question on; without TEXT none"},
    Row{"think", ChatCommand::kThink, Argument::kNeeded, "on|off|auto",
        "reason before answering, or leave it to the template"},
    Row{"set", ChatCommand::kSet, Argument::kNeeded, "NAME VALUE",
        "temp, top-k, top-p, min-p, seed or tokens"},
    Row{"stats", ChatCommand::kStats, Argument::kNeeded, "on|off",
        "tokens and speed after each answer"},
    Row{"save", ChatCommand::kSave, Argument::kNeeded, "FILE", "write the messages as JSON"},
    Row{"exit", ChatCommand::kExit, Argument::kNone, "", "leave (so does Ctrl-D)"},
};

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    return text;
}

std::string usage(const Row& row) {
    return fmt::format("/{}{}{}", row.name, row.shown.empty() ? "" : " ", row.shown);
}

Status check_argument(const Row& row, std::string_view argument) {
    const bool wrong = (row.argument == Argument::kNone && !argument.empty()) ||
                       (row.argument == Argument::kNeeded && argument.empty());
    if (wrong)
        return fail(Code::kInvalidArgument, "expected {}, got \"/{}{}{}\"", usage(row), row.name,
                    argument.empty() ? "" : " ", argument);
    if (row.shown.find('|') == std::string_view::npos)
        return {};
    const std::string choices = fmt::format("|{}|", row.shown);
    if (choices.find(fmt::format("|{}|", argument)) == std::string::npos)
        return fail(Code::kInvalidArgument, "expected {}, got \"{}\"", usage(row), argument);
    return {};
}

} // namespace

Result<ChatLine> read_chat_line(std::string_view line) {
    LR_TRY(check_utf8(line, "this line"));
    if (!line.starts_with('/') || line.starts_with("//"))
        return ChatLine{{}, std::string(line.substr(line.starts_with("//") ? 1 : 0))};
    const std::size_t space = std::min(line.find_first_of(" \t\n"), line.size());
    std::string_view name = line.substr(1, space - 1);
    const std::string_view argument = trimmed(line.substr(space));
    if (name == "quit")
        name = "exit";
    std::vector<std::string> names;
    for (const Row& row : kRows) {
        if (row.name == name) {
            LR_TRY(check_argument(row, argument));
            return ChatLine{row.command, std::string(argument)};
        }
        names.emplace_back(row.name);
    }
    return fail(
        Code::kInvalidArgument,
        "no command /{}; did you mean /{}? /help lists all, and // begins a question with a "
        "slash",
        name, nearest_name(name, names).name);
}

std::string chat_help() {
    std::string help;
    for (const Row& row : kRows)
        help += fmt::format("  {:<20} {}\n", usage(row), row.help);
    help += "  Alt-Enter, Ctrl-J, or \\ at the end of a line begins a new line; Enter sends.\n"
            "  Ctrl-C stops an answer.\n";
    return help;
}

} // namespace lr::cli
