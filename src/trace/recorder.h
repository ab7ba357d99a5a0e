// SPDX-License-Identifier: Apache-2.0
//
// trace/recorder.h: launches with their times, kept in memory that was set aside before.
//
// Recording a launch stores 32 bytes at the next free place: no lock, no allocation, nothing
// formatted. What a launch is (names, bytes, floors) is written down once a program, and read when
// the rows are made. Times are nanoseconds of any one clock: the CPU's beside each op, or a GPU's
// timestamps brought to it; who records says which lane they belong to. Nothing here is touched
// while no recorder exists.
//
// Several threads may record at the same time. Programs are added and rows are made while none
// does.
#pragma once

#include "graph/plan.h"
#include "trace/row.h"

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lr::trace {

// What the rows of a launch say but for its times.
struct ProgramLaunch {
    std::int32_t layer = -1;
    std::string path, nodes, name;
    std::int64_t bytes = -1;
    double floor_us = -1; // least time for its bytes and operations; -1: not known
};
using Program = std::vector<ProgramLaunch>; // by launch of a plan

// The launches of a plan with names, and bytes by the graph's cost of their nodes. `floor` gives
// the least time of a cost in microseconds; null: floors are not known. `cost` is the step as its
// live rows make it, node by node the same as `step` (null: step).
Program describe(const graph::Step& step, const graph::Plan& plan,
                 const std::function<double(const ops::Cost&)>& floor,
                 const graph::Step* cost = nullptr);

// The same by node of the step, each a launch of its own, aliases too.
Program describe_nodes(const graph::Step& step,
                       const std::function<double(const ops::Cost&)>& floor,
                       const graph::Step* cost = nullptr);

class Recorder {
  public:
    // Room for `events` launches; later ones are counted and dropped. `lanes` are their names.
    Recorder(std::size_t events, std::vector<std::string> lanes);

    std::int32_t add_program(Program program);

    struct Event {
        std::int64_t start_ns, end_ns;
        std::int32_t step, program, launch, lane;
    };
    void record(const Event& event) {
        const std::size_t place = next_.fetch_add(1, std::memory_order_relaxed);
        if (place < events_.size()) [[likely]]
            events_[place] = event;
    }

    std::span<const Event> events() const;
    std::size_t dropped() const;
    void clear() { next_ = 0; }

    // By start, then lane; time 0 is the first start.
    std::vector<Row> rows() const;

  private:
    std::vector<std::string> lanes_;
    std::vector<Program> programs_;
    std::vector<Event> events_;
    std::atomic<std::size_t> next_ = 0;
};

} // namespace lr::trace
