// SPDX-License-Identifier: Apache-2.0
//
// report/graph_text.h: a graph view as a table, as a Mermaid flowchart and as JSON.
#pragma once

#include "core/json.h"
#include "report/graph_view.h"
#include "report/table.h"

namespace lr::report {

// A row for each launch: weights (of what it reads), bytes read and written, FLOPs, floor, what
// bounds it; with `shapes`, the tensors in and out. The last row is the sum.
Table section_table(const GraphSection& section, const GraphView& view, bool shapes);
// Layers times their count, and the whole step.
Table totals_table(const GraphView& view);
// The machine's figures with their sources.
Table machine_table(const graph::Machine& machine);

// Everything above, one below the other.
std::string graph_text(const GraphView& view, bool shapes);

// A flowchart from left to right, a subgraph for each section.
std::string graph_mermaid(const GraphView& view);

Json graph_json(const GraphView& view);
Json machine_json(const graph::Machine& machine);
Json work_json(const graph::Work& work);

// "212.3", "12.34", "0.041", "<0.001", "-" for nothing.
std::string microseconds_text(double us);
std::string lane_name(graph::Lane lane); // "main", "shared"

} // namespace lr::report
