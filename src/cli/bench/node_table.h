// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/node_table.h: a step's nodes with their times, bytes and floors.
#pragma once

#include "cli/bench/machine.h"
#include "cli/bench/node_clock.h"
#include "cli/bench/samples.h"
#include "core/json.h"

#include <string>
#include <vector>

namespace lr::cli {

struct NodeTableOptions {
    std::string sort = "time"; // or "order": as they run
    int top = 16;              // lines of text; 0: all
    bool each = false;         // every layer's nodes apart, not the layers of a kind together
};

struct NodeRow {
    std::string id, name; // "L17.8" or "gdn.8"; "output_rmsnorm_silu_gate"
    std::int64_t count = 0;
    ops::Cost cost;
    Samples seconds; // of the row's nodes together, a sample a run
    double floor_seconds = 0;
};

// `cost` says what each node of `step` does in a run (empty: what the step says), `runs` how long
// it took. Aliases have no row.
std::vector<NodeRow> node_rows(const graph::Step& step, const std::vector<ops::Cost>& cost,
                               const std::vector<NodeSeconds>& runs, const Floors& floors,
                               const NodeTableOptions& options);

void print_node_rows(const std::vector<NodeRow>& rows, const NodeTableOptions& options);
Json node_rows_json(const std::vector<NodeRow>& rows);

} // namespace lr::cli
