// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include "core/check.h"
#include "core/clock.h"
#include "cpu/isa.h"
#include "graph/verify_plan.h"

#include <cstring>
#include <utility>

namespace lr::engine {

Executable::Executable(graph::Step step)
    : step_(std::move(step)), plan_(graph::reference_plan(step_)),
      memory_(graph::plan_memory(step_, plan_)), inputs_(step_) {}

Result<Executable*> CpuExecutor::prepare(const graph::StepShape& shape) {
    for (const auto& executable : executables_)
        if (executable->step().shape == shape)
            return executable.get();
    LR_TRY_ASSIGN(graph::Step step,
                  graph::build_step(parts_.model, parts_.shard, shape, parts_.options));
    auto executable = std::make_unique<Executable>(std::move(step));
    LR_TRY(graph::verify_plan(executable->step_, executable->plan_, &executable->memory_));
    LR_TRY_ASSIGN(executable->input_memory_,
                  Buffer::allocate(executable->inputs_.bytes(), "step inputs"));
    executables_.push_back(std::move(executable));
    return executables_.back().get();
}

Status CpuExecutor::bind(Executable& executable, StateStore& states) {
    if (arena_.size() < executable.memory_.arena_bytes) {
        arena_ = Buffer(); // the old one first: the two need not fit together
        LR_TRY_ASSIGN(arena_, Buffer::allocate(executable.memory_.arena_bytes, "activations"));
        ++arena_generation_;
    }
    if (executable.bound_to_arena_ == arena_generation_)
        return {};
    const graph::Step& step = executable.step_;
    const TensorAddress address = [&](graph::TensorId id) -> std::byte* {
        const graph::Tensor& tensor = step.tensors[static_cast<std::size_t>(id)];
        switch (tensor.role) {
        case graph::Role::kInput:
            return executable.input_memory_.data() + executable.inputs_.offset(tensor.input);
        case graph::Role::kWeight: // read-only; views of weights are never written
            return const_cast<std::byte*>(parts_.weights.data(tensor.entry));
        case graph::Role::kState:
            return states.data(tensor.layer, tensor.state);
        case graph::Role::kActivation:
        case graph::Role::kOutput:
            break;
        }
        return arena_.data() + executable.memory_.offset[static_cast<std::size_t>(id)];
    };
    executable.bound_.clear();
    for (const graph::Launch& launch : executable.plan_.launches)
        for (std::int32_t index : launch.nodes) {
            const graph::Node& node = step.nodes[static_cast<std::size_t>(index)];
            ops::AnyArgs args = bind_args(step, node, address, parts_.weights);
            LR_TRY(ops::check(args));
            const bool collective = is_collective(args);
            executable.bound_.push_back({&node, std::move(args), collective});
        }
    executable.bound_to_arena_ = arena_generation_;
    return {};
}

Status CpuExecutor::run(Executable& executable, std::span<const std::byte> inputs,
                        StateStore& states) {
    LR_TRY(bind(executable, states));
    LR_CHECK_EQ(static_cast<std::int64_t>(inputs.size()), executable.inputs_.bytes());
    std::memcpy(executable.input_memory_.data(), inputs.data(), inputs.size());
    last_ns_ = parts_.observer ? monotonic_ns() : 0;
    for (Executable::Bound& bound : executable.bound_)
        LR_TRY(run_node(bound, executable.step_));
    return {};
}

Status CpuExecutor::run_node(Executable::Bound& bound, const graph::Step& step) {
    if (bound.collective)
        LR_TRY(run_collective(bound.args, bound.node->id, parts_.comms, parts_.pool));
    else
        run_on_cpu(bound.args, parts_.pool);
    if (!parts_.observer)
        return {};
    const int rank = parts_.shard.ep_rank * parts_.shard.tp + parts_.shard.tp_rank;
    // One look at the clock a launch: it begins where the one before ended.
    const std::int64_t start = std::exchange(last_ns_, monotonic_ns());
    return parts_.observer->after({rank, step, *bound.node, bound.args, start, last_ns_});
}

std::string CpuExecutor::device(int threads) const {
    return fmt::format("CPU {}, {} thread{}", cpu::isa_name(cpu::isa()), threads,
                       threads == 1 ? "" : "s");
}

Result<StateStore> CpuExecutor::allocate_states(const graph::Step& step) {
    return StateStore::allocate(step);
}

Result<ConstView> CpuExecutor::tensor(Executable& executable, graph::TensorId id) {
    const graph::Tensor& tensor = executable.step_.tensors[static_cast<std::size_t>(id)];
    const std::int64_t offset = executable.memory_.offset[static_cast<std::size_t>(id)];
    LR_CHECK_GE(offset, 0);
    return ConstView(arena_.data() + offset, tensor.dtype, tensor.shape);
}

} // namespace lr::engine
