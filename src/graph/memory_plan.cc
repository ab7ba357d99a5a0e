// SPDX-License-Identifier: Apache-2.0
#include "graph/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace lr::graph {
namespace {

std::int64_t align_up(std::int64_t bytes) {
    return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
}

// Launches that touch each tensor, ascending.
std::vector<std::vector<std::int32_t>> touches(const Step& step, const Plan& plan) {
    std::vector<std::vector<std::int32_t>> launches(step.tensors.size());
    for (std::size_t i = 0; i < plan.launches.size(); ++i)
        for (std::int32_t node : plan.launches[i].nodes)
            for (const Use& use : step.nodes[static_cast<std::size_t>(node)].uses) {
                auto& list = launches[static_cast<std::size_t>(use.tensor)];
                if (list.empty() || list.back() != static_cast<std::int32_t>(i))
                    list.push_back(static_cast<std::int32_t>(i));
            }
    return launches;
}

std::vector<bool> swallowed(const Step& step, const Plan& plan) {
    std::vector<bool> gone(step.tensors.size(), false);
    for (const Launch& launch : plan.launches)
        for (TensorId tensor : launch.swallowed)
            gone[static_cast<std::size_t>(tensor)] = true;
    return gone;
}

bool ends_before(const HappensBefore& order, const std::vector<std::int32_t>& a,
                 const std::vector<std::int32_t>& b) {
    for (std::int32_t last : a)
        for (std::int32_t first : b)
            if (!order.before(last, first))
                return false;
    return true;
}

struct Placed {
    std::int64_t begin, end;
    std::size_t tensor;
};

} // namespace

MemoryPlan plan_memory(const Step& step, const Plan& plan) {
    const HappensBefore order = plan_order(plan);
    const auto used_by = touches(step, plan);
    const std::vector<bool> gone = swallowed(step, plan);
    MemoryPlan memory;
    memory.offset.assign(step.tensors.size(), -1);

    std::vector<std::size_t> todo;
    for (std::size_t t = 0; t < step.tensors.size(); ++t) {
        const Role role = step.tensors[t].role;
        if (!gone[t] && (role == Role::kActivation || role == Role::kOutput))
            todo.push_back(t);
    }
    const auto size = [&](std::size_t t) { return align_up(step.tensors[t].bytes()); };
    std::stable_sort(todo.begin(), todo.end(),
                     [&](std::size_t a, std::size_t b) { return size(a) > size(b); });

    const auto may_share = [&](std::size_t a, std::size_t b) {
        if (step.tensors[a].role == Role::kOutput || step.tensors[b].role == Role::kOutput)
            return false;
        return ends_before(order, used_by[a], used_by[b]) ||
               ends_before(order, used_by[b], used_by[a]);
    };
    // Largest first, each at the lowest offset free of every tensor it may not share with.
    std::vector<Placed> placed; // by begin
    for (std::size_t t : todo) {
        std::int64_t begin = 0;
        const std::int64_t bytes = size(t);
        for (const Placed& other : placed)
            if (other.begin < begin + bytes && begin < other.end && !may_share(t, other.tensor))
                begin = other.end;
        memory.offset[t] = begin;
        memory.arena_bytes = std::max(memory.arena_bytes, begin + bytes);
        memory.unshared_bytes += bytes;
        const Placed mine{begin, begin + bytes, t};
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), mine,
                             [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
            mine);
    }
    return memory;
}

} // namespace lr::graph
