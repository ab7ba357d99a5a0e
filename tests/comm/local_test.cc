// SPDX-License-Identifier: Apache-2.0
#include "core/clock.h"
#include "numerics/bf16.h"
#include "numerics/counter_rng.h"
#include "tests/comm/world.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

namespace lr::comm {
namespace {

// A matrix of random values of one rank.
class Matrix {
  public:
    Matrix(DType dtype, std::int64_t rows, std::int64_t columns, int rank, std::int64_t stride = 0)
        : dtype_(dtype), rows_(rows), columns_(columns), stride_(stride ? stride : columns) {
        bytes_.resize(static_cast<std::size_t>(dtype_bytes(dtype, rows * stride_)));
        const numerics::CounterRng rng("matrix", static_cast<std::uint64_t>(rank));
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                set(i, j,
                    rng.normal(static_cast<std::uint64_t>(i * columns + j),
                               numerics::normal_scale(1.0), 0.0f));
    }

    View view() { return {bytes_.data(), dtype_, {rows_, columns_}, stride_}; }
    void set(std::int64_t i, std::int64_t j, float value) {
        if (dtype_ == DType::kF32)
            view().row_as<float>(i)[j] = value;
        else
            view().row_as<std::uint16_t>(i)[j] = numerics::encode_bf16(value);
    }
    float at(std::int64_t i, std::int64_t j) {
        return dtype_ == DType::kF32 ? view().row_as<float>(i)[j]
                                     : numerics::decode_bf16(view().row_as<std::uint16_t>(i)[j]);
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    DType dtype_;
    std::int64_t rows_, columns_, stride_;
    std::vector<std::byte> bytes_;
};

std::vector<Matrix> one_a_rank(int ranks, DType dtype, std::int64_t rows, std::int64_t columns,
                               std::int64_t stride = 0) {
    std::vector<Matrix> all;
    for (int rank = 0; rank < ranks; ++rank)
        all.emplace_back(dtype, rows, columns, rank, stride);
    return all;
}

// The sum in rank order in f32, rounded once.
Matrix plain_sum(std::vector<Matrix>& x, DType dtype, std::int64_t rows, std::int64_t columns) {
    Matrix sum(dtype, rows, columns, 0);
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            float total = x[0].at(i, j);
            for (std::size_t r = 1; r < x.size(); ++r)
                total += x[r].at(i, j);
            sum.set(i, j, total);
        }
    return sum;
}

TEST(LocalWorld, AllReduceAddsInRankOrderAndRoundsOnce) {
    for (int ranks : {1, 2, 3, 4, 16})
        for (DType dtype : {DType::kF32, DType::kBF16})
            for (std::int64_t rows : {1, 5, 40}) {
                const std::int64_t columns = 601;
                auto x = one_a_rank(ranks, dtype, rows, columns);
                auto y = one_a_rank(ranks, dtype, rows, columns);
                const Matrix expected = plain_sum(x, dtype, rows, columns);
                LocalWorld world(ranks);
                expect_all_ok(run_ranks(world, ranks, [&](Communicator& me) {
                    const auto rank = static_cast<std::size_t>(me.rank());
                    return me.all_reduce("sum", x[rank].view(), y[rank].view());
                }));
                for (Matrix& result : y)
                    EXPECT_EQ(result.bytes(), expected.bytes()) << ranks << " ranks, " << rows;
            }
}

TEST(LocalWorld, AllReduceWorksInPlaceAndWithStridedRows) {
    auto x = one_a_rank(3, DType::kBF16, 7, 33, 40);
    auto before = x;
    Matrix expected = plain_sum(before, DType::kBF16, 7, 33);
    LocalWorld world(3);
    expect_all_ok(run_ranks(world, 3, [&](Communicator& me) {
        Matrix& mine = x[static_cast<std::size_t>(me.rank())];
        return me.all_reduce("sum", mine.view(), mine.view());
    }));
    for (Matrix& result : x)
        for (std::int64_t i = 0; i < 7; ++i)
            for (std::int64_t j = 0; j < 33; ++j)
                EXPECT_EQ(result.at(i, j), expected.at(i, j));
}

TEST(LocalWorld, NoRowsAreNoError) {
    auto x = one_a_rank(2, DType::kBF16, 1, 8);
    LocalWorld world(2);
    expect_all_ok(run_ranks(world, 2, [&](Communicator& me) {
        const View none = x[static_cast<std::size_t>(me.rank())].view().slice_rows(0, 0);
        return me.all_reduce("sum", none, none);
    }));
}

TEST(LocalWorld, SumsHaveTheSameBitsInAHundredRuns) {
    const auto x = one_a_rank(4, DType::kF32, 3, 129);
    auto reference = x;
    const Matrix expected = plain_sum(reference, DType::kF32, 3, 129);
    LocalWorld world(4);
    expect_all_ok(run_ranks(world, 4, [&](Communicator& me) -> Status {
        Matrix mine = x[static_cast<std::size_t>(me.rank())];
        Matrix sum = mine;
        for (int run = 0; run < 100; ++run) {
            LR_TRY(me.all_reduce("sum", mine.view(), sum.view()));
            if (sum.bytes() != expected.bytes())
                return fail(Code::kInternal, "run {} differs", run);
        }
        return {};
    }));
}

TEST(LocalWorld, AllGatherPutsColumnsSideBySide) {
    for (int ranks : {1, 2, 3, 4}) {
        auto x = one_a_rank(ranks, DType::kF32, 5, 6, 9);
        auto y = one_a_rank(ranks, DType::kF32, 5, 6 * ranks);
        LocalWorld world(ranks);
        expect_all_ok(run_ranks(world, ranks, [&](Communicator& me) {
            const auto rank = static_cast<std::size_t>(me.rank());
            return me.all_gather("columns", x[rank].view(), y[rank].view());
        }));
        for (Matrix& result : y)
            for (std::int64_t i = 0; i < 5; ++i)
                for (std::int64_t j = 0; j < 6 * ranks; ++j)
                    EXPECT_EQ(result.at(i, j), x[static_cast<std::size_t>(j / 6)].at(i, j % 6));
    }
}

// Each rank overwrites its row as soon as release() lets it: a reader that was too late would see
// the next round's value.
TEST(LocalWorld, ExchangeShowsEveryRowUntilReleased) {
    constexpr int kRounds = 2000;
    LocalWorld world(3);
    std::vector<std::int32_t> rows(3, -1);
    expect_all_ok(run_ranks(world, 3, [&](Communicator& me) -> Status {
        auto& mine = rows[static_cast<std::size_t>(me.rank())];
        for (int round = 0; round < kRounds; ++round) {
            mine = 10 * round + me.rank();
            const ConstView view{reinterpret_cast<const std::byte*>(&mine), DType::kI32, {1}};
            LR_TRY_ASSIGN(const PeerRows peers, me.exchange("round", view));
            for (int r = 0; r < 3; ++r) {
                const auto* theirs =
                    reinterpret_cast<const std::int32_t*>(peers[static_cast<std::size_t>(r)]);
                if (*theirs != 10 * round + r)
                    return Status(
                        fail(Code::kInternal, "round {}: rank {} has {}", round, r, *theirs));
            }
            LR_TRY(me.release("round"));
        }
        return {};
    }));
}

TEST(LocalWorld, GroupsWorkAtTheSameTime) {
    // Four ranks, two groups of two that never wait for one another, and sums over all in between.
    const auto x = one_a_rank(4, DType::kF32, 2, 17);
    LocalWorld world(4);
    expect_all_ok(run_ranks(world, 4, [&](Communicator& me) -> Status {
        const int colour = me.rank() / 2;
        LR_TRY_ASSIGN(const auto pair, me.split(colour, fmt::format("pair {}", colour)));
        EXPECT_EQ(pair->size(), 2);
        EXPECT_EQ(pair->rank(), me.rank() % 2);
        Matrix mine = x[static_cast<std::size_t>(me.rank())], sum = mine, total = mine;
        const auto first = static_cast<std::size_t>(colour * 2);
        for (int run = 0; run < 50 + 20 * colour; ++run) {
            LR_TRY(pair->all_reduce("pair", mine.view(), sum.view()));
            for (std::int64_t j = 0; j < 17; ++j) {
                Matrix a = x[first], b = x[first + 1];
                EXPECT_EQ(sum.at(1, j), a.at(1, j) + b.at(1, j));
            }
        }
        return me.all_reduce("all", sum.view(), total.view());
    }));
}

TEST(LocalWorld, ARankThatAbandonsEndsAllWithItsMessage) {
    LocalWorld world(3);
    const auto results = run_ranks(world, 3, [&](Communicator& me) -> Status {
        LR_TRY(me.barrier("one"));
        if (me.rank() == 1)
            return fail(Code::kResourceExhausted, "activations: no memory");
        return me.barrier("two");
    });
    expect_all_say(results, "rank 1: activations: no memory", {1});
    EXPECT_EQ(results[0].code(), Code::kResourceExhausted);
    EXPECT_EQ(world.failure().message(), "rank 1: activations: no memory");
}

TEST(LocalWorld, ARankThatEndsIsNamedAtOnce) {
    for (bool early : {true, false}) {
        LocalWorld world(3, 60);
        const double start = monotonic_seconds();
        const auto results = run_ranks(world, 3, [&](Communicator& me) -> Status {
            LR_TRY(me.barrier("one"));
            if (me.rank() == 2) {
                if (!early)
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                return {};
            }
            return me.barrier("two");
        });
        EXPECT_TRUE(results[2].ok());
        // Rank 2 may end before anyone waits, or before both do.
        for (int rank : {0, 1}) {
            const std::string& message = results[static_cast<std::size_t>(rank)].message();
            EXPECT_TRUE(message.starts_with("world: barrier at two: expected every rank, but rank "
                                            "2 has ended (waiting: "))
                << message;
        }
        EXPECT_EQ(results[0].message(), results[1].message());
        EXPECT_LT(monotonic_seconds() - start, 30.0);
    }
}

TEST(LocalWorld, ARankThatDoesNotComeIsNamedAfterTheLimit) {
    LocalWorld world(3, 0.2);
    auto x = one_a_rank(3, DType::kBF16, 4, 64);
    const auto results = run_ranks(world, 3, [&](Communicator& me) -> Status {
        Matrix& mine = x[static_cast<std::size_t>(me.rank())];
        if (me.rank() == 1)
            std::this_thread::sleep_for(std::chrono::seconds(1));
        return me.all_reduce("L3.11", mine.view(), mine.view());
    });
    expect_all_say(results, "world: all_reduce of bf16 [4, 64] at L3.11: expected every rank, but "
                            "rank 1 did not come within 0.2 s (waiting: 0, 2)");
}

TEST(LocalWorld, DifferentCallsAreAnErrorThatNamesBoth) {
    auto x = one_a_rank(2, DType::kBF16, 4, 8);
    auto f32 = one_a_rank(2, DType::kF32, 4, 8);
    auto wide = one_a_rank(2, DType::kBF16, 4, 16);
    const auto run = [&](const Work& first, const Work& second) {
        LocalWorld world(2);
        const auto results = run_ranks(
            world, 2, [&](Communicator& me) { return me.rank() == 0 ? first(me) : second(me); });
        EXPECT_EQ(results[0].message(), results[1].message());
        return results[0].message();
    };
    const auto sum = [](Matrix& m, const char* at) {
        return [&m, at](Communicator& me) { return me.all_reduce(at, m.view(), m.view()); };
    };
    const std::string prefix = "world: expected the same call from every rank, got rank 0: "
                               "all_reduce of bf16 [4, 8] at a; rank 1: ";
    EXPECT_EQ(run(sum(x[0], "a"), sum(wide[1], "a")), prefix + "all_reduce of bf16 [4, 16] at a");
    EXPECT_EQ(run(sum(x[0], "a"), sum(f32[1], "a")), prefix + "all_reduce of f32 [4, 8] at a");
    EXPECT_EQ(run(sum(x[0], "a"), sum(x[1], "b")), prefix + "all_reduce of bf16 [4, 8] at b");
    EXPECT_EQ(run(sum(x[0], "a"), [](Communicator& me) { return me.barrier("a"); }),
              prefix + "barrier at a");
}

TEST(LocalWorld, ResetLetsTheRanksBeginAnew) {
    LocalWorld world(2);
    ThreadPool pool(1);
    const auto zero = world.join(0, pool), one = world.join(1, pool);
    one->abandon(fail(Code::kInternal, "step 1"));
    EXPECT_EQ(zero->barrier("x").message(), "rank 1: step 1");
    EXPECT_EQ(one->barrier("x").message(), "rank 1: step 1");
    world.reset();
    std::thread other([&] { EXPECT_TRUE(one->barrier("y").ok()); });
    EXPECT_TRUE(zero->barrier("y").ok());
    other.join();
}

TEST(LocalWorld, RefusesShapesThatCannotBe) {
    LocalWorld world(1);
    auto x = one_a_rank(1, DType::kBF16, 4, 8);
    auto y = one_a_rank(1, DType::kF32, 4, 8);
    const auto results = run_ranks(
        world, 1, [&](Communicator& me) { return me.all_reduce("z", x[0].view(), y[0].view()); });
    expect_all_say(results,
                   "rank 0: all_reduce at z: expected x and y [n,D] of one type, bf16 or f32, got "
                   "bf16 [4, 8] and f32 [4, 8]");
}

} // namespace
} // namespace lr::comm
