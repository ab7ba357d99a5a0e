// SPDX-License-Identifier: Apache-2.0
//
// engine/observer.h: watching a step node by node: for tests, verify and traces. An engine without
// an observer pays nothing for it.
#pragma once

#include "graph/step.h"

#include <vector>

namespace lr::engine {

// A node that has just run. Its arguments point into memory that later nodes overwrite.
struct Launched {
    int rank; // of the world
    const graph::Step& step;
    const graph::Node& node;
    const ops::AnyArgs& args;
    // Around the launch: on CLOCK_MONOTONIC, or by a GPU's clock, step after step.
    std::int64_t start_ns = 0, end_ns = 0;

    // What the node wrote: its outputs and states, padding included.
    struct Written {
        const char* slot;
        graph::TensorId tensor;
        View view;
    };
    std::vector<Written> written() const;
};

class NodeObserver {
  public:
    virtual ~NodeObserver() = default;

    // Whether it reads or writes the memory that arguments point to. One that looks at times and
    // names alone can watch a GPU too.
    virtual bool touches_memory() const { return true; }

    // Called after each launch, on the rank's own thread; several ranks call at the same time. It
    // may change what the node wrote: later nodes read that. An error fails the step on all ranks.
    virtual Status after(const Launched& launched) = 0;
};

} // namespace lr::engine
