// SPDX-License-Identifier: Apache-2.0
//
// verify/free_run.h: whole steps of a device beside the reference, each on its own results and
// states, with the reference's routing forced on both runs beside it (the device's, and the
// reference in f32). Errors accumulate, so a counted bound means nothing here: what bf16 costs each
// run against f32 is the measure (docs/NUMERICS.md, Routed alike).
#pragma once

#include "core/thread_pool.h"
#include "graph/plan.h"

#include <map>
#include <string>
#include <vector>

#include "verify/device.h"
#include "verify/host_tensors.h"

namespace lr::verify {

// Experts of each row, by layer; -1 in padding.
using Routing = std::map<std::int32_t, std::vector<std::int32_t>>;

// The reference, node by node. With `forced`, its rows go to these experts.
Status run_reference(const graph::Step& step, HostTensors& tensors, ThreadPool& pool,
                     const Routing* forced);
// Where its rows went.
Routing routing_of(const graph::Step& step, const HostTensors& tensors);

// The plan on the device, from its inputs on (states are what the device's last step left).
// `scratch` is memory of the same step. inputs: engine::InputBlock::fill.
Status run_device(Device& device, const graph::Step& step, const graph::Plan& plan,
                  HostTensors& scratch, ThreadPool& pool, const Routing& forced);

// KL of rows of logits, and how often the likeliest token is another.
class Divergences {
  public:
    // Rows [first, first + count) of two logits outputs [m, V].
    void add(ConstView first, ConstView second, std::int64_t row, std::int64_t rows);
    double mean() const { return rows_ > 0 ? sum_ / static_cast<double>(rows_) : 0; }
    double worst() const { return worst_; }
    std::int64_t rows() const { return rows_; }
    std::int64_t flips() const { return flips_; }

  private:
    double sum_ = 0, worst_ = 0;
    std::int64_t rows_ = 0, flips_ = 0;
};

struct FreeRunReport {
    Divergences between, reference_cost, device_cost; // reference to device; f32 to each
    // What is wrong, in words; empty: only roundings differ.
    std::string fault() const;
};

} // namespace lr::verify
