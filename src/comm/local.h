// SPDX-License-Identifier: Apache-2.0
//
// comm/local.h: ranks as threads of one process.
#pragma once

#include "comm/communicator.h"

namespace lr {
class ThreadPool;
}

namespace lr::comm {

class Meetings;

// A world of ranks 0..ranks-1. It may end before its communicators do.
class LocalWorld {
  public:
    // No rank waits longer than `limit_seconds` for another; the default leaves room for a rank
    // whose weights come from a slow disk.
    explicit LocalWorld(int ranks, double limit_seconds = 300); // 1..kMaxRanks

    // The communicator of one rank, to be used by one thread at a time; asked for once a rank.
    // `pool` shares the rank's part of sums and copies, and outlives the communicator. When it is
    // destroyed the rank has left, and ranks that wait for it fail.
    std::unique_ptr<Communicator> join(int rank, ThreadPool& pool);

    // The failure that ended the world, or ok.
    Status failure() const;
    // Lets the ranks begin anew after a failure; none of them may be in a call.
    void reset();

  private:
    std::shared_ptr<Meetings> meetings_;
};

} // namespace lr::comm
