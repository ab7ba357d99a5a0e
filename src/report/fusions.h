// SPDX-License-Identifier: Apache-2.0
//
// report/fusions.h: what each rewrite of a plan would save in a step, before anyone writes a
// kernel: launches, bytes and floor, counted from the step and the rewritten plan. A plan is proved
// (graph/verify_plan.h) before it is counted.
//
// What is saved is not time: a fusion off the critical path gains nothing. With a trace of the step
// each rewrite also says what of it is on that path, and bounds what it can save there.
#pragma once

#include "core/json.h"
#include "graph/machine.h"
#include "report/table.h"

#include <optional>
#include <string>
#include <vector>

namespace lr::report {

// The places of one rewrite in layers of one kind, which are alike.
struct FusionPlace {
    std::string path;                // "decode-gdn"
    std::vector<std::int32_t> nodes; // of the first place
    std::string names;               // "8 output_rmsnorm_silu_gate, 9 out_proj_input_fp8_quant"
    std::int64_t count = 0;          // places in the step
    std::int64_t launches = 0;       // saved at each; so are:
    std::int64_t bytes = 0;          // read and written; less than 0: more are moved
    double floor_us = 0;
};

// In a trace, of the places that it holds.
struct TracedFusion {
    std::int64_t places = 0;
    std::int64_t on_path = 0;    // with a launch on the critical path
    double sum_us = 0;           // of the launches' durations
    double slack_us = 0;         // the least of them: 0 on the path
    double longest_stays_us = 0; // saved if each new launch takes as long as its longest part
    double at_floor_us = 0;      // saved if it takes its floor: no kernel saves more
};

struct FusionRow {
    const graph::Rewrite* rewrite = nullptr;
    std::vector<FusionPlace> places; // empty: stands nowhere in this step
    std::optional<TracedFusion> traced;
};

// Fusions, shifts and moves, in the order of graph::all_rewrites(); expansions save nothing. An
// error where a plan is not proved.
Result<std::vector<FusionRow>> find_fusions(const graph::Step& step, const graph::Machine& machine);

// One row for each rewrite and path; with a trace, what it can save there.
Table fusions_table(const std::vector<FusionRow>& rows, const graph::Machine& machine);
Table traced_table(const std::vector<FusionRow>& rows, const graph::Machine& machine);
// The tables and, for each rewrite, what vanishes, what it must keep and what it must respect.
std::string fusions_text(const std::vector<FusionRow>& rows, const graph::Machine& machine,
                         std::string_view what);
Json fusions_json(const std::vector<FusionRow>& rows, const graph::Machine& machine);

} // namespace lr::report
