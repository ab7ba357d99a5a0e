// SPDX-License-Identifier: Apache-2.0
#include "engine/rank_group.h"

#include "core/check.h"
#include "core/cpus.h"
#include "engine/cuda_executor.h"
#include "model/open.h"

#include <algorithm>
#include <pthread.h>
#include <system_error>

namespace lr::engine {
namespace {

Result<std::unique_ptr<Executor>> make_executor(const ExecutorParts& parts, Place place) {
    if (!place.is_cuda())
        return std::unique_ptr<Executor>(std::make_unique<CpuExecutor>(parts));
    LR_TRY_ASSIGN(auto executor, CudaExecutor::create(parts, place.cuda));
    return std::unique_ptr<Executor>(std::move(executor));
}

} // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::load(const model::OpenModel& opened, std::int32_t tp,
                                                   std::int32_t ep,
                                                   const graph::StepOptions& options, int threads,
                                                   Place place, NodeObserver* observer) {
    const std::int32_t ranks = tp * ep;
    LR_CHECK(ranks >= 1 && ranks <= kMaxRanks);
    const int total = threads > 0 ? threads : usable_cpu_count();
    std::unique_ptr<RankGroup> group(new RankGroup(opened));
    if (ranks > 1)
        group->world_.emplace(ranks);
    for (std::int32_t r = 0; r < ranks; ++r) {
        const model::Shard shard{.tp = tp, .tp_rank = r % tp, .ep = ep, .ep_rank = r / tp};
        LR_TRY_ASSIGN(Weights weights, Weights::bind(opened, shard));
        const int share = std::max(1, total / ranks + (r < total % ranks ? 1 : 0));
        group->ranks_.push_back(std::make_unique<Rank>(shard, std::move(weights), share));
        Rank& rank = *group->ranks_.back();
        if (ranks > 1)
            rank.comms.world = group->world_->join(r, rank.pool);
        LR_TRY_ASSIGN(rank.executor, make_executor({.model = opened.model(),
                                                    .shard = shard,
                                                    .options = options,
                                                    .weights = rank.weights,
                                                    .pool = rank.pool,
                                                    .comms = rank.comms,
                                                    .observer = observer},
                                                   place));
    }
    LR_TRY(group->start_threads());
    LR_TRY(group->split_tensor_groups());
    return group;
}

RankGroup::~RankGroup() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

Status RankGroup::start_threads() {
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
        try {
            threads_.emplace_back([this, r] { serve(r); });
        } catch (const std::system_error& error) {
            return fail(Code::kInternal, "rank {}: its thread cannot be started: {}", r,
                        error.what());
        }
        pthread_setname_np(threads_.back().native_handle(), fmt::format("lr-rank-{}", r).c_str());
    }
    return {};
}

Status RankGroup::split_tensor_groups() {
    if (size() == 1)
        return {};
    return on_every_rank([&](std::size_t r) -> Status {
        Rank& rank = *ranks_[r];
        const std::int32_t colour = rank.shard.ep_rank;
        LR_TRY_ASSIGN(rank.comms.tensor,
                      rank.comms.world->split(colour, fmt::format("tensor group {}", colour)));
        return {};
    });
}

void RankGroup::serve(std::size_t rank) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return stopping_ || round_ != seen; });
        if (stopping_)
            return;
        seen = round_;
        const Work work = *work_;
        lock.unlock();
        work_on(rank, work);
        lock.lock();
        if (--busy_ == 0)
            changed_.notify_all();
    }
}

void RankGroup::work_on(std::size_t rank, Work work) {
    if (const Status status = work(rank); !status.ok())
        ranks_[rank]->comms.world->abandon(status);
}

Status RankGroup::on_every_rank(Work work) {
    if (size() == 1)
        return work(0);
    {
        const std::lock_guard lock(mutex_);
        work_ = &work;
        ++round_;
        busy_ = threads_.size();
    }
    changed_.notify_all();
    work_on(0, work);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0; });
    Status failure = world_->failure();
    if (!failure.ok())
        world_->reset();
    return failure;
}

Status RankGroup::allocate_states(const RankedStep& step) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        LR_TRY_ASSIGN(StateStore store,
                      ranks_[r]->executor->allocate_states(step.ranks_[r]->step()));
        ranks_[r]->states.emplace(std::move(store));
    }
    return {};
}

Result<RankedStep> RankGroup::prepare(const graph::StepShape& shape) {
    RankedStep step;
    for (const auto& rank : ranks_) {
        LR_TRY_ASSIGN(Executable * executable, rank->executor->prepare(shape));
        step.ranks_.push_back(executable);
    }
    return step;
}

