// SPDX-License-Identifier: Apache-2.0
#include "verify/free_run.h"

#include "cpu/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lr::verify {
namespace {

// Runs one node of the reference on these tensors.
Status run_node(const graph::Step& step, const graph::Node& node, HostTensors& tensors,
                ThreadPool& pool) {
    cpu::reference::Errors errors;
    for (const graph::Use& use : node.uses) {
        const DType dtype = step.tensors[static_cast<std::size_t>(use.tensor)].dtype;
        if (use.access == graph::Access::kRead || dtype == DType::kI32 || dtype == DType::kU16)
            continue;
        const std::span<std::byte> bytes = tensors.bytes(use.tensor);
        errors.open(bytes.data(), std::ssize(bytes), dtype);
    }
    return cpu::reference::run(tensors.bind(node), errors, pool);
}

const ops::RoutingScoresArgs* scores_of(const ops::AnyArgs& args) {
    return std::get_if<ops::RoutingScoresArgs>(&args);
}

// The node's ids become `forced`, and its weights theirs.
void force(const ops::RoutingScoresArgs& args, const std::vector<std::int32_t>& forced) {
    std::copy(forced.begin(), forced.end(), args.ids.as<std::int32_t>());
    cpu::reference::Errors errors;
    errors.open(args.weights.data, args.weights.bytes(), args.weights.dtype);
    routing_weights(args, errors);
}

Status copy_in(Device& device, const graph::Step& step, const graph::Node& node,
               HostTensors& scratch) {
    for (const graph::Use& use : node.uses)
        if (step.tensors[static_cast<std::size_t>(use.tensor)].role != graph::Role::kInput)
            LR_TRY(device.read(use.tensor, scratch.bytes(use.tensor)));
    return {};
}

Status copy_out(Device& device, const graph::Node& node, const HostTensors& scratch) {
    for (const graph::Use& use : node.uses)
        if (use.access != graph::Access::kRead)
            LR_TRY(device.write(use.tensor, scratch.bytes(use.tensor)));
    return {};
}

} // namespace

Status run_reference(const graph::Step& step, HostTensors& tensors, ThreadPool& pool,
                     const Routing* forced) {
    for (const graph::Node& node : step.nodes) {
        if (node.alias)
            continue;
        LR_TRY(run_node(step, node, tensors, pool));
        const ops::AnyArgs args = tensors.bind(node);
        if (const auto* scores = scores_of(args); scores && forced)
            force(*scores, forced->at(node.layer));
    }
    return {};
}

Routing routing_of(const graph::Step& step, const HostTensors& tensors) {
    Routing routing;
    for (const graph::Node& node : step.nodes) {
        const ops::AnyArgs args = tensors.bind(node);
        if (const auto* scores = scores_of(args)) {
            const auto* ids = scores->ids.as<std::int32_t>();
            routing[node.layer].assign(ids, ids + scores->ids.shape.count());
        }
    }
    return routing;
}

Status run_device(Device& device, const graph::Step& step, const graph::Plan& plan,
                  HostTensors& scratch, ThreadPool& pool, const Routing& forced) {
    for (const graph::TensorId input : step.inputs)
        if (input >= 0)
            LR_TRY(device.write(input, scratch.bytes(input)));
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        LR_TRY(device.run(i));
        for (const std::int32_t n : plan.launches[i].nodes) {
            const graph::Node& node = step.nodes[static_cast<std::size_t>(n)];
            const ops::AnyArgs args = scratch.bind(node);
            if (const auto* scores = scores_of(args)) {
                LR_TRY(copy_in(device, step, node, scratch));
                force(*scores, forced.at(node.layer));
                LR_TRY(copy_out(device, node, scratch));
            } else if (std::holds_alternative<ops::RoutingIndicesArgs>(args) &&
                       plan.launches[i].nodes.size() > 1) {
                // Fused with the scores: it has placed the rows of the device's own choice.
                LR_TRY(run_node(step, node, scratch, pool));
                LR_TRY(copy_out(device, node, scratch));
            }
        }
    }
    return {};
}

void Divergences::add(ConstView first, ConstView second, std::int64_t row, std::int64_t rows) {
    const std::int64_t vocab = first.shape[1];
    for (std::int64_t r = row; r < row + rows; ++r) {
        const float *p = first.row_as<float>(r), *q = second.row_as<float>(r);
        const auto log_sum = [vocab](const float* x) {
            const double top = *std::max_element(x, x + vocab);
            double sum = 0;
            for (std::int64_t i = 0; i < vocab; ++i)
                sum += std::exp(x[i] - top);
            return top + std::log(sum);
        };
        const double zp = log_sum(p), zq = log_sum(q);
        double kl = 0;
        for (std::int64_t i = 0; i < vocab; ++i)
            kl += std::exp(p[i] - zp) * ((p[i] - zp) - (q[i] - zq));
        kl = std::isfinite(kl) ? std::max(0.0, kl) : INFINITY;
        sum_ += kl;
        worst_ = std::max(worst_, kl);
        flips_ += std::max_element(p, p + vocab) - p != std::max_element(q, q + vocab) - q;
        ++rows_;
    }
}

std::string FreeRunReport::fault() const {
    const double costs = reference_cost.mean() + device_cost.mean();
    if (!(between.mean() <= costs))
        return fmt::format("mean KL: expected at most what bf16 costs both, {:.2g}, got {:.2g}",
                           costs, between.mean());
    if (!(between.worst() <= 25 * costs))
        return fmt::format("KL of the worst row: expected at most 25 times what bf16 costs both, "
                           "{:.2g}, got {:.2g}",
                           25 * costs, between.worst());
    if (!(device_cost.mean() <= 2 * reference_cost.mean()))
        return fmt::format("mean KL against f32: expected at most twice the reference's {:.2g}, "
                           "got {:.2g}",
                           reference_cost.mean(), device_cost.mean());
    if (10 * between.flips() > between.rows())
        return fmt::format("likeliest tokens: expected at most a tenth of {} to differ, got {}",
                           between.rows(), between.flips());
    return {};
}

} // namespace lr::verify
