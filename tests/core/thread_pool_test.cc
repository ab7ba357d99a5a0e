// SPDX-License-Identifier: Apache-2.0
#include "core/cpus.h"
#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <sched.h>
#include <thread>
#include <utility>
#include <vector>

namespace lr {
namespace {

using Chunks = std::vector<std::pair<std::int64_t, std::int64_t>>;

// The chunks of a loop, in order of their begin.
Chunks chunks_of(ThreadPool& pool, std::int64_t n, std::int64_t grain) {
    Chunks chunks(static_cast<std::size_t>(n / grain + 1), {-1, -1});
    pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        chunks[static_cast<std::size_t>(begin / grain)] = {begin, end};
    });
    while (!chunks.empty() && chunks.back().first < 0)
        chunks.pop_back();
    return chunks;
}

TEST(ThreadPool, ChunkBoundsDoNotDependOnThePool) {
    const Chunks expected = {{0, 7}, {7, 14}, {14, 20}};
    for (int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.size(), threads);
        EXPECT_EQ(chunks_of(pool, 20, 7), expected);
        EXPECT_EQ(chunks_of(pool, 14, 7), (Chunks{{0, 7}, {7, 14}}));
        EXPECT_EQ(chunks_of(pool, 3, 100), (Chunks{{0, 3}}));
        EXPECT_EQ(chunks_of(pool, 0, 5), Chunks{});
    }
}

TEST(ThreadPool, EveryIndexRunsOnceInManyShortLoops) {
    ThreadPool pool(4);
    std::vector<int> hits(97, 0);
    for (int round = 0; round < 2000; ++round)
        pool.parallel_for(97, 1 + round % 11, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                ++hits[static_cast<std::size_t>(i)];
        });
    for (int hit : hits)
        EXPECT_EQ(hit, 2000);
}

// A late thread that holds the last claim of one loop must not take it for a chunk of the next,
// longer one. Short loops of growing length, more threads than processors, the loop's data on the
// stack.
TEST(ThreadPool, ALateThreadNeverRunsAChunkOfALongerNextLoop) {
    ThreadPool pool(8);
    for (int round = 0; round < 4000; ++round)
        for (std::int64_t n : {2, 3, 7, 20}) {
            std::array<std::atomic<int>, 20> runs{};
            pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t) {
                runs[static_cast<std::size_t>(begin)].fetch_add(1, std::memory_order_relaxed);
            });
            for (std::int64_t i = 0; i < 20; ++i)
                ASSERT_EQ(runs[static_cast<std::size_t>(i)].load(), i < n ? 1 : 0)
                    << "round " << round << ", loop of " << n << ", chunk " << i;
        }
}

TEST(ThreadPool, ChunkwiseSumsHaveTheSameBitsForEveryPoolSize) {
    std::vector<float> values(10'000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<float>(i)) * 1e3f;
    const auto sum = [&](int threads) {
        ThreadPool pool(threads);
        std::vector<float> partial(100);
        pool.parallel_for(10'000, 100, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                partial[static_cast<std::size_t>(begin / 100)] +=
                    values[static_cast<std::size_t>(i)];
        });
        return std::accumulate(partial.begin(), partial.end(), 0.0f);
    };
    const float alone = sum(1);
    for (int threads : {2, 3, 7})
        EXPECT_EQ(sum(threads), alone);
}

TEST(ThreadPool, NestedLoopsRunInlineOnTheSameThread) {
    ThreadPool pool(3);
    std::atomic<int> inner_total = 0;
    std::atomic<int> strangers = 0;
    pool.parallel_for(12, 1, [&](std::int64_t, std::int64_t) {
        const std::thread::id outer = std::this_thread::get_id();
        pool.parallel_for(10, 3, [&](std::int64_t begin, std::int64_t end) {
            inner_total += static_cast<int>(end - begin);
            strangers += std::this_thread::get_id() != outer;
        });
    });
    EXPECT_EQ(inner_total, 120);
    EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, PoolOfOneStaysOnTheCaller) {
    ThreadPool pool(1);
    bool elsewhere = false;
    pool.parallel_for(100, 1, [&, caller = std::this_thread::get_id()](auto, auto) {
        elsewhere |= std::this_thread::get_id() != caller;
    });
    EXPECT_FALSE(elsewhere);
}

TEST(ThreadPool, TwoCallersShareOnePoolWithoutLosingWork) {
    ThreadPool pool(3);
    std::atomic<std::int64_t> total = 0;
    const auto caller = [&] {
        for (int round = 0; round < 500; ++round)
            pool.parallel_for(64, 4,
                              [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
    };
    std::thread other(caller);
    caller();
    other.join();
    EXPECT_EQ(total, 2 * 500 * 64);
}

TEST(ThreadPool, WorkersThatFellAsleepWakeUp) {
    ThreadPool pool(2);
    for (int round = 0; round < 5; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        std::atomic<int> arrived = 0;
        // Both chunks wait for each other, so one thread alone could not finish them.
        pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
            ++arrived;
            while (arrived < 2)
                std::this_thread::yield();
        });
        EXPECT_EQ(arrived, 2);
    }
}

TEST(ThreadPool, LargestRangesDoNotOverflow) {
    ThreadPool pool(2);
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> covered = 0;
    pool.parallel_for(kMost, kMost / 3,
                      [&](std::int64_t begin, std::int64_t end) { covered += end - begin; });
    EXPECT_EQ(covered, kMost);
}

TEST(ThreadPool, GrainOfZeroIsACallerBug) {
    ThreadPool alone(1);
    EXPECT_DEATH(alone.parallel_for(1, 0, [](auto, auto) {}), "grain > 0");
}

TEST(Cpus, AffinityMaskIsRespected) {
    const std::vector<int> all = allowed_cpus();
    ASSERT_FALSE(all.empty());
    EXPECT_GE(usable_cpu_count(), 1);
    EXPECT_LE(usable_cpu_count(), static_cast<int>(all.size()));
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(all.back()), &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
        EXPECT_EQ(allowed_cpus(), std::vector<int>{all.back()});
        EXPECT_EQ(usable_cpu_count(), 1);
        EXPECT_EQ(ThreadPool().size(), 1);
    }).join();
}

TEST(Cpus, QuotaTextIsRead) {
    EXPECT_EQ(parse_cpu_quota("150000 100000\n"), 1.5);
    EXPECT_EQ(parse_cpu_quota("max 100000\n"), 0);
    EXPECT_EQ(parse_cpu_quota(""), 0);
    EXPECT_EQ(parse_cpu_quota("100000 0"), 0);
    EXPECT_EQ(parse_cpu_quota("-5 100"), 0);
}

} // namespace
} // namespace lr
