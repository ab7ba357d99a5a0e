// SPDX-License-Identifier: Apache-2.0
//
// engine/device_weights.h: a rank's weights in device memory: matrices in the form of
// cuda/weights.h, tensors that ops take as one dense view as they are. A weight is copied once,
// whatever reads it.
#pragma once

#include "cuda/weights.h"
#include "engine/weights.h"
#include "graph/step.h"

#include <map>
#include <optional>
#include <span>

namespace lr::engine {

class DeviceWeights {
  public:
    // `weights` and `pool`, whose threads lay rows out, outlive it.
    DeviceWeights(const Weights& weights, ThreadPool& pool, cuda::Stream stream)
        : weights_(weights), pool_(pool), stream_(stream) {}

    // Copies what the step's nodes read and is not here yet.
    Status load(const graph::Step& step);

    // By index into Model::entries(), of what was loaded.
    std::span<const ops::WeightPart> parts(std::int32_t entry) const {
        return {&matrices_.at(entry).part, 1};
    }
    const std::byte* data(std::int32_t entry) const { return vectors_.at(entry).data(); }

    std::int64_t bytes() const { return bytes_; }

  private:
    Status load_node(const graph::Step& step, const graph::Node& node,
                     std::optional<cuda::Staging>& staging);
    Status load_matrix(std::int32_t entry, const ops::Weight& weight,
                       std::optional<cuda::Staging>& staging);
    Status load_vector(std::int32_t entry, std::int64_t bytes);

    const Weights& weights_;
    ThreadPool& pool_;
    cuda::Stream stream_;
    std::map<std::int32_t, cuda::DeviceWeight> matrices_;
    std::map<std::int32_t, cuda::DeviceBuffer> vectors_;
    std::int64_t bytes_ = 0;
};

} // namespace lr::engine
