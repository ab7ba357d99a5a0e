// SPDX-License-Identifier: Apache-2.0
#include "verify/launch_local.h"

#include "cpu/reference/reference.h"
#include "graph/path_name.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "verify/cpu_device.h"

namespace lr::verify {
namespace {

constexpr int kPattern = 0xA5; // what no launch leaves behind by chance

bool has_errors(DType dtype) {
    return is_float(dtype) || dtype == DType::kF64 || dtype == DType::kE4M3 ||
           dtype == DType::kE2M1;
}

} // namespace

bool Selection::takes(const graph::Step& step, const graph::Node& node) const {
    if (!path.empty() && graph::path_name(step, node) != path)
        return false;
    if (layer >= 0 && node.layer != layer)
        return false;
    if (!narrow())
        return true;
    return node.layer >= 0 && node.number >= first && node.number <= last;
}

std::string Divergence::text() const {
    return fmt::format("{}: launch {}: {}: {}[{}]: expected {} ({}), got {}", step, launch, node,
                       tensor, fmt::join(mismatch.at, ", "), mismatch.reference, mismatch.expected,
                       mismatch.device);
}

bool LaunchLocal::selected(const graph::Launch& launch) const {
    return std::any_of(launch.nodes.begin(), launch.nodes.end(), [&](std::int32_t n) {
        return selection_.takes(*step_, step_->nodes[static_cast<std::size_t>(n)]);
    });
}

// What the launch writes, filled with the pattern where it writes before it reads, and open for
// errors.
std::vector<LaunchLocal::Written> LaunchLocal::open_launch(const graph::Launch& launch,
                                                           HostTensors& reference) {
    errors_.clear();
    std::vector<Written> written;
    std::set<graph::TensorId> read;
    for (std::int32_t n : launch.nodes) {
        const graph::Node& node = step_->nodes[static_cast<std::size_t>(n)];
        for (const graph::Use& use : node.uses)
            if (use.access != graph::Access::kWrite)
                read.insert(use.tensor);
        for (const graph::Use& use : node.uses) {
            if (use.access == graph::Access::kRead)
                continue;
            const auto found = std::find_if(written.begin(), written.end(), [&](const Written& w) {
                return w.tensor == use.tensor;
            });
            if (found != written.end()) {
                found->node = n;
                continue;
            }
            const std::span<std::byte> bytes = reference.bytes(use.tensor);
            if (!read.contains(use.tensor))
                std::memset(bytes.data(), kPattern, bytes.size());
            written.push_back({use.tensor, n, {bytes.begin(), bytes.end()}});
            const DType dtype = step_->tensors[static_cast<std::size_t>(use.tensor)].dtype;
            if (has_errors(dtype))
                errors_.open(bytes.data(), std::ssize(bytes), dtype);
        }
    }
    return written;
}

Status LaunchLocal::send(const graph::Launch& launch, const HostTensors& reference,
                         const std::vector<Written>& written) {
    std::set<graph::TensorId> sent;
    for (const Written& w : written) {
        sent.insert(w.tensor);
        if (std::find(launch.swallowed.begin(), launch.swallowed.end(), w.tensor) ==
            launch.swallowed.end())
            LR_TRY(device_.write(w.tensor, w.before));
    }
    for (std::int32_t n : launch.nodes)
        for (const graph::Use& use : step_->nodes[static_cast<std::size_t>(n)].uses) {
            const graph::Tensor& tensor = step_->tensors[static_cast<std::size_t>(use.tensor)];
            if (tensor.role != graph::Role::kWeight && sent.insert(use.tensor).second)
                LR_TRY(device_.write(use.tensor, reference.bytes(use.tensor)));
        }
    return {};
}

// The launch, and the earlier stages of its node.
Status LaunchLocal::run_device(std::size_t launch) {
    const graph::Launch& last = plan_->launches[launch];
    for (std::size_t i = 0; last.stage > 0 && i < launch; ++i)
        if (plan_->launches[i].nodes == last.nodes)
            LR_TRY(device_.run(i));
    return device_.run(launch);
}

const double* LaunchLocal::bound_of(graph::TensorId tensor, const HostTensors& reference) const {
    return errors_.find(reference.bytes(tensor).data());
}

Result<std::vector<std::byte>> LaunchLocal::received(const Written& written,
                                                     const HostTensors& reference) {
    std::vector<std::byte> bytes(reference.bytes(written.tensor).size());
    LR_TRY(device_.read(written.tensor, bytes));
    return bytes;
}

Status LaunchLocal::compare_launch(const graph::Launch& launch, const HostTensors& reference,
                                   const std::vector<Written>& written) {
    ++report_.launches;
    ++report_.how[device_.how(launch)];
    std::set<std::string> stems;
    for (const Written& w : written) {
        if (std::find(launch.swallowed.begin(), launch.swallowed.end(), w.tensor) !=
            launch.swallowed.end())
            continue;
        const graph::Node& node = step_->nodes[static_cast<std::size_t>(w.node)];
        LR_TRY_ASSIGN(const std::vector<std::byte> bytes, received(w, reference));
        const View expected = reference.view(w.tensor);
        const Agreement agreement =
            compare(expected, {bytes.data(), expected.dtype, expected.shape},
                    bound_of(w.tensor, reference));
        const std::string stem(ops::op_stem(node.args));
        auto& [launches, sum] = report_.ops[stem];
        launches += stems.insert(stem).second;
        sum.add(agreement);
        if (agreement.first)
            report_.divergences.push_back({name_, launch.name, node.label(),
                                           step_->tensors[static_cast<std::size_t>(w.tensor)].name,
                                           *agreement.first});
    }
    return {};
}

// Each fault in every tensor of the node that has a place for it: the launch is run anew, its right
// result spoilt on the device, and read back as any other.
Status LaunchLocal::inject(std::size_t index, const HostTensors& reference,
                           const std::vector<Written>& written) {
    const graph::Launch& launch = plan_->launches[index];
    for (const Written& w : written) {
        const graph::Node& node = step_->nodes[static_cast<std::size_t>(w.node)];
        if (node.id != injection_->node)
            continue;
        for (Fault fault : injection_->faults) {
            LR_TRY(send(launch, reference, written));
            LR_TRY(run_device(index));
            LR_TRY_ASSIGN(std::vector<std::byte> bytes, received(w, reference));
            const View expected = reference.view(w.tensor);
            const double* bound = bound_of(w.tensor, reference);
            const auto place =
                put_fault(fault, {bytes.data(), expected.dtype, expected.shape}, w.before, bound);
            if (!place)
                continue;
            LR_TRY(device_.write(w.tensor, bytes));
            LR_TRY_ASSIGN(bytes, received(w, reference));
            report_.faults.push_back(
                {fault, name_, node.label(),
                 step_->tensors[static_cast<std::size_t>(w.tensor)].name, *place,
                 compare(expected, {bytes.data(), expected.dtype, expected.shape}, bound).first});
        }
    }
    return {};
}

Status LaunchLocal::run(const std::string& name, const graph::Step& step, const graph::Plan& plan,
                        HostTensors& reference, const std::function<void()>& done) {
    name_ = name;
    step_ = &step;
    plan_ = &plan;
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        const graph::Launch& launch = plan.launches[i];
        if (!last_stage(plan, i)) {
            done();
            continue;
        }
        const std::vector<Written> written = open_launch(launch, reference);
        const bool compared = selected(launch);
        if (compared)
            LR_TRY(send(launch, reference, written));
        for (std::int32_t n : launch.nodes)
            LR_TRY(cpu::reference::run(reference.bind(step.nodes[static_cast<std::size_t>(n)]),
                                       errors_, pool_));
        if (compared) {
            LR_TRY(run_device(i));
            LR_TRY(compare_launch(launch, reference, written));
            if (injection_)
                LR_TRY(inject(i, reference, written));
        }
        done();
    }
    return {};
}

} // namespace lr::verify
