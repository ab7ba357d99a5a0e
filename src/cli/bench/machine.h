// SPDX-License-Identifier: Apache-2.0
//
// cli/bench/machine.h: what this machine's memory and arithmetic can do, measured. These are the
// floors that every other figure is held against.
#pragma once

#include "core/buffer.h"
#include "core/clock.h"
#include "core/thread_pool.h"
#include "ops/op.h"

#include <string>

namespace lr::cli {

struct MachineFacts {
    std::string processor;        // as the system names it
    std::int64_t cache_bytes = 0; // last-level caches of the usable processors together; 0: unknown
    std::int64_t free_bytes = 0;  // memory that can be had
    std::string huge_pages;       // "always", "madvise", "never" or "unknown"
};
MachineFacts machine_facts();

// Bytes that together do not stay in the caches, whoever reads them in turn.
std::int64_t cold_bytes(const MachineFacts& facts);

// How much of the time since it was made this process's threads stood in the queue for a processor:
// a share of what `threads` of them could have run, 0 where the system does not say. Figures of a
// machine that others use are theirs as well.
class BusyMeter {
  public:
    BusyMeter() : waited_(waited_seconds()) {}
    double share(int threads) const;

  private:
    static double waited_seconds();

    double waited_;
    Stopwatch watch_;
};

// Of a number of threads.
struct Floors {
    int threads = 0;
    double read = 0;  // bytes/s of the best of several ways to read memory
    double copy = 0;  // bytes/s, read and written ones together; 0: not measured
    double flops = 0; // f32 operations/s of the instruction set in use, a multiply-add counting two

    // The least time that work can take: its bytes at `read` or its operations at `flops`.
    double seconds(const ops::Cost& cost) const;
    // The larger of each: what the machine can do, whatever else it did at times.
    void raise(const Floors& other);
};

// Memory to measure on: written to, far larger than the caches.
class FloorMeter {
  public:
    // kResourceExhausted where the memory cannot be had.
    static Result<FloorMeter> make();

    // About a second a call.
    Floors measure(ThreadPool& pool, bool with_copy = false) const;

    std::int64_t bytes() const { return buffer_.size(); }
    // Whether the system gave huge pages for most of it.
    bool in_huge_pages() const;

  private:
    Buffer buffer_;
};

} // namespace lr::cli
