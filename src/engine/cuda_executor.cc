// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda_executor.h"

#include "core/check.h"
#include "cuda/device.h"
#include "cuda/timeline.h"
#include "engine/binding.h"
#include "graph/verify_plan.h"

#include <algorithm>

namespace lr::engine {

Result<std::unique_ptr<CudaExecutor>> CudaExecutor::create(const ExecutorParts& parts,
                                                           std::int32_t device) {
    LR_TRY(cuda::use_device(device));
    LR_TRY_ASSIGN(cuda::StreamOwner stream, cuda::StreamOwner::create());
    LR_TRY_ASSIGN(const cuda::DeviceList list, cuda::list_devices());
    std::string name =
        fmt::format("cuda:{} {}", device, list.devices[static_cast<std::size_t>(device)].name);
    return std::unique_ptr<CudaExecutor>(
        new CudaExecutor(parts, device, std::move(name), std::move(stream)));
}

Result<Executable*> CudaExecutor::prepare(const graph::StepShape& shape) {
    for (const auto& executable : executables_)
        if (executable->step().shape == shape)
            return executable.get();
    LR_TRY_ASSIGN(graph::Step step,
                  graph::build_step(parts_.model, parts_.shard, shape, parts_.options));
    auto executable = std::make_unique<CudaExecutable>(std::move(step));
    LR_TRY(graph::verify_plan(executable->step_, executable->plan_, &executable->memory_));
    executables_.push_back(std::move(executable));
    return executables_.back().get();
}

Status CudaExecutor::place(CudaExecutable& executable) {
    if (executable.input_region)
        return {};
    LR_TRY(weights_.load(executable.step_));
    std::int64_t scratch = 256;
    for (const graph::Node& node : executable.step_.nodes)
        scratch = std::max(scratch, cuda::scratch_bytes(node.args));
    LR_TRY(grow(arena_, arena_bytes_, executable.memory_.arena_bytes, "activations"));
    LR_TRY(grow(scratch_, scratch_bytes_, scratch, "scratch"));
    LR_TRY_ASSIGN(executable.input_region,
                  memory_->allocate(executable.inputs_.bytes(), "step inputs"));
    return {};
}

Status CudaExecutor::grow(std::unique_ptr<Region>& region, std::int64_t& size, std::int64_t bytes,
                          std::string_view what) {
    if (size >= bytes)
        return {};
    LR_TRY(cuda::synchronize(stream_.get()));
    region.reset(); // the old one first: the two need not fit together
    size = 0;
    LR_TRY_ASSIGN(region, memory_->allocate(bytes, what));
    size = bytes;
    ++generation_; // every capture is of the old addresses
    return {};
}

Result<StateStore> CudaExecutor::allocate_states(const graph::Step& step) {
    LR_TRY(cuda::use_device(device_)); // of this thread
    LR_TRY(weights_.load(step));
    return StateStore::allocate(step, memory_);
}

Status CudaExecutor::launch(const CudaExecutable& executable, const graph::Node& node,
                            StateStore& states) {
    const graph::Step& step = executable.step_;
    const TensorAddress address = [&](graph::TensorId id) -> std::byte* {
        const graph::Tensor& tensor = step.tensors[static_cast<std::size_t>(id)];
        switch (tensor.role) {
        case graph::Role::kInput:
            return executable.input_region->data() + executable.inputs_.offset(tensor.input);
        case graph::Role::kWeight: // read-only; views of weights are never written
            return const_cast<std::byte*>(weights_.data(tensor.entry));
        case graph::Role::kState:
            return states.data(tensor.layer, tensor.state);
        case graph::Role::kActivation:
        case graph::Role::kOutput:
            break;
        }
        return arena_->data() + executable.memory_.offset[static_cast<std::size_t>(id)];
    };
    const Status status =
        cuda::run(bind_args(step, node, address,
                            [this](std::int32_t entry) { return weights_.parts(entry); }),
                  {stream_.get(), scratch_->data(), scratch_bytes_});
    if (!status.ok())
        return fail(status.code(), "{}: {}", node.label(), status.message());
    return {};
}

Status CudaExecutor::enqueue(const CudaExecutable& executable, StateStore& states) {
    for (const graph::Launch& each : executable.plan_.launches)
        for (const std::int32_t index : each.nodes)
            LR_TRY(launch(executable, executable.step_.nodes[static_cast<std::size_t>(index)],
                          states));
    return {};
}

Status CudaExecutor::run_observed(const CudaExecutable& executable, StateStore& states) {
    constexpr std::int64_t kLaunchNs = 10'000; // of the host, a node with its mark, at most
    const graph::Step& step = executable.step_;
    LR_TRY_ASSIGN(cuda::Timeline timeline, cuda::Timeline::create(step.nodes.size() + 1));
    LR_TRY(cuda::hold(stream_.get(), kLaunchNs * std::ssize(step.nodes)));
    LR_TRY(timeline.mark(stream_.get()));
    std::vector<const graph::Node*> ran;
    for (const graph::Launch& each : executable.plan_.launches)
        for (const std::int32_t index : each.nodes) {
            ran.push_back(&step.nodes[static_cast<std::size_t>(index)]);
            LR_TRY(launch(executable, *ran.back(), states));
            LR_TRY(timeline.mark(stream_.get()));
        }
    LR_TRY_ASSIGN(const std::vector<std::int64_t> ends, timeline.nanoseconds());
    for (std::size_t i = 0; i < ran.size(); ++i)
        LR_TRY(parts_.observer->after(
            {0, step, *ran[i], ran[i]->args, observed_ns_ + ends[i], observed_ns_ + ends[i + 1]}));
    observed_ns_ += ends.back();
    return {};
}

Status CudaExecutor::capture(CudaExecutable& executable, StateStore& states) {
    if (executable.graph && executable.generation == generation_)
        return {};
    executable.graph.reset();
    LR_TRY_ASSIGN(cuda::CapturedGraph graph, cuda::CapturedGraph::capture(stream_.get(), [&] {
                      return enqueue(executable, states);
                  }));
    executable.graph.emplace(std::move(graph));
    executable.generation = generation_;
    return {};
}

Status CudaExecutor::run(Executable& prepared, std::span<const std::byte> inputs,
                         StateStore& states) {
    LR_TRY(cuda::use_device(device_));
    auto& executable = static_cast<CudaExecutable&>(prepared);
    LR_CHECK_EQ(static_cast<std::int64_t>(inputs.size()), executable.inputs_.bytes());
    LR_TRY(place(executable));
    for (auto& [id, copy] : executable.copies)
        copy.fresh = false;
    LR_TRY(memory_->copy_in(executable.input_region->data(), inputs));
    if (parts_.observer)
        return run_observed(executable, states);
    LR_TRY(capture(executable, states));
    LR_TRY(executable.graph->replay(stream_.get()));
    return cuda::synchronize(stream_.get());
}

Result<ConstView> CudaExecutor::tensor(Executable& prepared, graph::TensorId id) {
    auto& executable = static_cast<CudaExecutable&>(prepared);
    const graph::Tensor& tensor = executable.step_.tensors[static_cast<std::size_t>(id)];
    CudaExecutable::Copy& copy = executable.copies[id];
    if (copy.memory.size() == 0) {
        LR_TRY_ASSIGN(copy.memory, Buffer::allocate(tensor.bytes(), tensor.name));
    }
    if (!copy.fresh) {
        const std::int64_t offset = executable.memory_.offset[static_cast<std::size_t>(id)];
        LR_CHECK_GE(offset, 0);
        LR_TRY(memory_->copy_out({copy.memory.data(), static_cast<std::size_t>(tensor.bytes())},
                                 arena_->data() + offset));
        copy.fresh = true;
    }
    return ConstView(copy.memory.data(), tensor.dtype, tensor.shape);
}

} // namespace lr::engine
