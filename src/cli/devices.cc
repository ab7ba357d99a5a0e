// SPDX-License-Identifier: Apache-2.0
//
// liverow devices: what this build can run on.
#include "cli/commands.h"
#include "core/buffer.h"
#include "core/cpus.h"
#include "cuda/device.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace lr::cli {
namespace {

Status print_devices() {
    fmt::print("cpu: {} usable processors\n", usable_cpu_count());
    const auto list = cuda::list_devices();
    if (!list) {
        fmt::print("cuda: none ({})\n", list.error().message());
        return {};
    }
    fmt::print("cuda: driver {}, built with {}\n", list->driver, list->runtime);
    for (const cuda::DeviceInfo& device : list->devices)
        fmt::print("cuda:{}: {}, sm_{}{}, {} SMs, {} ({} free), L2 {}{}\n", device.index,
                   device.name, device.major, device.minor, device.multiprocessors,
                   format_bytes(device.memory_bytes), format_bytes(device.free_bytes),
                   format_bytes(device.l2_bytes),
                   device.refusal.empty() ? "" : "; not usable: " + device.refusal);
    return {};
}

} // namespace

void add_devices(CLI::App& app, Action& action) {
    CLI::App* devices = app.add_subcommand("devices", "List processors and GPUs");
    devices->callback([&action] { action = print_devices; });
}

} // namespace lr::cli
