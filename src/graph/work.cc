// SPDX-License-Identifier: Apache-2.0
#include "graph/work.h"

#include "core/check.h"

#include <algorithm>
#include <map>

namespace lr::graph {
namespace {

Unit unit_of_dtype(DType dtype) {
    switch (dtype) {
    case DType::kE4M3:
        return Unit::kFp8;
    case DType::kE2M1:
        return Unit::kFp4;
    case DType::kBF16:
    case DType::kF16:
        return Unit::kBf16;
    default:
        return Unit::kF32;
    }
}

// Ops that multiply matrices; the rest is elementwise or a reduction.
struct UnitOf {
    Unit operator()(const ops::LinearArgs& a) const { return unit_of_dtype(a.x.dtype); }
    Unit operator()(const ops::LinearSplitkArgs& a) const { return unit_of_dtype(a.x.dtype); }
    Unit operator()(const ops::ExpertsGateUpArgs& a) const { return unit_of_dtype(a.x.dtype); }
    Unit operator()(const ops::ExpertsDownArgs& a) const { return unit_of_dtype(a.f.dtype); }
    Unit operator()(const ops::AttentionArgs& a) const { return unit_of_dtype(a.q.dtype); }
    Unit operator()(const ops::ChunkKktSolveArgs& a) const { return unit_of_dtype(a.k.dtype); }
    Unit operator()(const ops::ChunkRecomputeWuArgs& a) const { return unit_of_dtype(a.k.dtype); }
    Unit operator()(const ops::ChunkStateArgs& a) const { return unit_of_dtype(a.k.dtype); }
    Unit operator()(const ops::ChunkOutputArgs& a) const { return unit_of_dtype(a.q.dtype); }
    template <typename Args> Unit operator()(const Args&) const { return Unit::kF32; }
};

// Bytes from other ranks: whoever sums rows that are split over p ranks in two halves of the work
// takes in (p-1)/p of them twice, and no method takes in less.
struct LinkBytes {
    static std::int64_t sum(std::int64_t bytes, std::int64_t ranks) {
        return 2 * bytes * (ranks - 1) / ranks;
    }
    std::int64_t operator()(const ops::AddRmsnormArgs& a) const {
        return sum(a.x.bytes(), a.ranks);
    }
    std::int64_t operator()(const ops::AllReduceArgs& a) const { return sum(a.x.bytes(), a.ranks); }
    std::int64_t operator()(const ops::AllGatherArgs& a) const {
        return a.y.bytes() * (a.ranks - 1) / a.ranks;
    }
    template <typename Args> std::int64_t operator()(const Args&) const { return 0; }
};

// Vectors of the model that an op reads as plain inputs.
struct VectorBytes {
    const Step& step;
    std::int64_t bytes = 0;

    void in(const char*, ConstView view) {
        const TensorId id = to_symbol(view.data).tensor;
        if (id >= 0 && step.tensors[static_cast<std::size_t>(id)].role == Role::kWeight &&
            view.shape.rank() == 1)
            bytes += view.bytes();
    }
    void weight(const char*, const ops::Weight&) {}
    void state(const char*, View) {}
    void out(const char*, View) {}
};

// What one node moves of each activation.
struct Traffic {
    const Step& step;
    struct Moved {
        std::int64_t read = 0, written = 0;
        int readers = 0;
    };
    std::map<TensorId, Moved> moved;

