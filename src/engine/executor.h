// SPDX-License-Identifier: Apache-2.0
//
// engine/executor.h: builds, places, binds and runs steps on the CPU, one executable a bucket.
#pragma once

#include "engine/batch.h"
#include "engine/binding.h"
#include "engine/collectives.h"
#include "engine/observer.h"
#include "graph/memory_plan.h"

#include <memory>
#include <vector>

namespace lr::engine {

// A step of one shape, ready to run again and again: fixed memory, changing inputs.
class Executable {
  public:
    explicit Executable(graph::Step step);
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const graph::Step& step() const { return step_; }
    const InputBlock& inputs() const { return inputs_; }
    const graph::MemoryPlan& memory() const { return memory_; }

  private:
    friend class Executor;
    graph::Step step_;
    graph::Plan plan_;
    graph::MemoryPlan memory_;
    InputBlock inputs_;
    Buffer input_memory_;
    struct Bound {
        const graph::Node* node;
        ops::AnyArgs args;
        bool collective; // other ranks take part
    };
    std::vector<Bound> bound_;
    std::int64_t bound_to_arena_ = -1; // generation of the arena that bound_ points into
};

// What an executor works with; all of it outlives the executor.
struct ExecutorParts {
    const model::Model& model;
    model::Shard shard;
    graph::StepOptions options;
    const Weights& weights;
    ThreadPool& pool;
    const RankComms& comms;           // empty with one rank
    NodeObserver* observer = nullptr; // optional
};

class Executor {
  public:
    explicit Executor(const ExecutorParts& parts) : parts_(parts) {}

    // The executable of a shape, built on first use.
    Result<Executable*> prepare(const graph::StepShape& shape);

    // Runs the step on inputs filled by InputBlock::fill; every rank does, at the same time. States
    // must be those of this shape.
    Status run(Executable& executable, std::span<const std::byte> inputs, StateStore& states);

    // The memory of a tensor after run(), valid until the next run.
    ConstView tensor(const Executable& executable, graph::TensorId id) const;

    std::int64_t arena_bytes() const { return arena_.size(); }

  private:
    Status bind(Executable& executable, StateStore& states);

    Status run_node(Executable::Bound& bound, const graph::Step& step);

    ExecutorParts parts_;
    std::vector<std::unique_ptr<Executable>> executables_;
    Buffer arena_; // shared by all: one step runs at a time
    std::int64_t arena_generation_ = 0;
};

} // namespace lr::engine
