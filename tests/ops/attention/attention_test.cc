// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/attention/attention.h"
#include "ops/attention/attention.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace lr::ops {
namespace {

constexpr std::int64_t kQueryHeads = 6;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kDim = 40; // no multiple of 16: the tail counts too
constexpr std::int64_t kPages = 9;
constexpr std::int64_t kTablePages = 4;
constexpr std::int64_t kToken = kKvHeads * kDim;

using Row = std::pair<int, int>; // sequence, position

// A cache of two sequences, 200 and 70 tokens long, whose pages lie where `order` says.
struct Cache {
    GuardedTensor k, v;
    GuardedTensor page_table{DType::kI32, {2, kTablePages}};

    Cache(DType dtype, const std::vector<int>& order)
        : k(dtype, {kPages, kKvPage, kKvHeads, kDim}), v(dtype, {kPages, kKvPage, kKvHeads, kDim}) {
        const std::vector<std::int64_t> lengths = {200, 70};
        std::size_t used = 0;
        for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
            const std::int64_t length = lengths[static_cast<std::size_t>(sequence)];
            for (std::int64_t p = 0; p * kKvPage < length; ++p)
                page_table.set(sequence * kTablePages + p, order[used++]);
            for (std::int64_t t = 0; t < length; ++t)
                for (std::int64_t j = 0; j < kToken; ++j) {
                    const std::uint64_t index =
                        static_cast<std::uint64_t>((sequence * 1000 + t) * kToken + j);
                    const float scale = numerics::normal_scale(1.0);
                    k.set(element(sequence, t, j),
                          numerics::CounterRng("k", 3).normal(index, scale, 0.0f));
                    v.set(element(sequence, t, j),
                          numerics::CounterRng("v", 3).normal(index, scale, 0.0f));
                }
        }
    }
    // Number of element j of a token.
    std::int64_t element(std::int64_t sequence, std::int64_t t, std::int64_t j) {
        const auto page =
            static_cast<std::int64_t>(page_table.at(sequence * kTablePages + t / kKvPage));
        return (page * kKvPage + t % kKvPage) * kToken + j;
    }
};

// q of a row depends on its (sequence, position) alone, so that rows can be moved around.
struct Batch {
    std::vector<Row> rows;
    GuardedTensor q, o, row_seq, positions;
    GuardedTensor n_live{DType::kI32, {1}};
    AttentionArgs args;

    Batch(Cache& cache, DType act, std::vector<Row> rows_in)
        : rows(std::move(rows_in)), q(act, {size(), kQueryHeads, kDim}, kQueryHeads * kDim + 8),
          o(act, {size(), kQueryHeads * kDim}), row_seq(DType::kI32, {size()}),
          positions(DType::kI32, {size()}) {
        for (std::int64_t i = 0; i < size(); ++i) {
            const auto [sequence, position] = rows[static_cast<std::size_t>(i)];
            row_seq.set(i, sequence);
            positions.set(i, position);
            for (std::int64_t j = 0; j < kQueryHeads * kDim; ++j)
                q.set(i * kQueryHeads * kDim + j,
                      numerics::CounterRng("q", 3).normal(
                          static_cast<std::uint64_t>((sequence * 1000 + position) * 1000 + j),
                          numerics::normal_scale(1.5), 0.0f));
        }
        n_live.set(0, static_cast<double>(size()));
        args = {.q = q,
                .k_cache = cache.k,
                .v_cache = cache.v,
                .page_table = cache.page_table,
                .row_seq = row_seq,
                .positions = positions,
                .n_live = n_live,
                .o = o,
                .scale = 1.0f / std::sqrt(static_cast<float>(kDim))};
    }
    std::int64_t size() const { return static_cast<std::int64_t>(rows.size()); }
    void run(int threads = 1) {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(threads);
        cpu::attention(args, pool);
        EXPECT_TRUE(o.guards_intact());
    }
};

