// SPDX-License-Identifier: Apache-2.0
//
// verify/cuda_device.h: the CUDA backend as a device under test, op by op: one op of cuda/run.h for
// each node. A fused launch runs as its leaf ops, an expanded node whole at its last stage.
#pragma once

#include "cuda/run.h"
#include "engine/device_weights.h"

#include <map>
#include <memory>

#include "verify/device.h"

namespace lr::verify {

class CudaDevice final : public Device {
  public:
    // On the current device. `weights` and `pool` outlive it.
    static Result<std::unique_ptr<CudaDevice>> create(const engine::Weights& weights,
                                                      ThreadPool& pool);

    std::string name() const override { return name_; }
    std::string how(const graph::Launch& launch) const override;
    Status read(graph::TensorId tensor, std::span<std::byte> bytes) override;
    Status write(graph::TensorId tensor, std::span<const std::byte> bytes) override;
    Status prepare(const graph::Step& step, const graph::Plan& plan) override;
    Status run(std::size_t launch) override;

  private:
    CudaDevice(std::string name, cuda::StreamOwner stream, const engine::Weights& weights,
               ThreadPool& pool)
        : name_(std::move(name)), stream_(std::move(stream)),
          weights_(weights, pool, stream_.get()) {}

    const cuda::DeviceBuffer& memory(graph::TensorId tensor) const;
    std::byte* address(graph::TensorId tensor) const;
    Status allocate(graph::TensorId tensor);

    std::string name_;
    cuda::StreamOwner stream_;
    engine::DeviceWeights weights_;
    const graph::Step* step_ = nullptr;
    const graph::Plan* plan_ = nullptr;
    std::map<std::pair<std::int32_t, graph::StateKind>, cuda::DeviceBuffer> states_;
    std::map<graph::TensorId, cuda::DeviceBuffer> tensors_;
    std::unique_ptr<cuda::DeviceBuffer> scratch_;
};

} // namespace lr::verify
