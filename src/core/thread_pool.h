// SPDX-License-Identifier: Apache-2.0
//
// core/thread_pool.h: a fixed set of threads that share loops.
//
// The caller is one of the threads: a pool of 1 starts none and runs everything inline. When the
// pool has exactly one thread per allowed processor, its threads are pinned, one to each (a failed
// pin is ignored); a smaller or larger pool floats, so that two processes never fight for the same
// processors. Idle threads spin for a moment, then sleep.
#pragma once

#include "core/function_ref.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace lr {

class ThreadPool {
  public:
    // threads <= 0: one per usable processor (core/cpus.h). Where the system refuses a thread, the
    // pool is smaller: size() tells.
    explicit ThreadPool(int threads = 0);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return 1 + static_cast<int>(workers_.size()); }

    // Calls body(begin, end) for the chunks [0,grain), [grain,2*grain), ... of [0,n) and returns
    // when all are done. Chunk bounds depend on n and grain alone, never on the pool, so a result
    // that depends only on the chunk is the same for every pool size; which thread runs a chunk,
    // and in which order, is open. Does not allocate. The body must not throw.
    // A call from inside a body, or while another thread's loop is running, runs inline.
    void parallel_for(std::int64_t n, std::int64_t grain,
                      FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

  private:
    using Body = FunctionRef<void(std::int64_t, std::int64_t)>;

    void start_workers(int count);
    void work();
    void run_chunks(std::uint32_t epoch) noexcept;

    // The loop in progress. Written by the caller before it opens a new epoch; a thread's copy is
    // used only after claiming a chunk of the same epoch (thread_pool.cc says why that is safe).
    std::atomic<const Body*> body_ = nullptr;
    std::atomic<std::int64_t> n_ = 0;
    std::atomic<std::int64_t> grain_ = 1;
    std::atomic<std::uint32_t> chunks_ = 0;

    alignas(64) std::atomic<std::uint64_t> claim_ = 0; // epoch << 32 | chunks left to claim
    alignas(64) std::atomic<std::uint32_t> done_ = 0;  // chunks of this epoch that have finished
    alignas(64) std::atomic<std::uint32_t> epoch_ = 0; // idle threads sleep on this
    std::atomic<bool> stop_ = false;
    int spins_ = 0;
    std::mutex caller_; // one loop at a time
    std::vector<std::thread> workers_;
};

} // namespace lr
