// SPDX-License-Identifier: Apache-2.0
//
// comm/local_rank.h: one rank of a comm/local group. Data moves by reading: a rank takes what it
// needs from the others' memory between two meetings.
#pragma once

#include "comm/communicator.h"
#include "comm/meeting.h"
#include "core/thread_pool.h"

#include <memory>
#include <string>

namespace lr::comm {

class LocalRank final : public Communicator {
  public:
    // `leaves`: this is the rank's place in the world, and the rank has left when it is destroyed.
    LocalRank(std::shared_ptr<Meetings> meetings, MeetingGroup& group, int member, ThreadPool& pool,
              bool leaves)
        : meetings_(std::move(meetings)), group_(group), member_(member), pool_(pool),
          leaves_(leaves) {}
    ~LocalRank() override;

    int rank() const override { return member_; }
    int size() const override { return group_.size(); }
    Result<std::unique_ptr<Communicator>> split(int colour, std::string name) override;
    Status barrier(std::string_view at) override;
    Result<PeerRows> exchange(std::string_view at, ConstView mine) override;
    Status release(std::string_view at) override;
    Status all_reduce(std::string_view at, ConstView x, View y) override;
    Status all_gather(std::string_view at, ConstView x, View y) override;
    Status dispatch(std::string_view at, const Tokens& tokens, const ExpertMajor& to) override;
    Status dispatch(std::string_view at, const Tokens& tokens, const RankMajor& to) override;
    Status combine(std::string_view at, const Tokens& tokens, const ExpertMajor& from, ConstView z,
                   View y) override;
    Status combine(std::string_view at, const Tokens& tokens, const RankMajor& from,
                   const RankMajorResult& result, View y) override;
    void abandon(const Status& why) override;

  private:
    Status meet(const Call& call) { return meetings_->meet(group_, member_, call); }
    // View `which` that a rank of the group brought to the last meeting.
    ConstView theirs(int rank, std::size_t which) const {
        return Meetings::offer(group_, rank).views[which];
    }
    // End the world and return its failure: this one, unless another came first. give_up: every
    // rank sees this; refuse: this rank alone, which the message then names.
    Status give_up(const Status& why) { return meetings_->fail(why); }
    Status refuse(const Status& why);

    // Elements [first, end) of all ranks' x, added into `y`; and copied from the ranks that added
    // them.
    void sum_elements(View y, std::int64_t first, std::int64_t end) const;
    void copy_elements(View y) const;

    std::shared_ptr<Meetings> meetings_;
    MeetingGroup& group_;
    int member_;
    ThreadPool& pool_;
    bool leaves_;
};

} // namespace lr::comm
