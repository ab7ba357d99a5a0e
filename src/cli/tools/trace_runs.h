// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/trace_runs.h: what `liverow trace` and `liverow trace analyze` do once their flags are
// read.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>

namespace lr::cli {

struct TraceOptions {
    std::string model, out, device = "auto";
    std::int64_t rows = 1, context = 64, steps = 16;
    int threads = 0;
    bool overhead = false;
};
Status record_trace(const TraceOptions& options);

struct AnalyzeOptions {
    std::string file, model, preset, format, rules, html;
    std::int64_t step = -1, layer = -1;
    std::int32_t tp = 1;
};
Status analyze_trace(const AnalyzeOptions& options);

} // namespace lr::cli
