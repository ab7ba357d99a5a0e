// SPDX-License-Identifier: Apache-2.0
//
// tests/comm/world.h: ranks as threads of a test.
#pragma once

#include "comm/local.h"
#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace lr::comm {

using Work = std::function<Status(Communicator&)>;

// Runs one thread a rank until all have returned, and hands back what each returned. A rank whose
// work fails abandons it, as callers must.
inline std::vector<Status> run_ranks(LocalWorld& world, int ranks, const Work& work) {
    std::vector<Status> results(static_cast<std::size_t>(ranks));
    std::vector<std::unique_ptr<Communicator>> members;
    ThreadPool pool(1);
    for (int rank = 0; rank < ranks; ++rank)
        members.push_back(world.join(rank, pool));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            auto& member = members[static_cast<std::size_t>(rank)];
            Status& result = results[static_cast<std::size_t>(rank)];
            result = work(*member);
            if (!result.ok())
                member->abandon(result);
            member.reset();
        });
    for (std::thread& thread : threads)
        thread.join();
    return results;
}

inline void expect_all_ok(const std::vector<Status>& results) {
    for (std::size_t rank = 0; rank < results.size(); ++rank)
        EXPECT_TRUE(results[rank].ok()) << "rank " << rank << ": " << results[rank].message();
}

// Every rank but those in `but` failed with this one message.
inline void expect_all_say(const std::vector<Status>& results, const std::string& message,
                           const std::vector<int>& but = {}) {
    for (std::size_t rank = 0; rank < results.size(); ++rank)
        if (std::find(but.begin(), but.end(), static_cast<int>(rank)) == but.end())
            EXPECT_EQ(results[rank].message(), message) << "rank " << rank;
}

} // namespace lr::comm
