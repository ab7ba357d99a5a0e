// SPDX-License-Identifier: Apache-2.0
//
// cli/chat_commands.h: the lines of a chat that begin with "/", understood but not carried out.
#pragma once

#include "core/status.h"

#include <optional>
#include <string>
#include <string_view>

namespace lr::cli {

enum class ChatCommand {
    kHelp,
    kExit,
    kNew,    // forget the conversation
    kSystem, // argument: the system message; "" takes it away
    kThink,  // argument: on, off or auto
    kRetry,  // another answer to the last question
    kUndo,   // take back the last question
    kSet,    // argument: NAME VALUE
    kStats,  // argument: on or off
    kSave,   // argument: a file for the messages
};

struct ChatLine {
    std::optional<ChatCommand> command; // nothing: a question
    std::string text;                   // the question, or the command's argument
};

// A line that begins with "//" is a question that begins with "/". kInvalidArgument: not
// UTF-8; a command that there is not (the nearest is named); a missing, wrong or superfluous
// argument.
Result<ChatLine> read_chat_line(std::string_view line);

// What /help prints.
std::string chat_help();

} // namespace lr::cli
