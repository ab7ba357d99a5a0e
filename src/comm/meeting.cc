// SPDX-License-Identifier: Apache-2.0
#include "comm/meeting.h"

#include "core/check.h"
#include "core/cpus.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <immintrin.h>

namespace lr::comm {
namespace {

// About 50 us: a meeting of ranks that do equal work is over sooner.
constexpr int kSpins = 1500;

void enter(MeetingGroup::Offer& offer, const Call& call) {
    offer.call = call;
    const std::size_t length = std::min(call.at.size(), offer.place.size());
    std::copy_n(call.at.data(), length, offer.place.data());
    offer.call.at = {offer.place.data(), length};
}

bool same(const Call& a, const Call& b) {
    return std::strcmp(a.operation, b.operation) == 0 && a.at == b.at && a.dtype == b.dtype &&
           a.shape == b.shape && a.row_stride == b.row_stride && a.out.dtype == b.out.dtype &&
           a.out.row_stride == b.out.row_stride;
}

// "all_reduce of bf16 [4, 64] at L3.11"; a barrier has no tensor.
std::string describe(const Call& call) {
    std::string text = call.operation;
    if (call.shape.rank() > 0)
        text += fmt::format(" of {} {}", dtype_name(call.dtype), call.shape.to_string());
    if (call.row_stride != 0 && call.row_stride != call.shape.row_count())
        text += fmt::format(" with rows {} apart", call.row_stride);
    return text + fmt::format(" at {}", call.at);
}

std::unique_ptr<MeetingGroup> make_group(std::string name, std::vector<int> members) {
    auto group = std::make_unique<MeetingGroup>();
    group->name = std::move(name);
    group->members = std::move(members);
    group->here.assign(group->members.size(), false);
    for (auto& offers : group->offers)
        offers.resize(group->members.size());
    return group;
}

} // namespace

Meetings::Meetings(int ranks, double limit_seconds) : limit_seconds_(limit_seconds) {
    LR_CHECK(ranks >= 1 && ranks <= kMaxRanks);
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank)
        members.push_back(rank);
    world_ = make_group("world", std::move(members));
    left_.assign(static_cast<std::size_t>(ranks), false);
    spins_ = ranks <= usable_cpu_count() ? kSpins : 0;
}

MeetingGroup& Meetings::group(const MeetingGroup& parent, std::uint64_t phase, int colour,
                              std::vector<int> members, const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto& found = groups_[{&parent, phase, colour}];
    if (!found)
        found = make_group(name, std::move(members));
    return *found;
}

Status Meetings::meet(MeetingGroup& group, int member, const Call& call) {
    std::uint64_t phase = 0;
    {
        const std::lock_guard lock(mutex_);
        if (failed_.load(std::memory_order_relaxed))
            return failure_;
        phase = group.phase.load(std::memory_order_relaxed);
        const auto self = static_cast<std::size_t>(member);
        LR_CHECK(!group.here[self]);
        enter(group.offers[phase & 1][self], call);
        group.here[self] = true;
        if (++group.arrived == group.size()) {
            if (Status status = check_equal(group, phase); !status.ok())
                return fail_locked(std::move(status));
            group.arrived = 0;
            group.here.assign(group.here.size(), false);
            group.phase.store(phase + 1, std::memory_order_release);
            changed_.notify_all();
            return {};
        }
        if (someone_left(group))
            return fail_locked(missing(group, call, "has ended", true));
    }
    return wait(group, phase, call);
}

Status Meetings::wait(MeetingGroup& group, std::uint64_t phase, const Call& call) {
    const auto held = [&] { return group.phase.load(std::memory_order_acquire) != phase; };
    for (int i = 0; i < spins_ && !failed_.load(std::memory_order_relaxed); ++i) {
        if (held())
            return {};
        _mm_pause();
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(limit_seconds_),
                      [&] { return held() || failed_.load(std::memory_order_relaxed); });
    if (held())
        return {};
    if (failed_.load(std::memory_order_relaxed))
        return failure_;
    return fail_locked(
        missing(group, call, fmt::format("did not come within {} s", limit_seconds_), false));
}

// The majority is not asked: the first member's call is the measure, and the first that differs is
// named beside it.
Status Meetings::check_equal(const MeetingGroup& group, std::uint64_t phase) const {
    const auto& offers = group.offers[phase & 1];
    for (std::size_t i = 1; i < offers.size(); ++i)
        if (!same(offers[0].call, offers[i].call))
            return lr::fail(
                Code::kInternal,
                "{}: expected the same call from every rank, got rank {}: {}; rank {}: {}",
                group.name, group.members[0], describe(offers[0].call), group.members[i],
                describe(offers[i].call));
    return {};
}

Status Meetings::missing(const MeetingGroup& group, const Call& call, const std::string& how,
                         bool left_only) const {
    std::string absent, waiting;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
        const int rank = group.members[i];
        if (!group.here[i] && left_only && !left_[static_cast<std::size_t>(rank)])
            continue;
        std::string& list = group.here[i] ? waiting : absent;
        list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
    }
    return lr::fail(Code::kInternal, "{}: {}: expected every rank, but rank {} {} (waiting: {})",
                    group.name, describe(call), absent, how, waiting);
}

bool Meetings::someone_left(const MeetingGroup& group) const {
    for (std::size_t i = 0; i < group.members.size(); ++i)
        if (!group.here[i] && left_[static_cast<std::size_t>(group.members[i])])
            return true;
    return false;
}

Status Meetings::fail_locked(Status why) {
    if (!failed_.load(std::memory_order_relaxed)) {
        failure_ = std::move(why);
        failed_.store(true, std::memory_order_release);
        changed_.notify_all();
    }
    return failure_;
}

Status Meetings::fail(Status why) {
    const std::lock_guard lock(mutex_);
    return fail_locked(std::move(why));
}

void Meetings::leave(int rank) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    const auto check = [&](const MeetingGroup& group) {
        if (group.arrived == 0 || !someone_left(group))
            return;
        const auto waits = static_cast<std::size_t>(
            std::find(group.here.begin(), group.here.end(), true) - group.here.begin());
        const auto& offers = group.offers[group.phase.load(std::memory_order_relaxed) & 1];
        const Status ended = fail_locked(missing(group, offers[waits].call, "has ended", true));
        LR_CHECK(!ended.ok());
    };
    check(*world_);
    for (const auto& [key, group] : groups_)
        check(*group);
}

Status Meetings::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

void Meetings::reset() {
    const std::lock_guard lock(mutex_);
    const auto clear = [](MeetingGroup& group) {
        group.arrived = 0;
        group.here.assign(group.here.size(), false);
    };
    clear(*world_);
    for (const auto& [key, group] : groups_)
        clear(*group);
    failure_ = {};
    failed_.store(false, std::memory_order_release);
}

} // namespace lr::comm
