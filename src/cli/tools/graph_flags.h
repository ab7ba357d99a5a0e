// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/graph_flags.h: which step `liverow graph` and `graph fusions` look at, and how both
// hand out what they found.
#pragma once

#include "graph/machine.h"
#include "report/graph_view.h"

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace lr::cli {

struct GraphFlags {
    std::string model, preset = "", path = "decode";
    std::string format = "", activations = "quant", plan = "reference", machine = "h200";
    std::int64_t batch = 1, context = 8192, tokens = 0; // tokens 0: batch * context
    int tp = 1, ep = 1;
    std::string out; // "": standard output
};

// MODEL, --preset and what shapes the step. `flags` must live until the command line is parsed.
void add_graph_flags(CLI::App& command, GraphFlags& flags);

// A built step with what it takes to show it.
struct BuiltGraph {
    std::string model; // "397B-A17B nvfp4-mixed"
    report::PathChoice choice;
    graph::Machine machine;
    graph::Step step;
};
Result<BuiltGraph> build_graph(const GraphFlags& flags);

// "h200", "b300", "cpu" (measured now, which takes some seconds) or a file of graph::parse_machine.
Result<graph::Machine> find_machine(const std::string& name);

// "reference", or rewrites separated by commas, applied in order and proved.
Result<graph::Plan> plan_of(const graph::Step& step, std::string_view names);

// To --out (complete or not at all), or to standard output.
Status write_out(const GraphFlags& flags, std::string_view text);

} // namespace lr::cli
