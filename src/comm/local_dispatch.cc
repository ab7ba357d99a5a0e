// SPDX-License-Identifier: Apache-2.0
//
// Dispatch of comm/local. Every rank reads every rank's ids, so that all know all counts: where a
// row lies follows from them alone, and an overflow is seen by all before anything is written. The
// receiver copies the rows it gets.
#include "comm/expert_rows.h"
#include "comm/local_rank.h"

#include <array>
#include <cstring>
#include <vector>

namespace lr::comm {
namespace {

// The views of a dispatch call.
enum : std::size_t { kX, kIds, kWeights, kLive };

void copy_row(View to, std::int64_t row, ConstView from, std::int64_t source) {
    std::memcpy(to.row(row), from.row(source),
                static_cast<std::size_t>(dtype_bytes(to.dtype, to.shape.row_count())));
}

// What every rank of a dispatch must agree on; n is each rank's own.
Call dispatch_call(const char* operation, std::string_view at, const Tokens& tokens, View rows) {
    return {.operation = operation,
            .at = at,
            .dtype = tokens.x.dtype,
            .shape = {tokens.experts, tokens.ids.shape[1], rows.shape[1], rows.shape[2]},
            .views = {tokens.x, tokens.ids, tokens.weights, tokens.n_live},
            .out = {nullptr, tokens.weights.dtype, {}}};
}

// Every rank's Tokens, as brought to a dispatch.
class Batches {
  public:
    struct Batch {
        ConstView x, ids, weights;
        std::int64_t live = 0;

        std::int32_t expert(std::int64_t token, std::int64_t slot) const {
            return int_at(ids, token, slot);
        }
    };

    explicit Batches(const MeetingGroup& group) {
        for (int s = 0; s < group.size(); ++s) {
            const auto& views = Meetings::offer(group, s).views;
            batches_.push_back({.x = views[kX],
                                .ids = views[kIds],
                                .weights = views[kWeights],
                                .live = live_rows(views[kLive], views[kX].rows())});
        }
        slots_ = batches_.front().ids.shape[1];
    }

    int ranks() const { return static_cast<int>(batches_.size()); }
    std::int64_t slots() const { return slots_; }
    const Batch& of(int rank) const { return batches_[static_cast<std::size_t>(rank)]; }

    // Calls visit(token, slot, expert) for the pairs of a rank that have an expert, in order.
    template <typename Visit> void for_each_pair(int rank, Visit visit) const {
        const Batch& batch = of(rank);
        for (std::int64_t t = 0; t < batch.live; ++t)
            for (std::int64_t k = 0; k < slots_; ++k)
                if (const std::int32_t e = batch.expert(t, k); e >= 0)
                    visit(t, k, e);
    }

    // Whether a token chose an expert in [first, first + local).
    bool chose(int rank, std::int64_t token, std::int64_t first, std::int64_t local) const {
        for (std::int64_t k = 0; k < slots_; ++k)
            if (const std::int64_t e = of(rank).expert(token, k); e >= first && e < first + local)
                return true;
        return false;
    }

    Status check_ids(std::int64_t experts) const {
        for (int s = 0; s < ranks(); ++s)
            for (std::int64_t t = 0; t < of(s).live; ++t)
                for (std::int64_t k = 0; k < slots_; ++k)
                    if (const std::int32_t e = of(s).expert(t, k); e < -1 || e >= experts)
                        return fail(Code::kInternal,
                                    "rank {}: token {} slot {}: expected an expert in -1..{}, "
                                    "got {}",
                                    s, t, k, experts - 1, e);
        return {};
    }

