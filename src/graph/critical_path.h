// SPDX-License-Identifier: Apache-2.0
//
// graph/critical_path.h: which nodes make a graph take as long as it does.
//
// Nodes are positions 0..count-1 of a caller's list with a duration; edges say whose end a node
// waits for (data, and where the caller adds them, the order of a lane). A node begins `gap_us`
// after the last of those ends, or after time 0 when it needs nobody:
//
//   start[i] = max over p -> i of end[p], or 0  + gap[i];   end[i] = start[i] + duration[i]
//
// The gap of a measured node is what the trace shows: positive for a launch that came late,
// negative for one that began before its producer ended (programmatic launch, a fetch of weights).
// So the measured times come out again to the last digit, and another duration shows what would
// follow from it while everything else stays as it was. Times are microseconds.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lr::graph {

using Dependency = std::pair<std::int32_t, std::int32_t>; // the second waits for the first's end

struct TimedNode {
    double duration_us = 0;
    double gap_us = 0;
};

struct CriticalPath {
    std::vector<double> start_us, end_us; // of each node
    // How much longer each node may take before the whole does: 0 on the critical path.
    std::vector<double> slack_us;
    std::vector<std::int32_t> nodes; // the path, first to last
    double length_us = 0;            // the last end
};

// The longest path. Of two ends that are equal the lower node counts. kInvalidArgument: an edge to
// a node that is not there, or a cycle.
Result<CriticalPath> critical_path(std::span<const TimedNode> nodes,
                                   std::span<const Dependency> edges);

// When a node really ran.
struct Span {
    double start_us = 0;
    double end_us = 0;
};

// Durations and gaps of measured spans; time 0 is the first start of all.
std::vector<TimedNode> timed_nodes(std::span<const Span> spans, std::span<const Dependency> edges);

// How long before its consumer's last producer a producer had ended: 0 for the one that it really
// waited for. Of a branch that joins another, this is the slack that all its nodes share.
struct Arrival {
    std::int32_t from, to;
    double early_us;
};
std::vector<Arrival> arrivals(std::span<const Span> spans, std::span<const Dependency> edges);

// The graph with `merged` as one launch that takes `duration_us`: it waits for all that any of them
// waited for, and who waited for one of them waits for it. Its gap is the one of the first of
// `merged` in list order. The result's nodes are those of `nodes`; the merged share start, end and
// slack, and the first stands for them in the path. kInvalidArgument: as critical_path; a cycle
// means that the launch would wait for itself through a node outside.
Result<CriticalPath> merged_path(std::span<const TimedNode> nodes,
                                 std::span<const Dependency> edges,
                                 std::span<const std::int32_t> merged, double duration_us);

} // namespace lr::graph