std::vector<Row> span_of(int sequence, int first, int last) {
    std::vector<Row> rows;
    for (int position = first; position < last; ++position)
        rows.emplace_back(sequence, position);
    return rows;
}

const std::vector<int> kInOrder = {0, 1, 2, 3, 4, 5};
const std::vector<int> kScattered = {7, 2, 8, 0, 5, 3};

// Two-pass softmax of one (row, head) in double; `sizes` is the largest |score| sum for the bound.
std::vector<double> oracle(Cache& cache, Batch& batch, std::int64_t row, std::int64_t head,
                           double& score_size) {
    const auto [sequence, position] = batch.rows[static_cast<std::size_t>(row)];
    const std::int64_t kv = head / (kQueryHeads / kKvHeads);
    std::vector<double> scores;
    double max = -std::numeric_limits<double>::infinity();
    score_size = 0;
    for (std::int64_t t = 0; t <= position; ++t) {
        double score = 0, size = 0;
        for (std::int64_t c = 0; c < kDim; ++c) {
            const double product = batch.q.at((row * kQueryHeads + head) * kDim + c) *
                                   cache.k.at(cache.element(sequence, t, kv * kDim + c));
            score += product;
            size += std::abs(product);
        }
        scores.push_back(double{batch.args.scale} * score);
        max = std::max(max, scores.back());
        score_size = std::max(score_size, double{batch.args.scale} * size);
    }
    double total = 0;
    std::vector<double> o(kDim, 0.0);
    for (std::int64_t t = 0; t <= position; ++t) {
        const double p = std::exp(scores[static_cast<std::size_t>(t)] - max);
        total += p;
        for (std::int64_t c = 0; c < kDim; ++c)
            o[static_cast<std::size_t>(c)] +=
                p * cache.v.at(cache.element(sequence, t, kv * kDim + c));
    }
    for (double& value : o)
        value /= total;
    return o;
}

// A score has 9 roundings (dot of 40: product, 3 adds, 4 folds; scale) and one more from the
// subtraction of the maximum; exp adds 2. A weight is therefore off by e = 2 * (10 size + 2) ulps
// relative to the others (numerator and denominator), a sum of n terms by n, on |v| <= 5.
TEST(Attention, MatchesADoubleOracleOnMixedRows) {
    for (DType act : {DType::kF32, DType::kBF16}) {
        Cache cache(act, kScattered);
        std::vector<Row> rows = span_of(0, 120, 141); // one prefill piece over a page border
        rows.insert(rows.end(), {{1, 69}, {0, 199}, {1, 0}, {1, 63}, {1, 64}, {0, 0}});
        Batch batch(cache, act, rows);
        batch.run();
        for (std::int64_t i = 0; i < batch.size(); ++i)
            for (std::int64_t h = 0; h < kQueryHeads; ++h) {
                double size = 0;
                const std::vector<double> expected = oracle(cache, batch, i, h, size);
                const double n = batch.positions.at(i) + 1;
                const double bound = 5 * (2 * (10 * size + 2) + 2 * n + 8) * 0x1p-24;
                for (std::int64_t c = 0; c < kDim; ++c) {
                    const double value = expected[static_cast<std::size_t>(c)];
                    const double rounding = act == DType::kBF16 ? 0x1p-8 * std::abs(value) : 0;
                    EXPECT_NEAR(batch.o.at((i * kQueryHeads + h) * kDim + c), value,
                                bound + rounding)
                        << "row " << i << " head " << h << " channel " << c;
                }
            }
    }
}

TEST(Attention, ReturnsTheValueOfAFirstToken) {
    Cache cache(DType::kF32, kInOrder);
    Batch batch(cache, DType::kF32, {{1, 0}});
    batch.run();
    for (std::int64_t h = 0; h < kQueryHeads; ++h)
        for (std::int64_t c = 0; c < kDim; ++c)
            EXPECT_EQ(batch.o.at(h * kDim + c), cache.v.at(cache.element(1, 0, h / 3 * kDim + c)));
}

