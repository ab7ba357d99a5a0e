// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/chunk_output.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kHk = 2, kDk = 32, kDv = 16;

// All values but g_cumsum are bf16 numbers, whatever the tensors' dtype.
struct Case {
    Packed batch;
    std::int64_t hv;
    GuardedTensor q, k, v_new, h, g_cumsum, o;
    ChunkOutputArgs args;

    Case(const std::vector<std::int64_t>& lengths, std::int64_t group, DType act,
         Precision precision)
        : batch(lengths, std::vector<int>(lengths.size(), 0), std::vector<int>(lengths.size(), 0)),
          hv(kHk * group), q(act, {batch.n, kHk, kDk}), k(act, {batch.n, kHk, kDk}),
          v_new(act, {batch.n, hv, kDv}), h(act, {batch.chunks, hv, kDv, kDk}),
          g_cumsum(DType::kF32, {batch.n, hv}), o(act, {batch.n, hv, kDv}) {
        fill_bf16_rows(q, "q", 0.2, batch.live);
        fill_bf16_rows(k, "k", 0.2, batch.live);
        fill_bf16_rows(v_new, "v", 1.0, batch.live);
        fill_bf16_rows(h, "h", 0.3, batch.chunks - 2);
        fill_cumulative(g_cumsum, batch);
        o.fill("sentinel", 0, 77);
        args = {.q = q,
                .k = k,
                .v_new = v_new,
                .h = h,
                .g_cumsum = g_cumsum,
                .chunk_row = batch.chunk_row,
                .chunk_len = batch.chunk_len,
                .o = o,
                .precision = precision};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::chunk_output, args, threads); }
    // P of rows i >= j, as an operand of the product. The f32 chain is the one the header states:
    // in double, P would now and then round to the other bf16 neighbour.
    double weight(std::int64_t i, std::int64_t j, std::int64_t head) {
        const std::int64_t key_head = head / (hv / kHk);
        float score = 0;
        for (std::int64_t c = 0; c < kDk; ++c)
            score += static_cast<float>(q.at((i * kHk + key_head) * kDk + c)) *
                     static_cast<float>(k.at((j * kHk + key_head) * kDk + c));
        const float decay = std::exp(static_cast<float>(g_cumsum.at(i * hv + head)) -
                                     static_cast<float>(g_cumsum.at(j * hv + head)));
        return rounded(args.precision, score * decay);
    }
};

void expect_row(Case& c, std::int64_t chunk, std::int64_t head, std::int64_t i) {
    const std::int64_t row = c.batch.row_of(chunk), key_head = head / (c.hv / kHk);
    const double fade = std::exp(c.g_cumsum.at((row + i) * c.hv + head));
    std::vector<double> weights;
    for (std::int64_t j = 0; j <= i; ++j)
        weights.push_back(c.weight(row + i, row + j, head));
    for (std::int64_t column = 0; column < kDv; ++column) {
        double sum = 0, terms = 0;
        const auto add = [&](double term) {
            sum += term;
            terms += std::abs(term);
        };
        for (std::int64_t d = 0; d < kDk; ++d)
            add(fade * c.h.at(((chunk * c.hv + head) * kDv + column) * kDk + d) *
                c.q.at(((row + i) * kHk + key_head) * kDk + d));
        for (std::int64_t j = 0; j <= i; ++j)
            add(weights[static_cast<std::size_t>(j)] *
                c.v_new.at(((row + j) * c.hv + head) * kDv + column));
        const double scale = 1 / std::sqrt(double{kDk});
        // dk + 1 roundings of the read, 3 of the decay, i + 2 of the sum, 2 of the scale.
        const double bound = static_cast<double>(kDk + 8 + i) * kF32Error * terms * scale;
        ASSERT_TRUE(near(c.o.at(((row + i) * c.hv + head) * kDv + column), sum * scale, bound))
            << chunk << " " << head << " " << i << " " << column;
    }
}

