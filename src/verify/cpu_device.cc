// SPDX-License-Identifier: Apache-2.0
#include "verify/cpu_device.h"

#include "cpu/isa.h"
#include "engine/binding.h"

#include <cstring>

namespace lr::verify {

bool last_stage(const graph::Plan& plan, std::size_t launch) {
    const graph::Launch& mine = plan.launches[launch];
    for (std::size_t i = launch + 1; mine.stage >= 0 && i < plan.launches.size(); ++i)
        if (plan.launches[i].nodes == mine.nodes)
            return false;
    return true;
}

std::string CpuDevice::name() const {
    return fmt::format("cpu, {} kernels, {} thread{}", cpu::isa_name(cpu::isa()), pool_.size(),
                       pool_.size() == 1 ? "" : "s");
}

std::string CpuDevice::how(const graph::Launch& launch) const {
    if (launch.stage >= 0)
        return "the whole node at its last stage";
    if (launch.nodes.size() > 1)
        return fmt::format("its {} leaf ops, one by one", launch.nodes.size());
    return "one kernel";
}

Status CpuDevice::prepare(const graph::Step& step, const graph::Plan& plan) {
    step_ = &step;
    plan_ = &plan;
    LR_TRY_ASSIGN(HostTensors tensors, HostTensors::allocate(step, weights_, states_));
    tensors_.emplace(std::move(tensors));
    return {};
}

Status CpuDevice::write(graph::TensorId tensor, std::span<const std::byte> bytes) {
    std::memcpy(tensors_->bytes(tensor).data(), bytes.data(), bytes.size());
    return {};
}

Status CpuDevice::read(graph::TensorId tensor, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), tensors_->bytes(tensor).data(), bytes.size());
    return {};
}

Status CpuDevice::run(std::size_t index) {
    if (!last_stage(*plan_, index))
        return {};
    for (const std::int32_t node : plan_->launches[index].nodes) {
        const ops::AnyArgs args = tensors_->bind(step_->nodes[static_cast<std::size_t>(node)]);
        LR_TRY(ops::check(args));
        engine::run_on_cpu(args, pool_);
    }
    return {};
}

} // namespace lr::verify
