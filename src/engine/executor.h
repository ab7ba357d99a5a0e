// SPDX-License-Identifier: Apache-2.0
//
// engine/executor.h: builds, places, binds and runs steps on the CPU, one executable a bucket.
#pragma once

#include "engine/batch.h"
#include "engine/binding.h"
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
    std::vector<ops::AnyArgs> bound_;
    std::int64_t bound_to_arena_ = -1; // generation of the arena that bound_ points into
};

class Executor {
  public:
    Executor(const model::Model& model, const model::Shard& shard,
             const graph::StepOptions& options, const Weights& weights, ThreadPool& pool)
        : model_(model), shard_(shard), options_(options), weights_(weights), pool_(pool) {}

    // The executable of a shape, built on first use.
    Result<Executable*> prepare(const graph::StepShape& shape);

    // Runs the step on inputs filled by InputBlock::fill. States must be those of this shape.
    Status run(Executable& executable, std::span<const std::byte> inputs, StateStore& states);

    // The memory of a tensor after run(), valid until the next run.
    ConstView tensor(const Executable& executable, graph::TensorId id) const;

    std::int64_t arena_bytes() const { return arena_.size(); }

  private:
    Status bind(Executable& executable, StateStore& states);

    const model::Model& model_;
    model::Shard shard_;
    graph::StepOptions options_;
    const Weights& weights_;
    ThreadPool& pool_;
    std::vector<std::unique_ptr<Executable>> executables_;
    Buffer arena_; // shared by all: one step runs at a time
    std::int64_t arena_generation_ = 0;
};

} // namespace lr::engine