TEST(Attention, GivesARowTheSameBitsInPrefillInDecodeAndAnywhereInAPack) {
    Cache cache(DType::kBF16, kScattered);
    Batch prefill(cache, DType::kBF16, span_of(0, 0, 200));
    prefill.run(2);
    std::vector<Row> mixed = {{1, 3}, {0, 130}, {1, 69}, {0, 5}, {0, 64}, {0, 63}, {0, 199}};
    Batch pack(cache, DType::kBF16, mixed);
    pack.run(2);
    for (std::int64_t i = 0; i < pack.size(); ++i) {
        const auto [sequence, position] = mixed[static_cast<std::size_t>(i)];
        Batch decode(cache, DType::kBF16, {{sequence, position}});
        decode.run();
        EXPECT_EQ(pack.o.row_bits(i), decode.o.row_bits(0)) << i;
        if (sequence == 0) {
            EXPECT_EQ(prefill.o.row_bits(position), decode.o.row_bits(0)) << i;
        }
    }
}

TEST(Attention, DoesNotDependOnWhereThePagesLie) {
    Cache in_order(DType::kBF16, kInOrder);
    Cache scattered(DType::kBF16, kScattered);
    Batch a(in_order, DType::kBF16, span_of(0, 150, 200));
    Batch b(scattered, DType::kBF16, span_of(0, 150, 200));
    a.run();
    b.run();
    EXPECT_EQ(a.o.all_bytes(), b.o.all_bytes());
}

TEST(Attention, GivesTheSameBitsTwiceAndOnTwoThreads) {
    Cache cache(DType::kBF16, kScattered);
    Batch once(cache, DType::kBF16, span_of(0, 100, 200));
    Batch again(cache, DType::kBF16, span_of(0, 100, 200));
    once.run(1);
    again.run(2);
    EXPECT_EQ(once.o.all_bytes(), again.o.all_bytes());
    again.run(2);
    EXPECT_EQ(once.o.all_bytes(), again.o.all_bytes());
}

TEST(Attention, SeesNothingBeyondARowsPosition) {
    Cache cache(DType::kBF16, kScattered);
    Batch before(cache, DType::kBF16, span_of(0, 60, 101));
    before.run();
    // Later tokens, all unused pages (still NaN) and unused page table entries (still -1).
    for (std::int64_t t = 101; t < 200; ++t)
        for (std::int64_t j = 0; j < kToken; ++j) {
            cache.k.set(cache.element(0, t, j), std::nan(""));
            cache.v.set(cache.element(0, t, j), std::nan(""));
        }
    Batch after(cache, DType::kBF16, span_of(0, 60, 101));
    after.run();
    EXPECT_EQ(before.o.all_bytes(), after.o.all_bytes());
}

TEST(Attention, KeepsANaNAwayFromRowsThatDoNotSeeIt) {
    Cache cache(DType::kBF16, kScattered);
    Batch clean(cache, DType::kBF16, span_of(0, 66, 76));
    clean.run();
    cache.k.set(cache.element(0, 70, 0), std::nan("")); // KV head 0 of token 70
    Batch batch(cache, DType::kBF16, span_of(0, 66, 76));
    batch.run();
    for (std::int64_t i = 0; i < 10; ++i) {
        const std::int64_t first = i * kQueryHeads * kDim;
        EXPECT_EQ(std::isnan(batch.o.at(first)), i >= 4) << i;
        EXPECT_FALSE(std::isnan(batch.o.at(first + 3 * kDim))) << i; // heads of KV head 1
        if (i < 4) {
            EXPECT_EQ(batch.o.row_bits(i), clean.o.row_bits(i));
        }
    }
}