  private:
    std::int64_t slots_ = 0;
    std::vector<Batch> batches_;
};

// Rows that each expert gets from each source rank: [source * experts + expert].
using PairCounts = std::vector<std::int64_t>;

Result<PairCounts> count_pairs(const Batches& all, std::int64_t experts, std::int64_t capacity) {
    LR_TRY(all.check_ids(experts));
    PairCounts counts(static_cast<std::size_t>(all.ranks() * experts), 0);
    for (int s = 0; s < all.ranks(); ++s)
        all.for_each_pair(s, [&](std::int64_t, std::int64_t, std::int32_t e) {
            ++counts[static_cast<std::size_t>(s * experts + e)];
        });
    for (std::int64_t e = 0; e < experts; ++e) {
        std::int64_t total = 0;
        for (int s = 0; s < all.ranks(); ++s)
            total += counts[static_cast<std::size_t>(s * experts + e)];
        if (total > capacity)
            return fail(Code::kResourceExhausted,
                        "expert {} (rank {}): {} rows are more than its capacity of {}", e,
                        e / (experts / all.ranks()), total, capacity);
    }
    return counts;
}

void receive_pairs(const Batches& all, int rank, const ExpertMajor& to) {
    const std::int64_t local = to.rows.shape[0], capacity = to.rows.shape[1];
    const View rows = flat(to.rows);
    auto* counts = to.counts.as<std::int32_t>();
    std::fill_n(counts, local, 0);
    for (int s = 0; s < all.ranks(); ++s)
        all.for_each_pair(s, [&](std::int64_t t, std::int64_t k, std::int32_t e) {
            if (e / local != rank)
                return;
            const std::int64_t row = e % local * capacity + counts[e % local]++;
            copy_row(rows, row, all.of(s).x, t);
            const std::array<std::int64_t, 3> source = {s, t, k};
            std::copy(source.begin(), source.end(), to.source.as<std::int32_t>() + row * 3);
        });
}

// The rows before a rank's own are those of lower source ranks.
void place_pairs(const Batches& all, int rank, const PairCounts& counts, const ExpertMajor& to) {
    const std::int64_t local = to.rows.shape[0], capacity = to.rows.shape[1];
    const std::int64_t experts = local * all.ranks();
    std::vector<std::int64_t> next(static_cast<std::size_t>(experts), 0);
    for (std::int64_t i = 0; i < rank * experts; ++i)
        next[static_cast<std::size_t>(i % experts)] += counts[static_cast<std::size_t>(i)];
    for (std::int64_t t = 0; t < to.row_of.rows(); ++t)
        std::fill_n(to.row_of.row_as<std::int32_t>(t), all.slots(), -1);
    all.for_each_pair(rank, [&](std::int64_t t, std::int64_t k, std::int32_t e) {
        to.row_of.row_as<std::int32_t>(t)[k] =
            static_cast<std::int32_t>(e % local * capacity + next[static_cast<std::size_t>(e)]++);
    });
}

Status check_blocks(const Batches& all, std::int64_t experts, std::int64_t capacity) {
    LR_TRY(all.check_ids(experts));
    const std::int64_t local = experts / all.ranks();
    for (int s = 0; s < all.ranks(); ++s)
        for (int r = 0; r < all.ranks(); ++r) {
            std::int64_t count = 0;
            for (std::int64_t t = 0; t < all.of(s).live; ++t)
                count += all.chose(s, t, r * local, local) ? 1 : 0;
            if (count > capacity)
                return fail(Code::kResourceExhausted,
                            "rank {}: {} rows from rank {} are more than its capacity of {}", r,
                            count, s, capacity);
        }
    return {};
}

void receive_tokens(const Batches& all, int rank, std::int64_t local, const RankMajor& to) {
    const std::int64_t capacity = to.rows.shape[1], first = rank * local;
    const View rows = flat(to.rows), ids = flat(to.ids), weights = flat(to.weights);
    for (int s = 0; s < all.ranks(); ++s) {
        const auto& batch = all.of(s);
        std::int64_t row = s * capacity;
        for (std::int64_t t = 0; t < batch.live; ++t) {
            if (!all.chose(s, t, first, local))
                continue;
            copy_row(rows, row, batch.x, t);
            copy_row(weights, row, batch.weights, t);
            for (std::int64_t k = 0; k < all.slots(); ++k) {
                const std::int64_t e = batch.expert(t, k) - first;
                ids.row_as<std::int32_t>(row)[k] =
                    e >= 0 && e < local ? static_cast<std::int32_t>(e) : -1;
            }
            to.tokens.as<std::int32_t>()[row++] = static_cast<std::int32_t>(t);
        }
        to.counts.as<std::int32_t>()[s] = static_cast<std::int32_t>(row - s * capacity);
    }
}

void place_tokens(const Batches& all, int rank, std::int64_t local, const RankMajor& to) {
    std::array<std::int32_t, kMaxRanks> next{};
    for (std::int64_t t = 0; t < to.row_of.rows(); ++t)
        for (int r = 0; r < all.ranks(); ++r)
            to.row_of.row_as<std::int32_t>(t)[r] =
                t < all.of(rank).live && all.chose(rank, t, r * local, local)
                    ? next[static_cast<std::size_t>(r)]++
                    : -1;
}

} // namespace

Status LocalRank::dispatch(std::string_view at, const Tokens& tokens, const ExpertMajor& to) {
    if (Status status = check(tokens, to, size()); !status.ok())
        return refuse(status.with_context(fmt::format("dispatch at {}", at)));
    LR_TRY(meet(dispatch_call("dispatch, expert-major,", at, tokens, to.rows)));
    const Batches all(group_);
    const auto counts = count_pairs(all, tokens.experts, to.rows.shape[1]);
    if (!counts)
        return give_up(counts.error().with_context(fmt::format("dispatch at {}", at)));
    receive_pairs(all, member_, to);
    place_pairs(all, member_, *counts, to);
    return release(at);
}

Status LocalRank::dispatch(std::string_view at, const Tokens& tokens, const RankMajor& to) {
    if (Status status = check(tokens, to, size()); !status.ok())
        return refuse(status.with_context(fmt::format("dispatch at {}", at)));
    LR_TRY(meet(dispatch_call("dispatch, rank-major,", at, tokens, to.rows)));
    const Batches all(group_);
    const std::int64_t local = tokens.experts / size();
    if (Status status = check_blocks(all, tokens.experts, to.rows.shape[1]); !status.ok())
        return give_up(status.with_context(fmt::format("dispatch at {}", at)));
    receive_tokens(all, member_, local, to);
    place_tokens(all, member_, local, to);
    return release(at);
}

} // namespace lr::comm
