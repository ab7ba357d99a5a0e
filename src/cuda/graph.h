// SPDX-License-Identifier: Apache-2.0
//
// cuda/graph.h: work captured once and replayed: the same launches, addresses and grids, on data
// that may change.
#pragma once

#include "core/function_ref.h"
#include "core/status.h"
#include "cuda/stream.h"

#include <utility>

namespace lr::cuda {

class CapturedGraph {
  public:
    // Captures what `enqueue` puts on the stream; nothing of it runs yet. An error of `enqueue` is
    // returned and leaves the stream as it was.
    static Result<CapturedGraph> capture(Stream stream, FunctionRef<Status()> enqueue);
    CapturedGraph(CapturedGraph&& other) noexcept
        : executable_(std::exchange(other.executable_, nullptr)),
          nodes_(std::exchange(other.nodes_, 0)) {}
    CapturedGraph& operator=(CapturedGraph&& other) noexcept {
        std::swap(executable_, other.executable_);
        std::swap(nodes_, other.nodes_);
        return *this;
    }
    ~CapturedGraph();

    // Enqueues all of it.
    Status replay(Stream stream) const;
    std::size_t nodes() const { return nodes_; } // kernels, copies and memsets

  private:
    CapturedGraph(void* executable, std::size_t nodes) : executable_(executable), nodes_(nodes) {}
    void* executable_; // a cudaGraphExec_t
    std::size_t nodes_;
};

} // namespace lr::cuda
