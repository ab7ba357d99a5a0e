// SPDX-License-Identifier: Apache-2.0
//
// verify/host_tensors.h: host memory for every tensor of a step, none shared.
#pragma once

#include "engine/batch.h"
#include "engine/state.h"
#include "engine/weights.h"

#include <span>
#include <vector>

namespace lr::verify {

class HostTensors {
  public:
    // `step`, `weights` and `states` outlive the result. States come from the store.
    static Result<HostTensors> allocate(const graph::Step& step, const engine::Weights& weights,
                                        const engine::StateStore& states);

    // Not of weights.
    std::span<std::byte> bytes(graph::TensorId tensor) const;
    View view(graph::TensorId tensor) const;
    // The node's arguments, on this memory.
    ops::AnyArgs bind(const graph::Node& node) const;
    // The block that engine::InputBlock lays out.
    std::span<std::byte> inputs() const;

  private:
    HostTensors(const graph::Step& step, const engine::Weights& weights,
                const engine::StateStore& states)
        : step_(&step), weights_(&weights), states_(&states), layout_(step) {}
    std::byte* address(graph::TensorId tensor) const;

    const graph::Step* step_;
    const engine::Weights* weights_;
    const engine::StateStore* states_;
    engine::InputBlock layout_;
    Buffer inputs_;
    std::vector<Buffer> memory_; // by tensor; empty: not an activation or output
};

} // namespace lr::verify