    Moved* find(const std::byte* address) {
        const TensorId id = to_symbol(address).tensor;
        if (id < 0 || step.tensors[static_cast<std::size_t>(id)].role != Role::kActivation)
            return nullptr;
        return &moved[id];
    }
    void in(const char*, ConstView view) {
        if (Moved* m = find(view.data)) {
            m->read += view.bytes();
            ++m->readers;
        }
    }
    void weight(const char*, const ops::Weight&) {}
    void state(const char*, View view) {
        in("", view);
        out("", view);
    }
    void out(const char*, View view) {
        if (Moved* m = find(view.data))
            m->written += view.bytes();
    }
};

// Whether a later launch has another stage of this one's last node.
bool stage_follows(const Plan& plan, std::size_t index) {
    const std::int32_t node = plan.launches[index].nodes.back();
    return std::any_of(
        plan.launches.begin() + static_cast<std::ptrdiff_t>(index) + 1, plan.launches.end(),
        [&](const Launch& later) { return later.stage > 0 && later.nodes.back() == node; });
}

// What stage 0 of a shift writes for stage 1 to read.
Work handed_on(const Step& step, const Plan& plan, std::size_t index) {
    const Launch& launch = plan.launches[index];
    if (launch.stage < 0)
        return {};
    for (const std::string& name : plan.rewrites) {
        const auto rewrite = find_rewrite(name);
        if (!rewrite || !(*rewrite)->handed_bytes)
            continue;
        for (const auto& nodes : find_matches(step, **rewrite))
            if (nodes.back() == launch.nodes.back()) {
                const std::int64_t bytes = (*rewrite)->handed_bytes(step, nodes);
                return launch.stage == 0 ? Work{.write_bytes = bytes} : Work{.read_bytes = bytes};
            }
    }
    return {};
}

bool contains(const std::vector<TensorId>& list, TensorId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
}

} // namespace

std::string_view unit_name(Unit unit) {
    static constexpr std::array<std::string_view, kUnits> kNames = {"bf16", "fp8", "fp4", "f32"};
    return kNames[static_cast<std::size_t>(unit)];
}

std::int64_t Work::total_flops() const {
    std::int64_t total = 0;
    for (std::int64_t count : flops)
        total += count;
    return total;
}

Work& Work::operator+=(const Work& other) {
    read_bytes += other.read_bytes;
    write_bytes += other.write_bytes;
    weight_bytes += other.weight_bytes;
    state_bytes += other.state_bytes;
    link_bytes += other.link_bytes;
    for (std::size_t u = 0; u < kUnits; ++u)
        flops[u] += other.flops[u];
    return *this;
}

Work node_work(const Step& step, const Node& node) {
    if (node.alias)
        return {};
    VectorBytes vectors{step};
    ops::AnyArgs args = node.args;
    std::visit([&](auto& typed) { typed.visit(vectors); }, args);
    Work work{.read_bytes = node.cost.read_bytes,
              .write_bytes = node.cost.write_bytes,
              .weight_bytes = node.cost.weight_bytes + vectors.bytes,
              .state_bytes = node.cost.state_bytes,
              .link_bytes = std::visit(LinkBytes{}, node.args)};
    work.flops[static_cast<std::size_t>(std::visit(UnitOf{}, node.args))] = node.cost.flops;
    return work;
}

bool communicates(const Node& node) {
    return !node.alias && std::visit(LinkBytes{}, node.args) > 0;
}

Work launch_work(const Step& step, const Plan& plan, std::size_t index) {
    const Launch& launch = plan.launches[index];
    Work work = handed_on(step, plan, index);
    Traffic traffic{step, {}};
    for (std::int32_t id : launch.nodes) {
        if (launch.stage >= 0 && id == launch.nodes.back() && stage_follows(plan, index))
            continue;
        const Node& node = step.nodes[static_cast<std::size_t>(id)];
        work += node_work(step, node);
        ops::AnyArgs args = node.args;
        std::visit([&](auto& typed) { typed.visit(traffic); }, args);
    }
    if (launch.nodes.size() == 1)
        return work;
    for (const auto& [id, moved] : traffic.moved) {
        if (contains(launch.swallowed, id))
            work.write_bytes -= moved.written;
        if (moved.written > 0)
            work.read_bytes -= moved.read;
        else if (moved.readers > 1)
            work.read_bytes -= moved.read - moved.read / moved.readers;
    }
    LR_CHECK_GE(work.read_bytes, 0);
    LR_CHECK_GE(work.write_bytes, 0);
    return work;
}

} // namespace lr::graph
