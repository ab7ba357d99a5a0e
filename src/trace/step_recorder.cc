// SPDX-License-Identifier: Apache-2.0
#include "trace/step_recorder.h"

#include "core/check.h"

#include <algorithm>

namespace lr::trace {
namespace {

std::vector<std::string> lane_names(std::int32_t ranks) {
    std::vector<std::string> names;
    for (std::int32_t r = 0; r < ranks; ++r)
        names.push_back(ranks == 1 ? "cpu" : fmt::format("rank {}", r));
    return names;
}

} // namespace

StepRecorder::StepRecorder(std::size_t events, std::int32_t ranks)
    : recorder_(events, lane_names(ranks)), lanes_(lane_names(ranks)) {}

// Once a bucket: its step is new.
std::int32_t StepRecorder::program_of(const graph::Step& step) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(steps_.begin(), steps_.end(), &step);
    if (found == steps_.end())
        steps_.push_back(&step);
    return static_cast<std::int32_t>(std::find(steps_.begin(), steps_.end(), &step) -
                                     steps_.begin());
}

Status StepRecorder::after(const engine::Launched& launched) {
    Rank& rank = ranks_[static_cast<std::size_t>(launched.rank)];
    const auto node = static_cast<std::int32_t>(&launched.node - launched.step.nodes.data());
    if (node < rank.next || &launched.step != rank.of || rank.step < 0) {
        ++rank.step;
        if (&launched.step != rank.of)
            rank.program = program_of(launched.step);
        rank.of = &launched.step;
    }
    rank.next = node + 1;
    recorder_.record(
        {launched.start_ns, launched.end_ns, rank.step, rank.program, node, launched.rank});
    return {};
}

void StepRecorder::clear() {
    recorder_.clear();
    for (Rank& rank : ranks_)
        rank.step = -1;
}

std::vector<Row>
StepRecorder::rows(const std::function<Program(const graph::Step&)>& program) const {
    // What a step's nodes cost is asked for now, not while it runs.
    Recorder named(recorder_.events().size(), lanes_);
    for (const graph::Step* step : steps_)
        named.add_program(program(*step));
    for (const Recorder::Event& event : recorder_.events())
        named.record(event);
    return named.rows();
}

} // namespace lr::trace
