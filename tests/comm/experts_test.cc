// SPDX-License-Identifier: Apache-2.0
//
// Dispatch and combine against a plain reference that sees all ranks' tokens at once. Dead tokens
// hold impossible ids and NaN, dead rows of every layout are NaN before and must be NaN after.
#include "numerics/bf16.h"
#include "tests/comm/world.h"
#include "tests/ops/guarded_tensor.h"

#include <cmath>
#include <limits>

namespace lr::comm {
namespace {

using ops::GuardedTensor;

constexpr std::int64_t kWidth = 700; // more than one piece of a sum
constexpr std::int64_t kSlots = 3;
constexpr double kWeights[kSlots] = {0.5, 0.25, 0.25}; // products and sums are exact

// The expert of (rank, token, slot); -1: none.
using Choice = std::int32_t (*)(int ranks, std::int64_t local, int rank, std::int64_t token,
                                std::int64_t slot);

std::int32_t nobody(int, std::int64_t, int, std::int64_t, std::int64_t) {
    return -1;
}
// All rows to the last expert of the last rank.
std::int32_t one_expert(int ranks, std::int64_t local, int, std::int64_t, std::int64_t) {
    return static_cast<std::int32_t>(ranks * local - 1);
}
std::int32_t mixed(int ranks, std::int64_t local, int rank, std::int64_t token, std::int64_t slot) {
    const numerics::CounterRng rng("choice", static_cast<std::uint64_t>(rank));
    const auto bits = rng.bits(static_cast<std::uint64_t>(token * kSlots + slot));
    return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(ranks * local + 1)) - 1;
}
std::int32_t in_turn(int ranks, std::int64_t local, int rank, std::int64_t token,
                     std::int64_t slot) {
    return static_cast<std::int32_t>((rank + token * kSlots + slot) % (ranks * local));
}

// One rank's tokens, what it receives, and what it gets back.
struct Parcel {
    std::int64_t live;
    GuardedTensor x, ids, weights, n_live;
    GuardedTensor rows, counts, source, row_of;                // expert-major
    GuardedTensor blocks, sent, tokens, experts, pi, block_of; // rank-major
    GuardedTensor z, z_row, partial, y;
    ExpertMajor slab;
    RankMajor block;
    std::int64_t model_experts;

    Parcel(DType dtype, int ranks, std::int64_t local, std::int64_t capacity, int rank,
           std::int64_t n, std::int64_t live_rows, Choice choice)
        : live(live_rows), x(dtype, {n, kWidth}), ids(DType::kI32, {n, kSlots}),
          weights(DType::kF32, {n, kSlots}), n_live(DType::kI32, {1}),
          rows(dtype, {local, capacity, kWidth}), counts(DType::kI32, {local}),
          source(DType::kI32, {local, capacity, 3}), row_of(DType::kI32, {n, kSlots}),
          blocks(dtype, {ranks, capacity, kWidth}), sent(DType::kI32, {ranks}),
          tokens(DType::kI32, {ranks, capacity}), experts(DType::kI32, {ranks, capacity, kSlots}),
          pi(DType::kF32, {ranks, capacity, kSlots}), block_of(DType::kI32, {n, ranks}),
          z(DType::kBF16, {ranks * capacity * kSlots, kWidth}),
          z_row(DType::kI32, {ranks, capacity, kSlots}),
          partial(DType::kF32, {ranks, capacity, kWidth}),
          y(DType::kBF16, {n, kWidth}), slab{rows, counts, source, row_of}, block{blocks, sent,
                                                                                  tokens, experts,
                                                                                  pi,     block_of},
          model_experts(ranks * local) {
        n_live.set(0, static_cast<double>(live));
        const std::string name = fmt::format("tokens {}", rank);
        x.fill(name.c_str(), 1.0);
        x.poison(live, n - live);
        for (std::int64_t i = 0; i < n * kSlots; ++i) {
            const std::int64_t token = i / kSlots, slot = i % kSlots;
            ids.set(i, token < live ? choice(ranks, local, rank, token, slot)
                                    : std::numeric_limits<std::int32_t>::max());
            weights.set(i, token < live ? kWeights[slot] : std::nan(""));
        }
    }

