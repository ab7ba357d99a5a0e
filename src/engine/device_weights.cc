// SPDX-License-Identifier: Apache-2.0
#include "engine/device_weights.h"

#include "graph/symbol.h"

#include <vector>

namespace lr::engine {
namespace {

// What a node reads of the model.
struct WeightReader {
    const graph::Step& step;
    std::vector<std::pair<std::int32_t, ops::Weight>> matrices = {};
    std::vector<std::pair<std::int32_t, std::int64_t>> vectors = {}; // entry, bytes

    void in(const char*, ConstView& view) {
        const graph::Symbol symbol = graph::to_symbol(view.data);
        if (symbol.tensor < 0)
            return;
        const graph::Tensor& tensor = step.tensors[static_cast<std::size_t>(symbol.tensor)];
        if (tensor.role == graph::Role::kWeight)
            vectors.emplace_back(tensor.entry, tensor.bytes());
    }
    void weight(const char*, ops::Weight& weight) {
        if (weight.id >= 0)
            matrices.emplace_back(step.tensors[static_cast<std::size_t>(weight.id)].entry, weight);
    }
    void state(const char*, View&) {}
    void out(const char*, View&) {}
};

} // namespace

Status DeviceWeights::load(const graph::Step& step) {
    std::optional<cuda::Staging> staging; // when there is something to copy
    for (const graph::Node& node : step.nodes)
        if (!node.alias)
            LR_TRY(load_node(step, node, staging));
    return staging ? staging->finish() : Status();
}

Status DeviceWeights::load_node(const graph::Step& step, const graph::Node& node,
                                std::optional<cuda::Staging>& staging) {
    WeightReader reader{step};
    ops::AnyArgs args = node.args;
    std::visit([&](auto& typed) { typed.visit(reader); }, args);
    for (const auto& [entry, weight] : reader.matrices)
        LR_TRY(load_matrix(entry, weight, staging));
    for (const auto& [entry, bytes] : reader.vectors)
        LR_TRY(load_vector(entry, bytes));
    return {};
}

Status DeviceWeights::load_matrix(std::int32_t entry, const ops::Weight& weight,
                                  std::optional<cuda::Staging>& staging) {
    if (matrices_.contains(entry))
        return {};
    ops::Weight bound = weight;
    bound.parts = weights_.parts(entry);
    if (!staging) {
        LR_TRY_ASSIGN(cuda::Staging fresh, cuda::Staging::create(stream_));
        staging.emplace(std::move(fresh));
    }
    LR_TRY_ASSIGN(cuda::DeviceWeight device, cuda::upload(bound, *staging, pool_));
    bytes_ += static_cast<std::int64_t>(device.memory.bytes());
    matrices_.emplace(entry, std::move(device));
    return {};
}

Status DeviceWeights::load_vector(std::int32_t entry, std::int64_t bytes) {
    if (vectors_.contains(entry))
        return {};
    LR_TRY_ASSIGN(cuda::DeviceBuffer memory,
                  cuda::DeviceBuffer::allocate(static_cast<std::size_t>(bytes)));
    LR_TRY(memory.upload(weights_.data(entry), stream_));
    bytes_ += bytes;
    vectors_.emplace(entry, std::move(memory));
    return {};
}

} // namespace lr::engine
