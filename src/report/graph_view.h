// SPDX-License-Identifier: Apache-2.0
//
// report/graph_view.h: a plan of a step, ready to be shown: a section for each path, a box for each
// launch, an arrow for each pair of boxes that share data. Everything is read from the step, its
// plan and a machine; a view adds nothing but names and sums.
#pragma once

#include "graph/machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace lr::report {

// What of a step is shown: one path ("prefill-gdn", "prefill-attention", "decode-gdn",
// "decode-attention"), or all of a step ("prefill", "decode"): prologue, a layer of each kind,
// epilogue.
struct PathChoice {
    graph::Phase phase = graph::Phase::kDecode;
    bool gdn = true, attention = true, ends = true;
};
std::vector<std::string_view> path_names();
Result<PathChoice> path_choice(std::string_view name); // or the names

// A launch, or a node that communicates and has nobody to (an alias).
struct GraphBox {
    std::int32_t launch = -1; // of the plan; -1: an alias
    std::vector<std::int32_t> nodes;
    std::string number; // "8", "8+9", "prev.23+prev.24+1+3"; of a stage "21 gather"
    std::string name;   // its nodes' names, joined by " + "
    graph::Lane lane = graph::Lane::kMain;
    bool communicates = false;
    bool counted = true; // false: begins in the layer before and counts there
    graph::Work work;
    graph::Floor floor;
    double slack_us = 0; // by floors: 0 on the longest path
    bool on_path = false;

    bool alias() const { return launch < 0; }
};

// `to` needs what `from` made. -1: a box of no section here; `outside` then names it.
struct GraphArrow {
    std::int32_t from = -1, to = -1;
    std::string outside;              // "previous layer: U", "next layer"
    std::vector<std::string> tensors; // without the layer's prefix
    bool added = false; // ours, and not in the traced graph's chart (prefill-gdn, 15 -> 17)
};

struct GraphSection {
    std::string id, title;  // "decode-gdn", "Decode-GDN"
    std::string label;      // of the layer shown: "L4"; "pro", "epi"
    std::int64_t count = 1; // layers of this kind in the step
    std::vector<GraphBox> boxes;
    std::vector<GraphArrow> arrows; // by (from, to)
    graph::Work work;               // the sum of the boxes
    double floor_us = 0;            // likewise: one launch after the other, each at its floor
    double memory_us = 0;           // the part that no overlap of lanes can hide
    double path_us = 0;             // longest chain of floors: lanes beside one another
    std::int64_t launches = 0;
};

// Of the whole step, whatever the sections show.
struct GraphTotal {
    graph::Work work;
    double floor_us = 0;
    double memory_us = 0;
    std::int64_t launches = 0;
};

struct GraphView {
    const graph::Step& step;
    const graph::Plan& plan;
    graph::Machine machine;
    std::string model; // "397B-A17B nvfp4-mixed"
    std::vector<GraphSection> sections;
    GraphTotal total;
};

// kInvalidArgument when the model has no layer of the kind asked for. The view points to step and
// plan. `model` names what the step was built of.
Result<GraphView> graph_view(const graph::Step& step, const graph::Plan& plan,
                             const graph::Machine& machine, const PathChoice& choice,
                             std::string model);

// "decode, batch 54, context 8192, tp 2, plan 8+9": what the step was built for.
std::string describe_shape(const GraphView& view);

// A tensor as an op's argument.
struct GraphTensor {
    std::string slot; // the op's name for it: "x", "residual_out"
    std::string use;  // "in", "weight", "state", "out"
    std::string tensor;
    std::string dtype;
    Shape shape;
    std::int64_t bytes = 0;
};
std::vector<GraphTensor> node_tensors(const graph::Step& step, const graph::Node& node);
// "H [54, 4096] bf16".
std::string describe(const GraphTensor& tensor);

} // namespace lr::report