    Tokens own() { return {x, ids, weights, n_live, model_experts}; }
    std::int32_t id(std::int64_t token, std::int64_t slot) {
        return static_cast<std::int32_t>(ids.at(token * kSlots + slot));
    }
    double value(std::int64_t token, std::int64_t column) { return x.at(token * kWidth + column); }
};

class World {
  public:
    World(DType dtype, int ranks, std::int64_t local, std::int64_t capacity, Choice choice)
        : ranks_(ranks), local_(local), capacity_(capacity) {
        for (int rank = 0; rank < ranks; ++rank) // ranks have different numbers of tokens
            parcels.emplace_back(dtype, ranks, local, capacity, rank, 6 + rank, 5 + rank / 2,
                                 choice);
    }

    std::vector<Status> run(const std::function<Status(Communicator&, Parcel&)>& work) {
        LocalWorld world(ranks_);
        return run_ranks(world, ranks_, [&](Communicator& me) {
            return work(me, parcels[static_cast<std::size_t>(me.rank())]);
        });
    }

    // Every live pair in the order of source rank, token, slot.
    template <typename Visit> void for_each_pair(Visit visit) {
        for (int s = 0; s < ranks_; ++s)
            for (std::int64_t t = 0; t < parcels[static_cast<std::size_t>(s)].live; ++t)
                for (std::int64_t k = 0; k < kSlots; ++k)
                    if (const std::int32_t e = parcels[static_cast<std::size_t>(s)].id(t, k);
                        e >= 0)
                        visit(s, t, k, e);
    }

    void expect_expert_major() {
        std::vector<std::int64_t> filled(static_cast<std::size_t>(ranks_ * local_), 0);
        for_each_pair([&](int s, std::int64_t t, std::int64_t k, std::int32_t e) {
            Parcel& owner = parcels[static_cast<std::size_t>(e / local_)];
            Parcel& sender = parcels[static_cast<std::size_t>(s)];
            const std::int64_t row = e % local_ * capacity_ + filled[static_cast<std::size_t>(e)]++;
            EXPECT_EQ(owner.source.at(row * 3), s);
            EXPECT_EQ(owner.source.at(row * 3 + 1), t);
            EXPECT_EQ(owner.source.at(row * 3 + 2), k);
            EXPECT_EQ(sender.row_of.at(t * kSlots + k), row);
            for (std::int64_t j : {std::int64_t{0}, kWidth - 1})
                EXPECT_EQ(owner.rows.at(row * kWidth + j), sender.value(t, j));
        });
        for (int r = 0; r < ranks_; ++r) {
            Parcel& owner = parcels[static_cast<std::size_t>(r)];
            for (std::int64_t e = 0; e < local_; ++e) {
                const std::int64_t count = filled[static_cast<std::size_t>(r * local_ + e)];
                EXPECT_EQ(owner.counts.at(e), count);
                for (std::int64_t i = e * capacity_ + count; i < (e + 1) * capacity_; ++i) {
                    EXPECT_TRUE(std::isnan(owner.rows.at(i * kWidth))) << "dead row written";
                    EXPECT_EQ(owner.source.at(i * 3), -1) << "dead source written";
                }
            }
            EXPECT_TRUE(owner.rows.guards_intact() && owner.source.guards_intact());
        }
    }

    void expect_rank_major() {
        for (int r = 0; r < ranks_; ++r)
            for (int s = 0; s < ranks_; ++s)
                expect_block(parcels[static_cast<std::size_t>(r)], r,
                             parcels[static_cast<std::size_t>(s)], s);
    }

