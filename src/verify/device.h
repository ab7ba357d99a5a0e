// SPDX-License-Identifier: Apache-2.0
//
// verify/device.h: a device under test: it runs single launches of a plan on tensors that it is
// given.
//
// Every tensor of the step has its own memory there, whatever the memory plan shares, so that each
// can be read after any launch. States belong to the device and outlive a step: they are named by
// layer and kind, not by the step's number for them.
#pragma once

#include "graph/plan.h"

#include <cstddef>
#include <span>
#include <string>

namespace lr::verify {

class Device {
  public:
    virtual ~Device() = default;

    // "cpu avx512, 2 threads".
    virtual std::string name() const = 0;
    // How this plan's launch is executed: "one kernel", "2 leaf ops, one by one".
    virtual std::string how(const graph::Launch& launch) const = 0;

    // Makes ready to run this step's launches; both outlive the next prepare(). States stay as they
    // are; everything else is undefined until it is written.
    virtual Status prepare(const graph::Step& step, const graph::Plan& plan) = 0;
    // A whole tensor, dense: an input, activation, output or state of the prepared step. Weights
    // are the device's.
    virtual Status write(graph::TensorId tensor, std::span<const std::byte> bytes) = 0;
    virtual Status read(graph::TensorId tensor, std::span<std::byte> bytes) = 0;
    // Runs one launch of the plan and waits for its end.
    virtual Status run(std::size_t launch) = 0;
};

} // namespace lr::verify
