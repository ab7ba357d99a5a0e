// SPDX-License-Identifier: Apache-2.0
//
// cli/usage.h: how the command line is explained, and what is said of a wrong one.
#pragma once

#include "cli/commands.h"

#include <string>
#include <string_view>

namespace lr::cli {

// Headings of --help, in the order in which a command adds its flags.
constexpr const char *kPromptFlags = "Prompt", *kSamplingFlags = "Sampling", *kChatFlags = "Chat",
                     *kOutputFlags = "Output", *kEngineFlags = "Engine";

// While it lives, flags added to the command stand under this heading.
class FlagGroup {
  public:
    FlagGroup(CLI::App& command, const char* heading);
    ~FlagGroup();
    FlagGroup(const FlagGroup&) = delete;
    FlagGroup& operator=(const FlagGroup&) = delete;

  private:
    CLI::App& command_;
    const std::string before_;
};

// "--tokens N [128]", "--think on|off|auto [auto]": a flag, what it takes, and its default. Set it
// before the commands are added.
void set_help_format(CLI::App& app);

// liverow help [COMMAND]. `app` outlives the action.
void add_help(CLI::App& app, Action& action);

// One line on a command line that could not be parsed: the first command or flag that there is not
// and the one that may have been meant; else `said`, what the parser says of it.
std::string usage_error(const CLI::App& app, std::string_view said);

} // namespace lr::cli