    // y = sum over slots of weight * factor(expert) * x, f32 in slot order, one rounding.
    void expect_combined(const std::function<double(std::int32_t)>& factor) {
        for (Parcel& parcel : parcels)
            for (std::int64_t t = 0; t < parcel.y.view().rows(); ++t) {
                if (t >= parcel.live) {
                    EXPECT_TRUE(parcel.y.row_is_zero(t));
                    continue;
                }
                for (std::int64_t j = 0; j < kWidth; ++j) {
                    float sum = 0;
                    for (std::int64_t k = 0; k < kSlots; ++k)
                        if (const std::int32_t e = parcel.id(t, k); e >= 0) {
                            const auto z = numerics::round_bf16(
                                static_cast<float>(factor(e) * parcel.value(t, j)));
                            sum += static_cast<float>(kWeights[k]) * z;
                        }
                    ASSERT_EQ(parcel.y.at(t * kWidth + j), numerics::round_bf16(sum));
                }
            }
    }

    std::vector<Parcel> parcels;

  private:
    void expect_block(Parcel& owner, int r, Parcel& sender, int s) {
        std::int64_t count = 0;
        for (std::int64_t t = 0; t < sender.live; ++t) {
            bool here = false;
            for (std::int64_t k = 0; k < kSlots; ++k)
                here = here || (sender.id(t, k) >= 0 && sender.id(t, k) / local_ == r);
            EXPECT_EQ(sender.block_of.at(t * ranks_ + r), here ? count : -1);
            if (!here)
                continue;
            const std::int64_t row = s * capacity_ + count++;
            EXPECT_EQ(owner.tokens.at(row), t);
            EXPECT_EQ(owner.blocks.at(row * kWidth + 1), sender.value(t, 1));
            for (std::int64_t k = 0; k < kSlots; ++k) {
                const std::int32_t e = sender.id(t, k);
                EXPECT_EQ(owner.experts.at(row * kSlots + k),
                          e >= 0 && e / local_ == r ? e % local_ : -1);
                EXPECT_EQ(owner.pi.at(row * kSlots + k), kWeights[k]);
            }
        }
        EXPECT_EQ(owner.sent.at(s), count);
        for (std::int64_t i = s * capacity_ + count; i < (s + 1) * capacity_; ++i) {
            EXPECT_TRUE(std::isnan(owner.blocks.at(i * kWidth))) << "dead row written";
            EXPECT_EQ(owner.tokens.at(i), -1) << "dead token written";
        }
    }

    int ranks_;
    std::int64_t local_, capacity_;
};

// What an expert does to a row, into the dtype of z.
void run_expert(GuardedTensor& z, std::int64_t to, GuardedTensor& x, std::int64_t from,
                double factor) {
    for (std::int64_t j = 0; j < kWidth; ++j)
        z.set(to * kWidth + j, factor * x.at(from * kWidth + j));
}

Status through_slab(Communicator& me, Parcel& mine, std::int64_t local, std::int64_t capacity,
                    const std::function<double(std::int32_t)>& factor) {
    LR_TRY(me.dispatch("L0", mine.own(), mine.slab));
    GuardedTensor z(DType::kBF16, {local, capacity, kWidth}); // NaN where no row is live
    for (std::int64_t e = 0; e < local; ++e)
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(mine.counts.at(e)); ++i)
            run_expert(z, e * capacity + i, mine.rows, e * capacity + i,
                       factor(static_cast<std::int32_t>(me.rank() * local + e)));
    return me.combine("L0", mine.own(), mine.slab, z, mine.y);
}

