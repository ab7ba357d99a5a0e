// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/chunk_kkt_solve.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kHk = 2, kDk = 32;

struct Case {
    Packed batch;
    std::int64_t hv;
    GuardedTensor k, beta, g_cumsum, a_inv;
    ChunkKktSolveArgs args;

    Case(const std::vector<std::int64_t>& lengths, std::int64_t group, DType act, DType out)
        : batch(lengths, std::vector<int>(lengths.size(), 0), std::vector<int>(lengths.size(), 0)),
          hv(kHk * group), k(act, {batch.n, kHk, kDk}), beta(DType::kF32, {batch.n, hv}),
          g_cumsum(DType::kF32, {batch.n, hv}), a_inv(out, {batch.n, hv, kGdnChunk}) {
        fill_rows(k, "k", 1.0, batch.live);
        make_unit(k, batch.live);
        fill_unit_interval(beta, batch.live);
        fill_cumulative(g_cumsum, batch);
        a_inv.fill("sentinel", 0, 77);
        args = {.k = k,
                .beta = beta,
                .g_cumsum = g_cumsum,
                .chunk_row = batch.chunk_row,
                .chunk_len = batch.chunk_len,
                .a_inv = a_inv,
                .precision = out == DType::kF32 ? Precision::kF32 : Precision::kModel};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::chunk_kkt_solve, args, threads); }
    // Element (i, j) of I + A of the chunk that starts at `row`, in double.
    double matrix(std::int64_t row, std::int64_t head, std::int64_t i, std::int64_t j) {
        if (j >= i)
            return i == j ? 1 : 0;
        const std::int64_t key_head = head / (hv / kHk);
        double dot = 0;
        for (std::int64_t c = 0; c < kDk; ++c)
            dot += k.at(((row + i) * kHk + key_head) * kDk + c) *
                   k.at(((row + j) * kHk + key_head) * kDk + c);
        return beta.at((row + i) * hv + head) * dot *
               std::exp(g_cumsum.at((row + i) * hv + head) - g_cumsum.at((row + j) * hv + head));
    }
    double inverse(std::int64_t row, std::int64_t head, std::int64_t i, std::int64_t j) {
        return a_inv.at(((row + i) * hv + head) * kGdnChunk + j);
    }
};

// (I + A) X = I up to the rounding of the substitution: for element (i, j), each of the terms
// A_im X_mj carries dk + 1 roundings of the dot, 4 of its factors and at most i + 2 of the chain.
TEST(ChunkKktSolve, TimesItsMatrixIsTheIdentity) {
    for (std::int64_t group : {1, 3}) {
        Case c({70, 3, 1}, group, DType::kF32, DType::kF32);
        c.run(2);
        for (std::int64_t chunk = 0; chunk < c.batch.chunks; ++chunk)
            for (std::int64_t head = 0; head < c.hv; ++head)
                for (std::int64_t i = 0; i < c.batch.length_of(chunk); ++i)
                    for (std::int64_t j = 0; j <= i; ++j) {
                        const std::int64_t row = c.batch.row_of(chunk);
                        double sum = 0, bound = 0;
                        for (std::int64_t m = j; m <= i; ++m) {
                            const double a = c.matrix(row, head, i, m);
                            const double x = c.inverse(row, head, m, j);
                            sum += a * x;
                            // |k_i| |k_m| = 1 bounds the dot's own terms
                            bound += (static_cast<double>(i + 6) * std::abs(a) + kDk + 1) *
                                     std::abs(x) * kF32Error;
                        }
                        ASSERT_TRUE(near(sum, i == j ? 1 : 0, bound))
                            << chunk << " " << head << " " << i << " " << j;
                    }
        EXPECT_TRUE(c.a_inv.guards_intact());
    }
}

