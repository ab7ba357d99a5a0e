// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/node_clock.h"

#include "core/check.h"
#include "core/clock.h"

#include <numeric>

namespace lr::cli {

Status NodeClock::after(const engine::Launched& launched) {
    const double now = monotonic_seconds();
    const std::vector<graph::Node>& nodes = launched.step.nodes;
    const auto index = static_cast<std::size_t>(&launched.node - nodes.data());
    LR_CHECK_LT(index, nodes.size());
    // Nodes run in the order of the list, so one that is not behind the last begins a step.
    if (steps_.empty() || index < next_)
        steps_.push_back({.seconds = NodeSeconds(nodes.size()), .first = index});
    else
        steps_.back().seconds[index] = now - last_;
    next_ = index + 1;
    count_live(launched);
    last_ = monotonic_seconds();
    return {};
}

void NodeClock::count_live(const engine::Launched& launched) {
    const auto* routing = std::get_if<ops::RoutingIndicesArgs>(&launched.args);
    if (!routing)
        return;
    ++routings_;
    for (std::int64_t e = 0; e < routing->counts.rows(); ++e)
        live_ += routing->counts.as<std::int32_t>()[e] > 0;
}

void NodeClock::clear() {
    steps_.clear();
    next_ = 0;
    routings_ = live_ = 0;
}

std::vector<NodeSeconds> NodeClock::take(const std::vector<double>& step_seconds) {
    LR_CHECK_EQ(steps_.size(), step_seconds.size());
    std::vector<NodeSeconds> taken;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        NodeSeconds& seconds = steps_[i].seconds;
        const double others = std::accumulate(seconds.begin(), seconds.end(), 0.0);
        seconds[steps_[i].first] = std::max(0.0, step_seconds[i] - others);
        taken.push_back(std::move(seconds));
    }
    steps_.clear();
    next_ = 0;
    return taken;
}

double NodeClock::live_experts() const {
    return routings_ == 0 ? 0 : static_cast<double>(live_) / static_cast<double>(routings_);
}

} // namespace lr::cli
