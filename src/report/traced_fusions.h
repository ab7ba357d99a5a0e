// SPDX-License-Identifier: Apache-2.0
//
// report/traced_fusions.h: what a trace says of each fusion: whether anything waits for it, and how
// much it can save there.
//
// Each place of a rewrite is tried alone. Its new launch stands in its lane where the last of its
// nodes stood (where the first did, if others between them wait for it), begins as late after what
// it needs as the first of them did, and everything else keeps its duration and its distance. A
// move leaves its lane and waits for its data alone.
#pragma once

#include "report/fusions.h"
#include "trace/analysis.h"

namespace lr::report {

// Fills `traced` of every rewrite with a place in the trace. `step` is what `analysis` was made
// with, and layers have its numbers.
Status add_trace(std::vector<FusionRow>& rows, const graph::Step& step,
                 const graph::Machine& machine, const trace::Analysis& analysis);

} // namespace lr::report