Status RankGroup::run(const RankedStep& step, std::span<const std::byte> inputs,
                      std::span<const std::int32_t> zero_slots) {
    return on_every_rank([&](std::size_t r) -> Status {
        Rank& rank = *ranks_[r];
        for (std::int32_t slot : zero_slots)
            LR_TRY(rank.states->zero_slot(slot));
        return rank.executor->run(*step.ranks_[r], inputs, *rank.states);
    });
}

Status RankGroup::copy_state(std::int32_t from_slot, std::int32_t to_slot,
                             std::span<const std::int32_t> from_pages,
                             std::span<const std::int32_t> to_pages) {
    for (const auto& rank : ranks_)
        LR_TRY(rank->states->copy(from_slot, to_slot, from_pages, to_pages));
    return {};
}

Result<ConstView> RankGroup::tensor(const RankedStep& step, graph::TensorId id) const {
    return ranks_.front()->executor->tensor(*step.ranks_.front(), id);
}

std::string RankGroup::device() const {
    return ranks_.front()->executor->device(threads());
}

int RankGroup::threads() const {
    int sum = 0;
    for (const auto& rank : ranks_)
        sum += rank->pool.size();
    return sum;
}

std::int64_t RankGroup::weight_bytes() const {
    std::int64_t sum = 0;
    for (const auto& rank : ranks_)
        sum += rank->weights.bytes();
    return sum;
}

std::int64_t RankGroup::state_bytes() const {
    std::int64_t sum = 0;
    for (const auto& rank : ranks_)
        sum += rank->states->sizes().total_bytes();
    return sum;
}

namespace {

// How ranks divide a state: like the rows of a weight. `unit` rows are one piece of the state (a
// channel, a head), `source` is the part of the weight.
struct StateRows {
    const char* entry;
    std::int32_t source;
    std::int64_t unit;
    std::int64_t pieces; // of all ranks
    bool per_token;
};

StateRows state_rows(graph::StateKind kind, const model::Config& config) {
    switch (kind) {
    case graph::StateKind::kConv:
        return {"linear_attn.conv1d", 0, 1, config.conv_dim(), false};
    case graph::StateKind::kSsm:
        return {"linear_attn.A_log", 0, 1, config.v_heads, false};
    case graph::StateKind::kKeys:
        return {"self_attn.qkv_proj", 1, config.head_dim, config.kv_heads, true};
    case graph::StateKind::kValues:
    case graph::StateKind::kTokenCounts: // not divided
        break;
    }
    return {"self_attn.qkv_proj", 2, config.head_dim, config.kv_heads, true};
}

} // namespace

Result<std::vector<std::byte>> RankGroup::read_state(std::int32_t layer, graph::StateKind kind,
                                                     std::int32_t slot,
                                                     std::span<const std::int32_t> pages,
                                                     std::int64_t length) const {
    const auto read = [&](const Rank& rank) {
        return rank.states->read(layer, kind, slot, pages, length);
    };
    const std::int32_t tp = ranks_.front()->shard.tp;
    if (tp == 1 || kind == graph::StateKind::kTokenCounts) // counts are the same on all
        return read(*ranks_.front());
    const StateRows rows = state_rows(kind, opened_.config());
    std::vector<std::byte> whole;
    for (std::int32_t r = 0; r < tp; ++r) {
        const Rank& rank = *ranks_[static_cast<std::size_t>(r)];
        LR_TRY_ASSIGN(const std::vector<std::byte> part, read(rank));
        std::vector<model::RowRange> ranges;
        std::int64_t local = 0;
        for (const model::RowRange& range : model::local_rows(
                 opened_.model().entry(fmt::format("layers.{}.{}", layer, rows.entry)), rank.shard))
            if (range.source == rows.source) {
                ranges.push_back({0, range.first / rows.unit, range.rows / rows.unit});
                local += range.rows / rows.unit;
            }
        // Keys and values: the pieces of each token in turn.
        const std::int64_t times = rows.per_token ? length : 1;
        const std::int64_t piece = times == 0 ? 0 : std::ssize(part) / (times * local);
        whole.resize(static_cast<std::size_t>(times * rows.pieces * piece));
        const std::byte* from = part.data();
        for (std::int64_t t = 0; t < times; ++t)
            for (const model::RowRange& range : ranges) {
                std::copy_n(from, range.rows * piece,
                            whole.data() + (t * rows.pieces + range.first) * piece);
                from += range.rows * piece;
            }
    }
    return whole;
}

} // namespace lr::engine
