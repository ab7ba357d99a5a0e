// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.h"

#include "core/check.h"
#include "graph/path_name.h"

#include <algorithm>

namespace lr::trace {
namespace {

ProgramLaunch describe_launch(const graph::Step& step, const graph::Launch& launch,
                              const std::function<double(const ops::Cost&)>& floor,
                              const graph::Step& cost) {
    const graph::Node& first = step.nodes[static_cast<std::size_t>(launch.nodes.front())];
    ProgramLaunch result{.layer = first.layer,
                         .path = graph::path_name(step, first),
                         .nodes = launch.name.substr(launch.name.find('.') + 1),
                         .name = {}};
    ops::Cost sum;
    for (const std::int32_t n : launch.nodes) {
        const auto at = static_cast<std::size_t>(n);
        result.name += (result.name.empty() ? "" : " + ") + step.nodes[at].name;
        sum += cost.nodes[at].cost;
    }
    // What a fusion keeps to itself is neither written nor read back.
    for (const graph::TensorId tensor : launch.swallowed)
        for (const std::int32_t n : launch.nodes)
            for (const graph::Use& use : step.nodes[static_cast<std::size_t>(n)].uses)
                if (use.tensor == tensor)
                    (use.access == graph::Access::kWrite ? sum.write_bytes : sum.read_bytes) -=
                        cost.tensors[static_cast<std::size_t>(tensor)].bytes();
    result.bytes = sum.bytes();
    if (floor)
        result.floor_us = floor(sum);
    return result;
}

} // namespace

std::string place(const Row& row) {
    if (row.layer < 0)
        return fmt::format("{}.{}", row.path == "prologue" ? "pro" : "epi", row.nodes);
    return fmt::format("L{}.{}", row.layer, row.nodes);
}

std::string label(const Row& row) {
    return fmt::format("step {} {}", row.step, place(row));
}

Program describe(const graph::Step& step, const graph::Plan& plan,
                 const std::function<double(const ops::Cost&)>& floor, const graph::Step* cost) {
    const graph::Step& costs = cost ? *cost : step;
    LR_CHECK_EQ(costs.nodes.size(), step.nodes.size());
    Program program;
    for (const graph::Launch& launch : plan.launches)
        program.push_back(describe_launch(step, launch, floor, costs));
    return program;
}

Program describe_nodes(const graph::Step& step,
                       const std::function<double(const ops::Cost&)>& floor,
                       const graph::Step* cost) {
    graph::Plan plan;
    for (std::size_t n = 0; n < step.nodes.size(); ++n)
        plan.launches.push_back({.name = step.nodes[n].id,
                                 .nodes = {static_cast<std::int32_t>(n)},
                                 .lane = step.nodes[n].lane});
    return describe(step, plan, floor, cost);
}

Recorder::Recorder(std::size_t events, std::vector<std::string> lanes)
    : lanes_(std::move(lanes)), events_(events) {}

std::int32_t Recorder::add_program(Program program) {
    programs_.push_back(std::move(program));
    return static_cast<std::int32_t>(programs_.size()) - 1;
}

std::span<const Recorder::Event> Recorder::events() const {
    return std::span(events_).first(std::min(next_.load(), events_.size()));
}

std::size_t Recorder::dropped() const {
    return next_.load() - events().size();
}

std::vector<Row> Recorder::rows() const {
    std::vector<Event> sorted(events().begin(), events().end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const Event& a, const Event& b) {
        return std::pair(a.start_ns, a.lane) < std::pair(b.start_ns, b.lane);
    });
    std::vector<Row> rows;
    const std::int64_t zero = sorted.empty() ? 0 : sorted.front().start_ns;
    const auto us = [zero](std::int64_t ns) { return 1e-3 * static_cast<double>(ns - zero); };
    for (const Event& event : sorted) {
        const ProgramLaunch& launch = programs_[static_cast<std::size_t>(event.program)]
                                               [static_cast<std::size_t>(event.launch)];
        Row row{.step = event.step,
                .layer = launch.layer,
                .path = launch.path,
                .nodes = launch.nodes,
                .lane = lanes_[static_cast<std::size_t>(event.lane)],
                .start_us = us(event.start_ns),
                .end_us = us(event.end_ns),
                .duration_us = us(event.end_ns) - us(event.start_ns),
                .bytes = launch.bytes,
                .floor_pct = -1,
                .name = launch.name};
        if (launch.floor_us >= 0 && row.duration_us > 0)
            row.floor_pct = 100 * launch.floor_us / row.duration_us;
        rows.push_back(std::move(row));
    }
    return rows;
}

} // namespace lr::trace
