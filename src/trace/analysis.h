// SPDX-License-Identifier: Apache-2.0
//
// trace/analysis.h: what a step's rows say once the graph tells who waited for whom.
//
// A sum of durations is neither the time of a step nor what a fusion saves. So: how much ran at the
// same time, which launches the end really waited for, how long others could have taken, and what
// would follow if a fusion's launches took as long as the longest of them. Times are microseconds.
#pragma once

#include "graph/critical_path.h"
#include "graph/plan.h"
#include "trace/row.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lr::trace {

struct Totals {
    double sum = 0;  // of durations
    double span = 0; // first start to last end
    double busy = 0; // time in which at least one launch ran
    double overlap() const { return sum > busy ? sum - busy : 0; } // saved by running together
    double idle() const { return span > busy ? span - busy : 0; }  // in which none ran
};
Totals totals_of(std::span<const Row> rows);

// A launch that waits for several: who came last, and how long the others had been ready.
struct Join {
    std::size_t row, last, early; // rows: the one that waits, its last producer, another one
    double early_us;
};

// What fusing the rewrite's nodes would do in this trace, each place alone. The fused launch stands
// in the lane of its first; where the others stood, their neighbours close up.
struct WhatIf {
    std::string rewrite;
    std::int64_t places = 0;   // where all its launches are in the trace, each alone
    double sum = 0;            // of their durations, of all places
    std::int64_t critical = 0; // places with a launch on the critical path
    double most = 0;           // that the span could shrink, if each fused launch took as long as
                               // the longest of its own and nothing else changed
};

struct Analysis {
    std::vector<Row> rows; // of one step, by start
    Totals totals;
    std::vector<graph::Dependency> data; // between rows: by the graph's tensors
    graph::CriticalPath path;            // over data and the order of lanes
    std::vector<double> waits; // of each row: start after the last end it needed; < 0: before it
    std::vector<Join> joins;   // by row, the earliest producer first; data only
    std::vector<WhatIf> what_if;
    std::vector<std::size_t> unknown;   // rows that the graph has no node for
    std::vector<std::int32_t> untraced; // the graph's nodes that launch and stand in no row, though
                                        // others of their layer and path do: another model's trace?
    std::vector<bool> communicates;     // rows in which several ranks take part
};

// Rows of one step against a step of the same model and phase. A row stands for the nodes that it
// names in its layer; with `any_layer` a layer's number does not count, only its path: the rows are
// laid on layers of that kind, in their order (a trace of single layers).
Result<Analysis> analyse(std::vector<Row> rows, const graph::Step& step, bool any_layer);

// Time of each node by path and number, over all layers: "decode-gdn 7".
struct NodeShare {
    std::string path, nodes, name;
    std::int64_t count = 0;
    double sum = 0, on_path = 0; // durations; the part on the critical path
    double floor = -1;           // least time, where rows know it
    double slack = 0;            // the least slack of its rows
};
std::vector<NodeShare> shares_of(const Analysis& analysis);

} // namespace lr::trace