// Rows of z in reverse, to show that their order does not matter.
Status through_blocks(Communicator& me, Parcel& mine, std::int64_t local, std::int64_t capacity,
                      const std::function<double(std::int32_t)>& factor) {
    LR_TRY(me.dispatch("L0", mine.own(), mine.block));
    std::int64_t next = mine.z.view().rows();
    for (int s = 0; s < me.size(); ++s)
        for (std::int64_t row = s * capacity; row < s * capacity + mine.sent.at(s); ++row)
            for (std::int64_t k = 0; k < kSlots; ++k) {
                const auto e = static_cast<std::int64_t>(mine.experts.at(row * kSlots + k));
                if (e < 0)
                    continue;
                mine.z_row.set(row * kSlots + k, static_cast<double>(--next));
                run_expert(mine.z, next, mine.blocks, row,
                           factor(static_cast<std::int32_t>(me.rank() * local + e)));
            }
    return me.combine("L0", mine.own(), mine.block, {mine.z, mine.z_row, mine.partial}, mine.y);
}

class Experts : public testing::TestWithParam<std::tuple<int, int>> {
  protected:
    static constexpr Choice kPatterns[] = {nobody, one_expert, mixed, in_turn};

    int ranks() const { return std::get<0>(GetParam()); }
    World world(DType dtype = DType::kBF16) const {
        // 5 + 5 + 6 + 6 live tokens at most, of three slots.
        return {dtype, ranks(), 2, 66, kPatterns[std::get<1>(GetParam())]};
    }
};
std::string case_name(const testing::TestParamInfo<std::tuple<int, int>>& info) {
    static constexpr const char* kNames[] = {"Empty", "Skewed", "Mixed", "Full"};
    return fmt::format("{}Ranks{}", std::get<0>(info.param), kNames[std::get<1>(info.param)]);
}
INSTANTIATE_TEST_SUITE_P(Comm, Experts,
                         testing::Combine(testing::Range(1, 5), testing::Range(0, 4)), case_name);

double identity(std::int32_t) {
    return 1.0;
}
double by_expert(std::int32_t e) {
    return 0.25 * (e + 1);
}

TEST_P(Experts, ArriveExpertMajorInTheOrderOfSourceTokenSlot) {
    for (DType dtype : {DType::kBF16, DType::kF32}) {
        World all = world(dtype);
        expect_all_ok(all.run([](Communicator& me, Parcel& mine) {
            return me.dispatch("L0", mine.own(), mine.slab);
        }));
        all.expect_expert_major();
    }
}

TEST_P(Experts, ArriveRankMajorOnceATokenAndRank) {
    World all = world();
    expect_all_ok(all.run(
        [](Communicator& me, Parcel& mine) { return me.dispatch("L0", mine.own(), mine.block); }));
    all.expect_rank_major();
}

TEST_P(Experts, ComeBackExactThroughTheSlab) {
    for (const auto& factor : {identity, by_expert}) {
        World all = world();
        expect_all_ok(all.run(
            [&](Communicator& me, Parcel& mine) { return through_slab(me, mine, 2, 66, factor); }));
        all.expect_combined(factor);
    }
}

// The slots' sums are exact here, so their grouping by rank does not show.
TEST_P(Experts, ComeBackExactThroughTheBlocks) {
    for (const auto& factor : {identity, by_expert}) {
        World all = world();
        expect_all_ok(all.run([&](Communicator& me, Parcel& mine) {
            return through_blocks(me, mine, 2, 66, factor);
        }));
        all.expect_combined(factor);
    }
}

TEST(ExpertLayout, FillsEveryRowOfACapacityThatJustSuffices) {
    // 2 ranks, 5 live tokens each, 3 slots, all to one expert: 30 rows.
    World all(DType::kBF16, 2, 2, 30, one_expert);
    expect_all_ok(all.run(
        [](Communicator& me, Parcel& mine) { return through_slab(me, mine, 2, 30, identity); }));
    all.expect_expert_major();
    all.expect_combined(identity);
}