TEST(Attention, ZeroesPaddingRowsWithoutReadingThem) {
    Cache cache(DType::kBF16, kScattered);
    Batch all(cache, DType::kBF16, span_of(0, 90, 110));
    Batch some(cache, DType::kBF16, span_of(0, 90, 110));
    for (std::int64_t i : {0, 7, 8}) {
        some.row_seq.set(i, -1);
        some.positions.set(i, 0x7FFFFFFF);
        some.q.poison(i, 1);
    }
    some.n_live.set(0, 15);
    some.q.poison(15, 5);
    some.positions.poison(15, 5);
    some.row_seq.set(16, 77);
    all.run();
    some.run();
    for (std::int64_t i = 0; i < 20; ++i) {
        if (i == 0 || i == 7 || i == 8 || i >= 15)
            EXPECT_TRUE(some.o.row_is_zero(i)) << i;
        else
            EXPECT_EQ(some.o.row_bits(i), all.o.row_bits(i)) << i;
    }
}

TEST(Attention, SurvivesLargeScores) {
    Cache cache(DType::kF32, kInOrder);
    Batch batch(cache, DType::kF32, {{0, 199}});
    for (std::int64_t j = 0; j < kQueryHeads * kDim; ++j)
        batch.q.set(j, batch.q.at(j) * 1e6);
    batch.run();
    for (std::int64_t j = 0; j < kQueryHeads * kDim; ++j)
        EXPECT_TRUE(std::isfinite(batch.o.at(j)));
}

TEST(AttentionDeathTest, RefusesPositionsAndPagesOutsideTheTable) {
    Cache cache(DType::kBF16, kScattered);
    Batch batch(cache, DType::kBF16, {{0, 10}});
    ThreadPool pool(1);
    batch.positions.set(0, kTablePages * kKvPage);
    EXPECT_DEATH(cpu::attention(batch.args, pool), "257 vs 256");
    batch.positions.set(0, -2);
    EXPECT_DEATH(cpu::attention(batch.args, pool), "-2 vs 0");
    batch.positions.set(0, 10);
    cache.page_table.set(0, kPages);
    EXPECT_DEATH(cpu::attention(batch.args, pool), "9 vs 9");
}

TEST(Attention, RefusesWrongShapes) {
    Cache cache(DType::kBF16, kScattered);
    Batch batch(cache, DType::kBF16, {{0, 10}});
    AttentionArgs args = batch.args;
    args.k_cache.shape[1] = 32;
    EXPECT_EQ(check(args).message(), "attention: k_cache dim 1: expected 64, got 32");
    args = batch.args;
    args.k_cache.shape[2] = args.v_cache.shape[2] = 4;
    EXPECT_EQ(check(args).message(),
              "attention: q dim 1: expected Hq to be a multiple of Hkv=4, got 6");
    args = batch.args;
    args.o.shape[1] = 256;
    EXPECT_EQ(check(args).message(), "attention: o dim 1: expected 240, got 256");
    args = batch.args;
    args.v_cache.shape[3] = 64;
    EXPECT_EQ(check(args).message(), "attention: v_cache dim 3: expected dh=40, got 64");
    args = batch.args;
    args.page_table.dtype = DType::kI64;
    EXPECT_EQ(check(args).message(), "attention: page_table: expected dtype i32, got i64");
    args = batch.args;
    args.scale = 0;
    EXPECT_EQ(check(args).message(), "attention: scale: expected a positive number, got 0");
}

TEST(Attention, CountsThePagesOfTheTable) {
    Cache cache(DType::kBF16, kScattered);
    Batch batch(cache, DType::kBF16, {{0, 10}, {1, 9}});
    const Cost expected{.read_bytes = 2 * kQueryHeads * kDim * 2 + 2 * 4 * 4 + 8 + 8 + 4 +
                                      2 * 8 * kKvPage * kToken * 2,
                        .write_bytes = 2 * kQueryHeads * kDim * 2,
                        .flops = 4 * 2 * kQueryHeads * kDim * kTablePages * kKvPage};
    EXPECT_EQ(cost(batch.args), expected);
}

} // namespace
} // namespace lr::ops
