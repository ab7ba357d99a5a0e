// SPDX-License-Identifier: Apache-2.0
//
// engine/executor.h: builds, places, binds and runs steps, one executable a bucket: on the CPU
// here, on a GPU in cuda_executor.h.
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
    virtual ~Executable() = default;
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const graph::Step& step() const { return step_; }
    const InputBlock& inputs() const { return inputs_; }
    const graph::MemoryPlan& memory() const { return memory_; }

  private:
    friend class CpuExecutor;
    friend class CudaExecutor;
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
    virtual ~Executor() = default;

    // For people: "CPU avx2, 2 threads", with the threads of all ranks, or "cuda:0 NVIDIA H200".
    virtual std::string device(int threads) const = 0;
    // The executable of a shape, built on first use.
    // While a step runs, another thread may prepare one; the other functions are called by one
    // thread at a time.
    virtual Result<Executable*> prepare(const graph::StepShape& shape) = 0;
    // Memory for the states of a step, and for its weights where they are not the host's.
    virtual Result<StateStore> allocate_states(const graph::Step& step) = 0;
    // Runs the step on inputs filled by InputBlock::fill and waits for its end; every rank does, at
    // the same time. States must be those of this shape.
    virtual Status run(Executable& executable, std::span<const std::byte> inputs,
                       StateStore& states) = 0;
    // Host memory with a tensor after run(), valid until the next run.
    virtual Result<ConstView> tensor(Executable& executable, graph::TensorId id) = 0;
};

class CpuExecutor final : public Executor {
  public:
    explicit CpuExecutor(const ExecutorParts& parts) : parts_(parts) {}

    std::string device(int threads) const override;
    Result<Executable*> prepare(const graph::StepShape& shape) override;
    Result<StateStore> allocate_states(const graph::Step& step) override;
    Status run(Executable& executable, std::span<const std::byte> inputs,
               StateStore& states) override;
    Result<ConstView> tensor(Executable& executable, graph::TensorId id) override;

  private:
    Status bind(Executable& executable, StateStore& states);
    Status run_node(Executable::Bound& bound, const graph::Step& step);

    ExecutorParts parts_;
    std::vector<std::unique_ptr<Executable>> executables_;
    Buffer arena_; // shared by all: one step runs at a time
    std::int64_t arena_generation_ = 0;
    std::int64_t last_ns_ = 0; // end of the launch before, for the observer
};

} // namespace lr::engine
