// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/commands.h: commands that show what a step does, one file each.
#pragma once

#include "cli/commands.h"

namespace lr::cli {

void add_verify(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_graph(CLI::App& app, Action& action);
void add_experts(CLI::App& app, Action& action);

} // namespace lr::cli
