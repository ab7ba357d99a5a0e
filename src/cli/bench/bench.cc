// SPDX-License-Identifier: Apache-2.0
//
// liverow bench: how fast this machine is, and how near to that an op or a model comes.
#include "cli/bench/commands.h"
#include "core/version.h"
#include "cpu/isa.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace lr::cli {

void add_bench(CLI::App& app, Action& action) {
    CLI::App* bench = app.add_subcommand("bench", "Measure this machine, an op or a model's steps");
    bench->require_subcommand(1);
    add_bench_cpu(*bench, action);
    add_bench_op(*bench, action);
    add_bench_step(*bench, action);
    add_bench_prefill(*bench, action);
}

void add_bench_flags(CLI::App& command, BenchFlags& flags) {
    command.add_option("--threads", flags.threads, "Threads; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command.add_flag("--json", flags.json, "One JSON document in place of the table");
}

void print_machine(const MachineFacts& facts, const Floors& floors) {
    fmt::print("machine     {}, {}, last-level cache {}\n", facts.processor,
               cpu::isa_name(cpu::isa()),
               facts.cache_bytes > 0 ? format_bytes(facts.cache_bytes) : "unknown");
    fmt::print("floors      read {:.1f} GB/s, f32 {:.0f} GFLOP/s, {} thread{}\n", floors.read / 1e9,
               floors.flops / 1e9, floors.threads, floors.threads == 1 ? "" : "s");
}

std::vector<JsonMember> machine_json(const MachineFacts& facts, const Floors& floors) {
    return {{"version", Json(std::string_view(kVersion))},
            {"processor", Json(facts.processor)},
            {"isa", Json(cpu::isa_name(cpu::isa()))},
            {"cache_bytes", Json(facts.cache_bytes)},
            {"threads", Json(floors.threads)},
            {"read_gbs", Json(floors.read / 1e9)},
            {"f32_gflops", Json(floors.flops / 1e9)}};
}

void print_busy(double share) {
    constexpr double kNoticeable = 0.02;
    if (share > kNoticeable)
        fmt::print(
            "busy        threads waited {:.0f} % of the time for a processor: the machine is "
            "used by others, and these figures are no measure of it\n",
            100 * share);
}

void print_json(std::vector<JsonMember> members) {
    fmt::print("{}\n", to_json_string(Json::object(std::move(members)), 2));
}

} // namespace lr::cli
