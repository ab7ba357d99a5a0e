// SPDX-License-Identifier: Apache-2.0
//
// core/clock.h: time for measuring how long things take. It never goes back and has no date.
#pragma once

#include <cstdint>

namespace lr {

// Seconds since an arbitrary point (CLOCK_MONOTONIC), with nanosecond resolution.
double monotonic_seconds();
// The same clock in whole nanoseconds.
std::int64_t monotonic_ns();

class Stopwatch {
  public:
    Stopwatch() : start_(monotonic_seconds()) {}

    double seconds() const { return monotonic_seconds() - start_; }

    // Seconds so far, and start again.
    double lap() {
        const double now = monotonic_seconds();
        const double elapsed = now - start_;
        start_ = now;
        return elapsed;
    }

  private:
    double start_;
};

} // namespace lr