void expect_oracle(Precision precision, std::int64_t group) {
    Case c({130, 3, 64}, group, DType::kF32, precision);
    c.run(2);
    for (std::int64_t chunk = 0; chunk < c.batch.chunks; ++chunk)
        for (std::int64_t head = 0; head < c.hv; ++head)
            for (std::int64_t i = 0; i < c.batch.length_of(chunk); ++i)
                expect_row(c, chunk, head, i);
    for (std::int64_t i = c.batch.live * c.hv * kDv; i < c.o.count(); ++i)
        EXPECT_EQ(c.o.at(i), 77); // rows of no chunk
    EXPECT_TRUE(c.o.guards_intact());
}

TEST(ChunkOutput, MatchesADoubleOracleInF32) {
    for (std::int64_t group : {1, 3})
        expect_oracle(Precision::kF32, group);
}

TEST(ChunkOutput, MatchesADoubleOracleWithRoundedScores) {
    expect_oracle(Precision::kModel, 2);
}

TEST(ChunkOutput, Bf16OutputIsTheRoundedF32Output) {
    Case wide({130, 3}, 2, DType::kF32, Precision::kModel);
    Case narrow({130, 3}, 2, DType::kBF16, Precision::kModel);
    wide.run();
    narrow.run(2);
    for (std::int64_t i = 0; i < wide.o.count(); ++i)
        ASSERT_EQ(narrow.o.at(i), rounded(Precision::kModel, wide.o.at(i))) << i;
}

// q_0 . k_0 = 1 + 2^-9, which bf16 rounds to 1; v = 1 and h = 0, so o_0 is the scaled score.
TEST(ChunkOutput, RoundsTheScoreInTheModelsPrecisionOnlyAndIncludesTheDiagonal) {
    for (Precision precision : {Precision::kF32, Precision::kModel}) {
        Case c({1}, 1, DType::kF32, precision);
        c.q.fill("zero", 0).set_all({1, 1});
        c.k.fill("zero", 0).set_all({1, 0x1p-9});
        c.h.fill("zero", 0);
        c.v_new.fill("one", 0, 1);
        c.run();
        const float score = precision == Precision::kModel ? 1.0f : 1.0f + 0x1p-9f;
        EXPECT_EQ(c.o.at(0), score * static_cast<float>(1 / std::sqrt(double{kDk})));
    }
}

TEST(ChunkOutput, HugeDecayInsideAChunkDoesNotOverflow) {
    Case c({64}, 1, DType::kF32, Precision::kF32);
    for (std::int64_t row = 0; row < 64; ++row)
        for (std::int64_t head = 0; head < c.hv; ++head)
            c.g_cumsum.set(row * c.hv + head, -40.0 * static_cast<double>(row));
    c.run();
    for (std::int64_t i = 0; i < 64; ++i)
        expect_row(c, 0, 1, i);
}

TEST(ChunkOutput, BitsDoNotDependOnBatchMates) {
    Case both({70, 37}, 2, DType::kBF16, Precision::kModel);
    Case alone({70}, 2, DType::kBF16, Precision::kModel);
    both.run(2);
    alone.run();
    for (std::int64_t row = 0; row < 70; ++row)
        EXPECT_EQ(both.o.row_bits(row), alone.o.row_bits(row));
}

TEST(ChunkOutput, RefusesShapesThatDisagree) {
    Case c({5}, 2, DType::kBF16, Precision::kModel);
    ChunkOutputArgs bad = c.args;
    bad.h.shape[1] = 2;
    EXPECT_EQ(check(bad).message(), "chunk_output: h dim 1: expected Hv=4, got 2");
    bad = c.args;
    bad.o.shape[0] = 7;
    EXPECT_EQ(check(bad).message(), "chunk_output: o dim 0: expected n=8, got 7");
}

TEST(ChunkOutput, CostReadsNothingOfTheOutput) {
    Case c({5}, 2, DType::kBF16, Precision::kModel);
    const Cost got = cost(c.args);
    EXPECT_EQ(got.state_bytes, 0);
    EXPECT_EQ(got.write_bytes, 8 * 4 * kDv * 2);
    EXPECT_EQ(got.flops, 8 * (2 * 4 * kDv * kDk + 64 * (kHk * kDk + 4 * kDv)));
}

} // namespace
} // namespace lr::ops
