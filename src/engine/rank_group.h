// SPDX-License-Identifier: Apache-2.0
//
// engine/rank_group.h: the ranks that run a model together, as threads of one process. Each has its
// shard of the weights, memory for its part of the states, an executor and a share of the threads;
// all get the same inputs. With one rank there is no second thread, no waiting and no copy.
#pragma once

#include "comm/local.h"
#include "core/function_ref.h"
#include "engine/executor.h"
#include "engine/place.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace lr::engine {

// A step's executable on every rank.
class RankedStep {
  public:
    const graph::Step& step() const { return ranks_.front()->step(); }
    const InputBlock& inputs() const { return ranks_.front()->inputs(); } // the same on all

  private:
    friend class RankGroup;
    std::vector<Executable*> ranks_;
};

class RankGroup {
  public:
    // tp * ep ranks, 1..kMaxRanks. threads <= 0: one for each usable processor; every rank gets at
    // least one. `opened` and `observer` (optional) outlive the group.
    static Result<std::unique_ptr<RankGroup>> load(const model::OpenModel& opened, std::int32_t tp,
                                                   std::int32_t ep,
                                                   const graph::StepOptions& options, int threads,
                                                   Place place, NodeObserver* observer);
    ~RankGroup();

    // Memory for the states of a step, on every rank (all steps of one engine agree on them).
    Status allocate_states(const RankedStep& step);
    // Slots and pages are numbers that hold on every rank: rank 0's store hands them out.
    StateStore& states() { return *ranks_.front()->states; }

    Result<RankedStep> prepare(const graph::StepShape& shape);
    // Zeroes the slots and runs the step on every rank. The first failure ends it everywhere and is
    // returned, with its rank named where there are several; the group can run the next step.
    Status run(const RankedStep& step, std::span<const std::byte> inputs,
               std::span<const std::int32_t> zero_slots);
    // The memory of a tensor on rank 0 after run(), valid until the next run.
    Result<ConstView> tensor(const RankedStep& step, graph::TensorId id) const;

    // A state of all ranks put together: what one rank alone would hold (StateStore::read).
    Result<std::vector<std::byte>> read_state(std::int32_t layer, graph::StateKind kind,
                                              std::int32_t slot,
                                              std::span<const std::int32_t> pages,
                                              std::int64_t length) const;

    // Copies a slot and pages on every rank (StateStore::copy). No step may run.
    Status copy_state(std::int32_t from_slot, std::int32_t to_slot,
                      std::span<const std::int32_t> from_pages,
                      std::span<const std::int32_t> to_pages);

    std::string device() const; // what rank 0 runs on, and the threads of all
    int size() const { return static_cast<int>(ranks_.size()); }
    int threads() const;               // of all ranks
    std::int64_t weight_bytes() const; // the same
    std::int64_t state_bytes() const;  // the same

  private:
    struct Rank {
        Rank(const model::Shard& place, Weights weights_in, int thread_count)
            : shard(place), weights(std::move(weights_in)), pool(thread_count) {}

        model::Shard shard;
        Weights weights;
        ThreadPool pool;
        RankComms comms;
        std::unique_ptr<Executor> executor;
        std::optional<StateStore> states;
    };
    using Work = FunctionRef<Status(std::size_t rank)>;

    explicit RankGroup(const model::OpenModel& opened) : opened_(opened) {}
    Status start_threads();
    Status split_tensor_groups();
    // Runs work on every rank's thread and waits for all.
    Status on_every_rank(Work work);
    void serve(std::size_t rank);
    void work_on(std::size_t rank, Work work);

    const model::OpenModel& opened_;
    std::optional<comm::LocalWorld> world_; // with several ranks
    std::vector<std::unique_ptr<Rank>> ranks_;

    std::mutex mutex_; // guards all below
    std::condition_variable changed_;
    const Work* work_ = nullptr; // of this round
    std::uint64_t round_ = 0;
    std::size_t busy_ = 0; // threads still at this round
    bool stopping_ = false;
    std::vector<std::thread> threads_; // of ranks 1 and up; rank 0 runs on its caller's
};

} // namespace lr::engine
