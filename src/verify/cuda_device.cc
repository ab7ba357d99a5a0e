// SPDX-License-Identifier: Apache-2.0
#include "verify/cuda_device.h"

#include "cuda/device.h"
#include "engine/binding.h"

#include <algorithm>
#include <vector>

#include "verify/cpu_device.h"

namespace lr::verify {

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const engine::Weights& weights,
                                                       ThreadPool& pool) {
    LR_TRY_ASSIGN(cuda::DeviceList list, cuda::list_devices());
    if (list.devices.empty())
        return fail(Code::kNotFound, "cuda: no GPU on this machine");
    const cuda::DeviceInfo& card = list.devices.front();
    if (!card.refusal.empty())
        return fail(Code::kUnsupported, "cuda: {}: {}", card.name, card.refusal);
    LR_TRY_ASSIGN(cuda::StreamOwner stream, cuda::StreamOwner::create());
    return std::unique_ptr<CudaDevice>(
        new CudaDevice("cuda, " + card.name, std::move(stream), weights, pool));
}

std::string CudaDevice::how(const graph::Launch& launch) const {
    if (launch.stage >= 0)
        return "the whole node at its last stage";
    if (launch.nodes.size() > 1)
        return fmt::format("its {} leaf ops, one by one", launch.nodes.size());
    return "one op";
}

Status CudaDevice::allocate(graph::TensorId id) {
    const graph::Tensor& tensor = step_->tensors[static_cast<std::size_t>(id)];
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(tensor.bytes(), 16));
    if (tensor.role != graph::Role::kState) {
        LR_TRY_ASSIGN(cuda::DeviceBuffer memory, cuda::DeviceBuffer::allocate(bytes));
        tensors_.emplace(id, std::move(memory));
        return {};
    }
    if (states_.contains({tensor.layer, tensor.state}))
        return {};
    LR_TRY_ASSIGN(cuda::DeviceBuffer memory, cuda::DeviceBuffer::allocate(bytes));
    const std::vector<std::byte> zeros(bytes);
    LR_TRY(memory.upload(zeros.data(), stream_.get()));
    states_.emplace(std::pair(tensor.layer, tensor.state), std::move(memory));
    return {};
}

Status CudaDevice::prepare(const graph::Step& step, const graph::Plan& plan) {
    step_ = &step;
    plan_ = &plan;
    LR_TRY(weights_.load(step));
    tensors_.clear();
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.tensors[t].role != graph::Role::kWeight)
            LR_TRY(allocate(static_cast<graph::TensorId>(t)));
    std::int64_t scratch = 256;
    for (const graph::Node& node : step.nodes)
        scratch = std::max(scratch, cuda::scratch_bytes(node.args));
    scratch_.reset();
    LR_TRY_ASSIGN(cuda::DeviceBuffer memory,
                  cuda::DeviceBuffer::allocate(static_cast<std::size_t>(scratch)));
    scratch_ = std::make_unique<cuda::DeviceBuffer>(std::move(memory));
    return {};
}

const cuda::DeviceBuffer& CudaDevice::memory(graph::TensorId id) const {
    const graph::Tensor& tensor = step_->tensors[static_cast<std::size_t>(id)];
    return tensor.role == graph::Role::kState ? states_.at({tensor.layer, tensor.state})
                                              : tensors_.at(id);
}

std::byte* CudaDevice::address(graph::TensorId id) const {
    const graph::Tensor& tensor = step_->tensors[static_cast<std::size_t>(id)];
    if (tensor.role == graph::Role::kWeight) // read-only; views of weights are never written
        return const_cast<std::byte*>(weights_.data(tensor.entry));
    return memory(id).data();
}

Status CudaDevice::write(graph::TensorId tensor, std::span<const std::byte> bytes) {
    return cuda::copy_in(memory(tensor).data(), bytes, stream_.get());
}

Status CudaDevice::read(graph::TensorId tensor, std::span<std::byte> bytes) {
    return cuda::copy_out(memory(tensor).data(), bytes, stream_.get());
}

Status CudaDevice::run(std::size_t index) {
    if (!last_stage(*plan_, index))
        return {};
    const cuda::Lane lane{stream_.get(), scratch_->data(),
                          static_cast<std::int64_t>(scratch_->bytes())};
    for (const std::int32_t node : plan_->launches[index].nodes)
        LR_TRY(cuda::run(engine::bind_args(
                             *step_, step_->nodes[static_cast<std::size_t>(node)],
                             [this](graph::TensorId id) { return address(id); },
                             [this](std::int32_t entry) { return weights_.parts(entry); }),
                         lane));
    return cuda::synchronize(stream_.get());
}

} // namespace lr::verify
