// SPDX-License-Identifier: Apache-2.0
//
// liverow bench cpu: the floors of this machine, for 1, 2, 4, ... threads.
#include "cli/bench/commands.h"
#include "core/cpus.h"
#include "core/log.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace lr::cli {
namespace {

void print_table(const MachineFacts& facts, const FloorMeter& meter,
                 const std::vector<Floors>& rows) {
    print_machine(facts, rows.back());
    fmt::print("memory      {} measured on; huge pages: {} (the system says {})\n",
               format_bytes(meter.bytes()), meter.in_huge_pages() ? "yes" : "no", facts.huge_pages);
    fmt::print("processors  {} usable\n\n", usable_cpu_count());
    fmt::print("{:>7} {:>10} {:>10} {:>12}\n", "threads", "read GB/s", "copy GB/s", "f32 GFLOP/s");
    for (const Floors& row : rows)
        fmt::print("{:>7} {:>10.2f} {:>10.2f} {:>12.1f}\n", row.threads, row.read / 1e9,
                   row.copy / 1e9, row.flops / 1e9);
    fmt::print("\nread: the best of several ways; copy: bytes read and written together; a "
               "multiply-add is two operations\n");
}

void print_rows_json(const MachineFacts& facts, const FloorMeter& meter,
                     const std::vector<Floors>& rows) {
    std::vector<JsonMember> members = machine_json(facts, rows.back());
    JsonArray array;
    for (const Floors& row : rows)
        array.push_back(Json::object({{"threads", Json(row.threads)},
                                      {"read_gbs", Json(row.read / 1e9)},
                                      {"copy_gbs", Json(row.copy / 1e9)},
                                      {"f32_gflops", Json(row.flops / 1e9)}}));
    members.push_back({"processors", Json(usable_cpu_count())});
    members.push_back({"measured_bytes", Json(meter.bytes())});
    members.push_back({"huge_pages", Json(meter.in_huge_pages())});
    members.push_back({"rows", Json(std::move(array))});
    print_json(std::move(members));
}

Status bench_cpu(const BenchFlags& flags) {
    const int most = flags.threads > 0 ? flags.threads : usable_cpu_count();
    std::vector<int> counts;
    for (int threads = 1; threads < most; threads *= 2)
        counts.push_back(threads);
    counts.push_back(most);
    LR_TRY_ASSIGN(const FloorMeter meter, FloorMeter::make());
    std::vector<Floors> rows;
    double busy = 0;
    {
        Progress progress("measuring", std::ssize(counts), "thread counts");
        for (int threads : counts) {
            ThreadPool pool(threads);
            const BusyMeter meanwhile;
            rows.push_back(meter.measure(pool, true));
            busy = std::max(busy, meanwhile.share(threads));
            progress.advance(1);
        }
    }
    const MachineFacts facts = machine_facts();
    if (flags.json)
        print_rows_json(facts, meter, rows);
    else
        print_table(facts, meter, rows);
    if (!flags.json)
        print_busy(busy);
    return {};
}

} // namespace

void add_bench_cpu(CLI::App& bench, Action& action) {
    auto flags = std::make_shared<BenchFlags>();
    CLI::App* command =
        bench.add_subcommand("cpu", "Memory bandwidth and arithmetic of this machine");
    add_bench_flags(*command, *flags);
    command->callback([&action, flags] { action = [flags] { return bench_cpu(*flags); }; });
}

} // namespace lr::cli
