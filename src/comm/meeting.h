// SPDX-License-Identifier: Apache-2.0
//
// comm/meeting.h: where ranks that are threads of one process wait for one another, and how they
// fail together (comm/communicator.h says when).
#pragma once

#include "core/ranks.h"
#include "core/shape.h"
#include "core/status.h"
#include "core/view.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace lr::comm {

// What a rank brings to a meeting. Operation, place, dtype and shape must be equal on all ranks;
// views and payload are for the others to read.
struct Call {
    const char* operation = "";
    std::string_view at;
    DType dtype = DType::kU8;
    Shape shape;
    std::int64_t row_stride = 0;
    std::array<ConstView, 4> views = {};
    ConstView out; // its dtype and stride must be equal too
    std::int64_t payload = 0;
};

// The ranks of one group.
struct MeetingGroup {
    // A call as the others see it. Its place is a copy: the caller's may be gone.
    struct Offer {
        Call call;
        std::array<char, 64> place = {};
    };

    std::string name;
    std::vector<int> members; // ranks of the world, ascending
    int arrived = 0;
    std::vector<bool> here; // has arrived at the meeting under way
    // Two sets in turn: a rank may make its next offer while others still read this one.
    std::array<std::vector<Offer>, 2> offers;
    std::atomic<std::uint64_t> phase = 0; // meetings held

    int size() const { return static_cast<int>(members.size()); }
};

// All groups of one world.
class Meetings {
  public:
    Meetings(int ranks, double limit_seconds);

    MeetingGroup& world() { return *world_; }
    // The group of these members that came out of the parent's meeting number `phase`; the first
    // member to ask makes it.
    MeetingGroup& group(const MeetingGroup& parent, std::uint64_t phase, int colour,
                        std::vector<int> members, const std::string& name);

    // Waits until every member has come with the same call.
    Status meet(MeetingGroup& group, int member, const Call& call);
    // What a member brought to the last meeting; valid until this rank comes to the next.
    static const Call& offer(const MeetingGroup& group, int member) {
        const std::uint64_t held = group.phase.load(std::memory_order_acquire);
        return group.offers[(held - 1) & 1][static_cast<std::size_t>(member)].call;
    }

    // The first failure counts; returns it.
    Status fail(Status why);
    // A rank of the world that will come to no further meeting.
    void leave(int rank);
    Status failure() const;
    // Forgets a failure. No rank may be in a call.
    void reset();

  private:
    Status fail_locked(Status why);
    Status check_equal(const MeetingGroup& group, std::uint64_t phase) const;
    Status wait(MeetingGroup& group, std::uint64_t phase, const Call& call);
    Status missing(const MeetingGroup& group, const Call& call, const std::string& how,
                   bool left_only) const;
    bool someone_left(const MeetingGroup& group) const;

    const double limit_seconds_;
    int spins_ = 0;
    mutable std::mutex mutex_; // guards everything but `phase` and `failed_`
    std::condition_variable changed_;
    std::unique_ptr<MeetingGroup> world_;
    std::map<std::tuple<const MeetingGroup*, std::uint64_t, int>, std::unique_ptr<MeetingGroup>>
        groups_;
    std::vector<bool> left_;
    std::atomic<bool> failed_ = false;
    Status failure_;
};

} // namespace lr::comm