TEST(ChunkKktSolve, MatchesAWorkedExample) {
    Case c({3}, 1, DType::kF32, DType::kF32);
    c.k.fill("zero", 0);
    c.beta.fill("half", 0, 0.5);
    for (std::int64_t row = 0; row < 3; ++row) {
        c.k.set(row * kHk * kDk, 1.0); // k_i . k_j = 1 in head 0, 0 in head 1
        for (std::int64_t head = 0; head < 2; ++head)
            c.g_cumsum.set(row * 2 + head, -static_cast<double>(row) * std::log(2.0));
    }
    c.run();
    // A_10 = 1/2 * 1/2, A_21 = 1/4, A_20 = 1/2 * 1/4; X_20 = -A_20 + A_21 A_10
    EXPECT_FLOAT_EQ(static_cast<float>(c.inverse(0, 0, 1, 0)), -0.25f);
    EXPECT_FLOAT_EQ(static_cast<float>(c.inverse(0, 0, 2, 1)), -0.25f);
    EXPECT_FLOAT_EQ(static_cast<float>(c.inverse(0, 0, 2, 0)), -0.125f + 0.0625f);
    EXPECT_EQ(c.inverse(0, 0, 2, 2), 1);
    EXPECT_EQ(c.inverse(0, 1, 2, 0), 0);
}

TEST(ChunkKktSolve, WritesOnAndBelowTheDiagonalOfLiveRowsOnly) {
    Case c({70, 3}, 2, DType::kBF16, DType::kBF16);
    c.run();
    for (std::int64_t chunk = 0; chunk < c.batch.chunks; ++chunk)
        for (std::int64_t head = 0; head < c.hv; ++head)
            for (std::int64_t i = 0; i < c.batch.length_of(chunk); ++i)
                for (std::int64_t j = i + 1; j < kGdnChunk; ++j)
                    ASSERT_EQ(c.inverse(c.batch.row_of(chunk), head, i, j), 77);
    for (std::int64_t i = c.batch.live * c.hv * kGdnChunk; i < c.a_inv.count(); ++i)
        ASSERT_EQ(c.a_inv.at(i), 77);
}

// The keys alone are bf16: the substitution is f32, then one rounding.
TEST(ChunkKktSolve, Bf16OutputIsTheRoundedF32Output) {
    Case wide({70, 3}, 2, DType::kBF16, DType::kF32),
        narrow({70, 3}, 2, DType::kBF16, DType::kBF16);
    wide.run();
    narrow.run(2);
    for (std::int64_t i = 0; i < wide.a_inv.count(); ++i)
        ASSERT_EQ(narrow.a_inv.at(i), rounded(Precision::kModel, wide.a_inv.at(i))) << i;
}

TEST(ChunkKktSolve, HugeDecayInsideAChunkDoesNotOverflow) {
    Case c({64}, 1, DType::kF32, DType::kF32);
    for (std::int64_t row = 0; row < 64; ++row)
        for (std::int64_t head = 0; head < c.hv; ++head)
            c.g_cumsum.set(row * c.hv + head, -40.0 * static_cast<double>(row));
    c.run();
    for (std::int64_t i = 0; i < 64; ++i)
        for (std::int64_t j = 0; j <= i; ++j)
            ASSERT_TRUE(near(c.inverse(0, 1, i, j), i == j ? 1 : 0, 1e-17));
}

TEST(ChunkKktSolve, RefusesShapesThatDisagree) {
    Case c({5}, 2, DType::kBF16, DType::kBF16);
    ChunkKktSolveArgs bad = c.args;
    bad.a_inv.shape[2] = 32;
    EXPECT_EQ(check(bad).message(), "chunk_kkt_solve: a_inv dim 2: expected 64, got 32");
    bad = c.args;
    bad.k.shape[1] = 3;
    EXPECT_EQ(check(bad).message(), "chunk_kkt_solve: expected Hv a multiple of Hk, got Hv=4 Hk=3");
    bad = c.args;
    bad.k.shape[2] = 8;
    EXPECT_EQ(check(bad).message(), "chunk_kkt_solve: expected dk a multiple of 16, got 8");
}

TEST(ChunkKktSolve, CostReadsNothingOfTheInverse) {
    Case c({5}, 2, DType::kBF16, DType::kBF16);
    const Cost got = cost(c.args);
    EXPECT_EQ(got.write_bytes, 8 * 4 * 64 * 2);
    EXPECT_EQ(got.read_bytes, 8 * kHk * kDk * 2 + 2 * 8 * 4 * 4 + 2 * 3 * 4);
    EXPECT_EQ(got.state_bytes, 0);
}

} // namespace
} // namespace lr::ops
