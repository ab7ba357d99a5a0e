// SPDX-License-Identifier: Apache-2.0
//
// verify/cpu_device.h: the CPU backend as a device under test: the fast kernels of cpu/, those of
// the instruction set in use. It has a kernel for each leaf op and none for a fusion or for a stage
// of an expansion: a fused launch runs as its leaf ops, an expanded node whole at its last stage.
// What a plan's rewrites change there is the order of launches and what is materialised.
#pragma once

#include "core/thread_pool.h"

#include <optional>

#include "verify/device.h"
#include "verify/host_tensors.h"

namespace lr::verify {

class CpuDevice final : public Device {
  public:
    // All outlive it. `states` are the device's own, allocated for the steps that it will run.
    CpuDevice(const engine::Weights& weights, engine::StateStore& states, ThreadPool& pool)
        : weights_(weights), states_(states), pool_(pool) {}

    std::string name() const override;
    std::string how(const graph::Launch& launch) const override;
    Status prepare(const graph::Step& step, const graph::Plan& plan) override;
    Status write(graph::TensorId tensor, std::span<const std::byte> bytes) override;
    Status read(graph::TensorId tensor, std::span<std::byte> bytes) override;
    Status run(std::size_t launch) override;

  private:
    const engine::Weights& weights_;
    engine::StateStore& states_;
    ThreadPool& pool_;
    const graph::Step* step_ = nullptr;
    const graph::Plan* plan_ = nullptr;
    std::optional<HostTensors> tensors_;
};

// Whether the launch is the last of its node's stages, or has none.
bool last_stage(const graph::Plan& plan, std::size_t launch);

} // namespace lr::verify
