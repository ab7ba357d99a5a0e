// SPDX-License-Identifier: Apache-2.0
//
// engine/cuda_executor.h: steps on a GPU. Each bucket is captured when it first runs and replayed
// from then on: what changes from step to step is data in the input block.
#pragma once

#include "cuda/graph.h"
#include "cuda/run.h"
#include "engine/cuda_memory.h"
#include "engine/device_weights.h"
#include "engine/executor.h"

#include <map>

namespace lr::engine {

// A step and what the device holds for it.
struct CudaExecutable final : Executable {
    using Executable::Executable;

    std::unique_ptr<Region> input_region;
    std::optional<cuda::CapturedGraph> graph; // on the memory of `generation`
    std::int64_t generation = -1;
    // Host copies of outputs, kept from step to step; fresh: of the last run.
    struct Copy {
        Buffer memory;
        bool fresh = false;
    };
    std::map<graph::TensorId, Copy> copies;
};

class CudaExecutor final : public Executor {
  public:
    // On GPU `device`, with one rank.
    static Result<std::unique_ptr<CudaExecutor>> create(const ExecutorParts& parts,
                                                        std::int32_t device);

    std::string device(int) const override { return name_; }
    Result<Executable*> prepare(const graph::StepShape& shape) override;
    Result<ConstView> tensor(Executable& executable, graph::TensorId id) override;
    Result<StateStore> allocate_states(const graph::Step& step) override;
    Status run(Executable& executable, std::span<const std::byte> inputs,
               StateStore& states) override;

  private:
    CudaExecutor(const ExecutorParts& parts, std::int32_t device, std::string name,
                 cuda::StreamOwner stream)
        : parts_(parts), device_(device), name_(std::move(name)), stream_(std::move(stream)),
          memory_(std::make_shared<CudaMemory>(stream_.get())),
          weights_(parts.weights, parts.pool, stream_.get()) {}

    // Device memory for all that the step needs.
    Status place(CudaExecutable& executable);
    Status grow(std::unique_ptr<Region>& region, std::int64_t& size, std::int64_t bytes,
                std::string_view what);
    Status capture(CudaExecutable& executable, StateStore& states);
    Status enqueue(const CudaExecutable& executable, StateStore& states);
    Status launch(const CudaExecutable& executable, const graph::Node& node, StateStore& states);
    // Node by node with marks between them, for the observer.
    Status run_observed(const CudaExecutable& executable, StateStore& states);

    ExecutorParts parts_;
    std::int32_t device_;
    std::string name_;
    cuda::StreamOwner stream_;
    std::shared_ptr<CudaMemory> memory_;
    DeviceWeights weights_;
    std::vector<std::unique_ptr<CudaExecutable>> executables_; // prepare's alone
    std::unique_ptr<Region> arena_, scratch_; // shared by all: one step runs at a time
    std::int64_t arena_bytes_ = 0, scratch_bytes_ = 0;
    std::int64_t generation_ = 0;  // of arena and scratch
    std::int64_t observed_ns_ = 0; // of all steps with an observer so far, end to end
};

} // namespace lr::engine