TEST(ExpertLayout, OverflowNamesTheExpertAndWritesNothing) {
    World all(DType::kBF16, 2, 2, 29, one_expert);
    expect_all_say(
        all.run([](Communicator& me, Parcel& mine) {
            return me.dispatch("L7.21", mine.own(), mine.slab);
        }),
        "dispatch at L7.21: expert 3 (rank 1): 30 rows are more than its capacity of 29");
    for (Parcel& parcel : all.parcels)
        for (std::int64_t i = 0; i < parcel.rows.count(); i += kWidth)
            ASSERT_TRUE(std::isnan(parcel.rows.at(i)));
    World blocks(DType::kBF16, 2, 2, 4, one_expert);
    expect_all_say(blocks.run([](Communicator& me, Parcel& mine) {
        return me.dispatch("L7.21", mine.own(), mine.block);
    }),
                   "dispatch at L7.21: rank 1: 5 rows from rank 0 are more than its capacity of 4");
}

TEST(ExpertLayout, AnIdBeyondTheModelNamesRankTokenAndSlot) {
    World all(DType::kBF16, 3, 2, 60, mixed);
    all.parcels[2].ids.set(4, 6);
    expect_all_say(all.run([](Communicator& me, Parcel& mine) {
        return me.dispatch("L1", mine.own(), mine.slab);
    }),
                   "dispatch at L1: rank 2: token 1 slot 1: expected an expert in -1..5, got 6");
}

TEST(ExpertLayout, RanksThatDisagreeOnTheCapacityAreRefused) {
    World all(DType::kBF16, 2, 2, 60, mixed);
    ExpertMajor& slab = all.parcels[1].slab;
    slab.rows = View(slab.rows.data, DType::kBF16, {2, 59, kWidth});
    slab.source = View(slab.source.data, DType::kI32, {2, 59, 3});
    const auto results = all.run(
        [](Communicator& me, Parcel& mine) { return me.dispatch("L1", mine.own(), mine.slab); });
    expect_all_say(results, "world: expected the same call from every rank, got rank 0: dispatch, "
                            "expert-major, of bf16 [4, 3, 60, 700] at L1; rank 1: dispatch, "
                            "expert-major, of bf16 [4, 3, 59, 700] at L1");
}

TEST(ExpertLayout, ARowThatIsNotTheTokensIsAnError) {
    World all(DType::kBF16, 2, 2, 60, in_turn);
    const auto results = all.run([](Communicator& me, Parcel& mine) -> Status {
        LR_TRY(me.dispatch("L1", mine.own(), mine.slab));
        LR_TRY(me.barrier("changed"));
        if (me.rank() == 1)
            mine.source.set(1, 77); // the first row of its first expert, expert 2
        LR_TRY(me.barrier("changed"));
        return me.combine("L1", mine.own(), mine.slab, mine.rows, mine.y);
    });
    expect_all_say(results, "combine at L1: token 0 slot 2 of rank 0 is not row 0 of expert 2 on "
                            "rank 1");
}

TEST(ExpertLayout, AViewOfAnotherShapeNamesTheRank) {
    World all(DType::kBF16, 2, 2, 60, mixed);
    all.parcels[1].slab.counts.shape[0] = 3;
    const auto results = all.run(
        [](Communicator& me, Parcel& mine) { return me.dispatch("L1", mine.own(), mine.slab); });
    expect_all_say(results,
                   "rank 1: dispatch at L1: expert layout: counts dim 0: expected L=2, got 3");
}

// The same buffers again and again, the routing another each time: nothing of an earlier round is
// read.
TEST(ExpertLayout, BuffersServeManyRounds) {
    World all(DType::kBF16, 3, 2, 60, mixed);
    expect_all_ok(all.run([](Communicator& me, Parcel& mine) -> Status {
        for (int round = 0; round < 20; ++round) {
            mine.n_live.set(0, round % 6);
            mine.live = round % 6;
            for (std::int64_t i = 0; i < mine.live * kSlots; ++i)
                mine.ids.set(i, (i * (round + 1) + me.rank()) % 7 - 1);
            LR_TRY(through_slab(me, mine, 2, 60, by_expert));
            LR_TRY(through_blocks(me, mine, 2, 60, by_expert));
        }
        return {};
    }));
    all.expect_combined(by_expert);
}

} // namespace
} // namespace lr::comm
