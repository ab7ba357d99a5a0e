// SPDX-License-Identifier: Apache-2.0
//
// engine/binding.h: from a node's symbolic arguments to a launch.
#pragma once

#include "core/thread_pool.h"
#include "engine/state.h"
#include "engine/weights.h"
#include "graph/memory_plan.h"
#include "graph/step.h"

#include <functional>
#include <span>
#include <vector>

namespace lr::engine {

// Where each tensor of a step lives.
using TensorAddress = std::function<std::byte*(graph::TensorId)>;
// The parts of each weight, by index into Model::entries().
using WeightParts = std::function<std::span<const ops::WeightPart>(std::int32_t)>;

// The node's arguments with every symbol replaced by memory and every weight by its parts.
ops::AnyArgs bind_args(const graph::Step& step, const graph::Node& node,
                       const TensorAddress& address, const WeightParts& parts);
// With the weights as they lie in host memory.
ops::AnyArgs bind_args(const graph::Step& step, const graph::Node& node,
                       const TensorAddress& address, const Weights& weights);

// Runs one bound op with the CPU reference.
void run_on_cpu(const ops::AnyArgs& args, ThreadPool& pool);

} // namespace lr::engine
