// SPDX-License-Identifier: Apache-2.0
#include "verify/host_tensors.h"

#include "core/check.h"
#include "engine/binding.h"

namespace lr::verify {

Result<HostTensors> HostTensors::allocate(const graph::Step& step, const engine::Weights& weights,
                                          const engine::StateStore& states) {
    HostTensors tensors(step, weights, states);
    LR_TRY_ASSIGN(tensors.inputs_, Buffer::allocate(tensors.layout_.bytes(), "step inputs"));
    tensors.memory_.resize(step.tensors.size());
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
        const graph::Tensor& tensor = step.tensors[t];
        if (tensor.role == graph::Role::kActivation || tensor.role == graph::Role::kOutput) {
            LR_TRY_ASSIGN(tensors.memory_[t], Buffer::allocate(tensor.bytes(), tensor.name));
        }
    }
    return tensors;
}

std::byte* HostTensors::address(graph::TensorId id) const {
    const graph::Tensor& tensor = step_->tensors[static_cast<std::size_t>(id)];
    switch (tensor.role) {
    case graph::Role::kInput:
        return inputs_.data() + layout_.offset(tensor.input);
    case graph::Role::kWeight: // read-only; views of weights are never written
        return const_cast<std::byte*>(weights_->data(tensor.entry));
    case graph::Role::kState:
        return states_->data(tensor.layer, tensor.state);
    case graph::Role::kActivation:
    case graph::Role::kOutput:
        break;
    }
    return memory_[static_cast<std::size_t>(id)].data();
}

View HostTensors::view(graph::TensorId id) const {
    const graph::Tensor& tensor = step_->tensors[static_cast<std::size_t>(id)];
    LR_CHECK(tensor.role != graph::Role::kWeight);
    return {address(id), tensor.dtype, tensor.shape};
}

std::span<std::byte> HostTensors::bytes(graph::TensorId id) const {
    const View whole = view(id);
    return {whole.data, static_cast<std::size_t>(whole.bytes())};
}

std::span<std::byte> HostTensors::inputs() const {
    return {inputs_.data(), static_cast<std::size_t>(inputs_.size())};
}

ops::AnyArgs HostTensors::bind(const graph::Node& node) const {
    return engine::bind_args(
        *step_, node, [this](graph::TensorId id) { return address(id); }, *weights_);
}

} // namespace lr::verify
