// SPDX-License-Identifier: Apache-2.0
//
// cli/commands.h: the subcommands, one file each. An add_ function describes a command's flags;
// when the command was given, it leaves what to do in `action`.
#pragma once

#include "core/status.h"

#include <functional>

namespace CLI {
class App;
}

namespace lr::cli {

using Action = std::function<Status()>;

void add_run(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_ppl(CLI::App& app, Action& action);
void add_score(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_synth(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);

} // namespace lr::cli
