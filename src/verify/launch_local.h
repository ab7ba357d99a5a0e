// SPDX-License-Identifier: Apache-2.0
//
// verify/launch_local.h: every launch of a plan, given the reference's inputs, against the
// reference.
//
// The reference (cpu/reference) runs the step's nodes one after the other. Before a launch, what it
// reads is copied to the device, and what it will write is filled with a pattern on both sides, so
// that a row that was not written and a place that should not have been both show. Inside a fused
// launch the reference hands bounds on from node to node: a code that the launch forms from values
// of its own may differ only where the bound of such a value contains a rounding edge.
#pragma once

#include "core/thread_pool.h"
#include "cpu/reference/tensors.h"
#include "graph/plan.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/compare.h"
#include "verify/device.h"
#include "verify/faults.h"
#include "verify/host_tensors.h"

namespace lr::verify {

// Which launches are compared; the reference runs all.
struct Selection {
    std::string path; // "decode-gdn", ...; empty: all
    std::int32_t first = 0,
                 last = 1 << 20; // numbers of nodes in a layer; with a range: layers only
    std::int32_t layer = -1;     // -1: all

    bool narrow() const { return first > 0 || last < 1 << 20; }
    bool takes(const graph::Step& step, const graph::Node& node) const;
};

struct Divergence {
    std::string step, launch, node, tensor;
    Mismatch mismatch;
    std::string text() const;
};

struct InjectedFault {
    Fault fault;
    std::string step, node, tensor, place;
    std::optional<Mismatch> found; // nothing: it was not caught
};

struct LaunchReport {
    std::map<std::string, std::pair<std::int64_t, Agreement>> ops; // by op stem: launches, sums
    std::int64_t launches = 0;
    std::vector<Divergence> divergences;
    std::vector<InjectedFault> faults;
    std::map<std::string, std::int64_t> how; // Device::how of the launches
};

struct Injection {
    std::string node;          // "L0.8"
    std::vector<Fault> faults; // to try, each in a run of its own
};

class LaunchLocal {
  public:
    // All outlive it.
    LaunchLocal(Device& device, ThreadPool& pool, const Selection& selection,
                const std::optional<Injection>& injection)
        : device_(device), pool_(pool), selection_(selection), injection_(injection) {}

    // One step by this plan. `reference` holds the step's inputs and states; afterwards it holds
    // all that the reference computed. The device has been prepared for the step. `done` is called
    // after each launch.
    Status run(const std::string& name, const graph::Step& step, const graph::Plan& plan,
               HostTensors& reference, const std::function<void()>& done);

    const LaunchReport& report() const { return report_; }

  private:
    struct Written {
        graph::TensorId tensor;
        std::int32_t node; // of the step: the last that writes it
        std::vector<std::byte> before;
    };
    bool selected(const graph::Launch& launch) const;
    std::vector<Written> open_launch(const graph::Launch& launch, HostTensors& reference);
    Status send(const graph::Launch& launch, const HostTensors& reference,
                const std::vector<Written>& written);
    Status run_device(std::size_t launch);
    Result<std::vector<std::byte>> received(const Written& written, const HostTensors& reference);
    Status compare_launch(const graph::Launch& launch, const HostTensors& reference,
                          const std::vector<Written>& written);
    Status inject(std::size_t launch, const HostTensors& reference,
                  const std::vector<Written>& written);
    const double* bound_of(graph::TensorId tensor, const HostTensors& reference) const;

    Device& device_;
    ThreadPool& pool_;
    const Selection& selection_;
    const std::optional<Injection>& injection_;
    LaunchReport report_;
    std::string name_;
    const graph::Step* step_ = nullptr;
    const graph::Plan* plan_ = nullptr;
    cpu::reference::Errors errors_;
};

} // namespace lr::verify
