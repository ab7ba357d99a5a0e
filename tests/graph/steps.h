// SPDX-License-Identifier: Apache-2.0
//
// Steps of released sizes for tests: no weights, no device.
#pragma once

#include "graph/step.h"
#include "model/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace lr::graph {

inline model::Model declare(const char* preset, const char* format) {
    return model::Model::declare(*model::preset(preset), *model::format_policy(format));
}

// The first layers of a preset: the rest repeats.
inline model::Model declare_layers(std::string_view preset, std::string_view format,
                                   std::size_t layers) {
    auto config = *model::preset(preset);
    config.layers.resize(layers);
    return model::Model::declare(config, *model::format_policy(format));
}

inline StepShape decode_shape(std::int64_t n, std::int64_t context = 8192) {
    return {.phase = Phase::kDecode,
            .rows = n,
            .sequences = n,
            .logit_rows = n,
            .context = context,
            .slots = n,
            .kv_pages = n * (context / 64)};
}

inline StepShape prefill_shape(std::int64_t n) {
    return {.phase = Phase::kPrefill,
            .rows = n,
            .sequences = 2,
            .logit_rows = 2,
            .context = 2 * n,
            .slots = 2,
            .kv_pages = 64};
}

inline Step build(const model::Model& model, const StepShape& shape, const model::Shard& shard = {},
                  const StepOptions& options = {}) {
    auto step = build_step(model, shard, shape, options);
    EXPECT_TRUE(step) << (step ? "" : step.error().message());
    return step ? std::move(*step) : Step{};
}

inline const Node& node(const Step& step, std::string_view id) {
    for (const Node& candidate : step.nodes)
        if (candidate.id == id)
            return candidate;
    ADD_FAILURE() << "no node " << id;
    return step.nodes.front();
}

inline TensorId tensor_id(const Step& step, std::string_view name) {
    for (std::size_t t = 0; t < step.tensors.size(); ++t)
        if (step.tensors[t].name == name)
            return static_cast<TensorId>(t);
    ADD_FAILURE() << "no tensor " << name;
    return 0;
}

} // namespace lr::graph
