// SPDX-License-Identifier: Apache-2.0
//
// cli/engine_flags.h: the flags of every command that runs a model.
#pragma once

#include "engine/engine.h"

#include <string>

namespace CLI {
class App;
}

namespace lr::cli {

struct EngineFlags {
    std::string device = "auto", precision = "bf16", numerics = "hf", activations = "auto";
    int threads = 0, tp = 1, ep = 1;

    // The engine's options as far as these flags say them.
    engine::EngineOptions options() const;

  private:
    engine::Place place() const;
};

// --device alone, and what its text means: auto is the first GPU that this build runs on, else the
// CPU.
void add_device_flag(CLI::App& command, std::string& device);
engine::Place place_of(const std::string& device);

// --device, --precision, --numerics, --activations, --threads, --tp, --ep. `flags` must live until
// the command line is parsed.
void add_engine_flags(CLI::App& command, EngineFlags& flags);

} // namespace lr::cli
