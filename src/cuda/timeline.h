// SPDX-License-Identifier: Apache-2.0
//
// cuda/timeline.h: when launches of one stream ended, by the GPU's own clock.
#pragma once

#include "core/status.h"
#include "cuda/stream.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lr::cuda {

class Timeline {
  public:
    // Room for `marks` marks of a run.
    static Result<Timeline> create(std::size_t marks);
    Timeline(Timeline&& other) noexcept : events_(std::move(other.events_)), used_(other.used_) {
        other.events_.clear();
    }
    Timeline& operator=(Timeline&&) = delete;
    ~Timeline();

    void clear() { used_ = 0; }
    // Enqueues a mark: the end of all that was enqueued before it.
    Status mark(Stream stream);
    // Nanoseconds of each mark after the first; waits for the last. The clock ticks every 500 ns or
    // less.
    Result<std::vector<std::int64_t>> nanoseconds() const;

  private:
    Timeline() = default;
    std::vector<void*> events_; // cudaEvent_t
    std::size_t used_ = 0;
};

// Keeps the stream busy for so long: what is enqueued meanwhile then runs without waiting for the
// host.
Status hold(Stream stream, std::int64_t nanoseconds);

} // namespace lr::cuda
