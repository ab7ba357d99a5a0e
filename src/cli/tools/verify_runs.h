// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/verify_runs.h: what `liverow verify` does once its flags are read.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>

namespace lr::cli {

struct VerifyOptions {
    std::string model, preset, format = "bf16", path = "all", nodes, plan = "reference";
    std::string device = "cpu", inject, precision = "bf16", numerics = "hf", activations = "auto";
    std::int64_t layers = 4, layer = -1, rows = 3, prompt_tokens = 70, steps = 2;
    bool launch_local = false, free_run = false;
    int threads = 0;
};

// Prints a report. kInvalidArgument: flags that say nothing; kInternal: something diverges, or an
// injected fault was not noticed.
Status verify_model(const VerifyOptions& options);

} // namespace lr::cli
