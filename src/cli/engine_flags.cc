// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_flags.h"

#include "cli/usage.h"
#include "cuda/device.h"

#include <CLI/CLI.hpp>

namespace lr::cli {

engine::EngineOptions EngineFlags::options() const {
    engine::EngineOptions options;
    options.place = place();
    options.threads = threads;
    options.tp = tp;
    options.ep = ep;
    options.precision = precision == "f32" ? ops::Precision::kF32 : ops::Precision::kModel;
    options.numerics = numerics == "seed" ? ops::Numerics::kSeed : ops::Numerics::kHf;
    options.w4a4 = activations == "quant";
    options.a16 = activations == "16";
    return options;
}

engine::Place EngineFlags::place() const {
    const bool cpu_alone = precision == "f32" || tp * ep > 1;
    return cpu_alone && device == "auto" ? engine::Place() : place_of(device);
}

engine::Place place_of(const std::string& device) {
    if (device == "cpu")
        return {};
    if (device != "auto")
        return {device == "cuda" ? 0 : std::stoi(device.substr(5))};
    if (const auto list = cuda::list_devices())
        for (const cuda::DeviceInfo& card : list->devices)
            if (card.refusal.empty())
                return {card.index};
    return {};
}

void add_device_flag(CLI::App& command, std::string& device) {
    command
        .add_option("--device", device,
                    "Where to run: auto (a GPU that this build has code for, else the CPU), cpu, "
                    "cuda or cuda:NUMBER")
        ->check([](const std::string& text) {
            const bool known = text == "auto" || text == "cpu" || text == "cuda";
            const bool numbered = text.starts_with("cuda:") && text.size() > 5 && text.size() < 8 &&
                                  text.find_first_not_of("0123456789", 5) == std::string::npos;
            return known || numbered
                       ? std::string()
                       : fmt::format("expected auto, cpu, cuda or cuda:NUMBER, got \"{}\"", text);
        })
        ->capture_default_str();
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
    const FlagGroup group(command, kEngineFlags);
    add_device_flag(command, flags.device);
    command
        .add_option("--precision", flags.precision,
                    "bf16: the engine's roundings; f32: none, to hold against float32 references")
        ->check(CLI::IsMember({"bf16", "f32"}))
        ->capture_default_str();
    command
        .add_option("--numerics", flags.numerics,
                    "Residual that norms read: hf the rounded one, seed the unrounded sum")
        ->check(CLI::IsMember({"hf", "seed"}))
        ->capture_default_str();
    command
        .add_option("--activations", flags.activations,
                    "Beside quantised weights: auto quantises them for FP8, not for NVFP4 (W4A16); "
                    "quant for both, where the file has their scales (W4A4); 16 never")
        ->check(CLI::IsMember({"auto", "16", "quant"}))
        ->capture_default_str();
    command
        .add_option("--threads", flags.threads,
                    "Threads, at least one for each rank; 0: one for each processor")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command
        .add_option("--tp,--tensor-parallel-size", flags.tp,
                    "Ranks that divide heads and widths, 1..16; they share the threads")
        ->check(CLI::Range(1, static_cast<int>(kMaxRanks)))
        ->capture_default_str();
    command.add_option("--ep", flags.ep, "Ranks that divide the experts; tp * ep ranks in all")
        ->check(CLI::Range(1, static_cast<int>(kMaxRanks)))
        ->capture_default_str();
}

} // namespace lr::cli
