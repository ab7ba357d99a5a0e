// SPDX-License-Identifier: Apache-2.0
//
// How a loop is shared. The caller writes body_, n_, grain_, chunks_, resets done_, then stores
// claim_ = epoch << 32 | chunks. A thread reads claim_ (c), copies the fields, and claims a chunk
// by compare-exchange c -> c - 1 while chunks are left. If that succeeds the fields belong to this
// epoch: a claim with chunks left means that one has not been counted in done_, and the caller
// rewrites the fields only once all have. (Counting up to chunks_ would not do: an exhausted claim
// looks open again to a thread that reads the next loop's larger chunks_ before its claim_.) So a
// thread that slept through whole loops needs no waiting for: its claim fails and it looks again.
//
// done_ is incremented with release and read by the caller with acquire: everything the bodies
// wrote is visible when parallel_for returns.
#include "core/thread_pool.h"

#include "core/check.h"
#include "core/cpus.h"

#include <algorithm>
#include <immintrin.h>
#include <limits>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <system_error>

namespace lr {
namespace {

// About 50 us of pause instructions: longer than the serial gaps between the loops of a step,
// shorter than a scheduler tick.
constexpr int kSpins = 1500;

thread_local bool t_inside_body = false;

// Returns true once ready() does, or false after `spins` tries.
template <typename Ready> bool spin_until(int spins, Ready ready) {
    for (int i = 0; i < spins; ++i) {
        if (ready())
            return true;
        _mm_pause();
    }
    return ready();
}

void pin(pthread_t thread, int cpu) {
    if (cpu >= CPU_SETSIZE)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    pthread_setaffinity_np(thread, sizeof(set), &set);
}

void run_inline(std::int64_t n, std::int64_t grain,
                FunctionRef<void(std::int64_t, std::int64_t)> body) noexcept {
    for (std::int64_t begin = 0; begin < n; begin += std::min(grain, n - begin))
        body(begin, begin + std::min(grain, n - begin));
}

} // namespace

ThreadPool::ThreadPool(int threads) {
    const std::vector<int> cpus = allowed_cpus();
    const int usable = usable_cpu_count();
    const int wanted = threads > 0 ? threads : usable;
    // More threads than processors: a spinning thread would only keep the one it waits for off.
    spins_ = wanted <= usable ? kSpins : 0;
    start_workers(wanted - 1);
    if (workers_.size() + 1 == cpus.size())
        for (std::size_t i = 0; i < workers_.size(); ++i)
            pin(workers_[i].native_handle(), cpus[i + 1]);
}

void ThreadPool::start_workers(int count) {
    workers_.reserve(static_cast<std::size_t>(std::max(count, 0)));
    for (int i = 0; i < count; ++i) {
        try {
            workers_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            return; // the system's limit; the pool is as large as it can be
        }
        pthread_setname_np(workers_.back().native_handle(),
                           ("lr-pool-" + std::to_string(i + 1)).c_str());
    }
}

ThreadPool::~ThreadPool() {
    stop_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (std::thread& worker : workers_)
        worker.join();
}

void ThreadPool::parallel_for(std::int64_t n, std::int64_t grain, Body body) {
    LR_CHECK_GE(n, 0);
    LR_CHECK_GT(grain, 0);
    const std::int64_t chunks = n / grain + (n % grain != 0);
    if (chunks <= 1 || workers_.empty() || t_inside_body)
        return run_inline(n, grain, body);
    const std::unique_lock lock(caller_, std::try_to_lock);
    if (!lock.owns_lock())
        return run_inline(n, grain, body);

    LR_CHECK_LT(chunks, std::int64_t{std::numeric_limits<std::uint32_t>::max()});
    const auto count = static_cast<std::uint32_t>(chunks);
    body_.store(&body, std::memory_order_relaxed);
    n_.store(n, std::memory_order_relaxed);
    grain_.store(grain, std::memory_order_relaxed);
    chunks_.store(count, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
    claim_.store(std::uint64_t{epoch} << 32 | count, std::memory_order_release);
    // Sequentially consistent: the store must not pass notify's look at the count of sleepers, or a
    // thread that is about to sleep on the old epoch would miss it.
    epoch_.store(epoch, std::memory_order_seq_cst);
    epoch_.notify_all();

    run_chunks(epoch);
    const auto finished = [&] { return done_.load(std::memory_order_acquire) == count; };
    if (spin_until(spins_, finished))
        return;
    for (std::uint32_t seen = done_.load(std::memory_order_acquire); seen != count;
         seen = done_.load(std::memory_order_acquire))
        done_.wait(seen, std::memory_order_acquire);
}

void ThreadPool::work() {
    std::uint32_t seen = 0;
    while (true) {
        const auto opened = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
        if (!spin_until(spins_, opened))
            epoch_.wait(seen, std::memory_order_acquire);
        seen = epoch_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_relaxed))
            return;
        run_chunks(seen);
    }
}

// noexcept: a body that throws ends the program here, not on some other thread's stack.
void ThreadPool::run_chunks(std::uint32_t epoch) noexcept {
    t_inside_body = true;
    std::uint64_t claim = claim_.load(std::memory_order_acquire);
    while (claim >> 32 == epoch) {
        const auto left = static_cast<std::uint32_t>(claim);
        const std::uint32_t chunks = chunks_.load(std::memory_order_relaxed);
        const std::int64_t n = n_.load(std::memory_order_relaxed);
        const std::int64_t grain = grain_.load(std::memory_order_relaxed);
        const Body* body = body_.load(std::memory_order_relaxed);
        if (left == 0)
            break;
        if (!claim_.compare_exchange_weak(claim, claim - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire))
            continue;
        const std::int64_t begin = std::int64_t{chunks - left} * grain;
        (*body)(begin, begin + std::min(grain, n - begin));
        if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks)
            done_.notify_one();
        claim = claim_.load(std::memory_order_acquire);
    }
    t_inside_body = false;
}

} // namespace lr
