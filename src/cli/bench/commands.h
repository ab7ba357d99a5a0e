// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/commands.h: the subcommands of `liverow bench`, one file each.
#pragma once

#include "cli/bench/machine.h"
#include "cli/commands.h"
#include "core/json.h"

namespace lr::cli {

void add_bench_cpu(CLI::App& bench, Action& action);
void add_bench_op(CLI::App& bench, Action& action);
void add_bench_step(CLI::App& bench, Action& action);
void add_bench_prefill(CLI::App& bench, Action& action);

// --threads and --json, which all of them have. `flags` must live until the command line is parsed.
struct BenchFlags {
    int threads = 0; // 0: one for each usable processor
    bool json = false;
};
void add_bench_flags(CLI::App& command, BenchFlags& flags);

// The machine and its floors: two lines of text, or members of the JSON output.
void print_machine(const MachineFacts& facts, const Floors& floors);
std::vector<JsonMember> machine_json(const MachineFacts& facts, const Floors& floors);

// Nothing unless the threads waited for a noticeable share of the time (BusyMeter).
void print_busy(double share);

// A JSON document on stdout.
void print_json(std::vector<JsonMember> members);

} // namespace lr::cli
