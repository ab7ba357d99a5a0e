// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/chunk_recompute_wu.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kHk = 2, kDk = 32, kDv = 16;

// All values are bf16 numbers, whatever the tensors' dtype.
struct Case {
    Packed batch;
    std::int64_t hv;
    GuardedTensor k, v, beta, g_cumsum, a_inv, w, u;
    ChunkRecomputeWuArgs args;

    Case(const std::vector<std::int64_t>& lengths, std::int64_t group, DType act,
         Precision precision)
        : batch(lengths, std::vector<int>(lengths.size(), 0), std::vector<int>(lengths.size(), 0)),
          hv(kHk * group), k(act, {batch.n, kHk, kDk}), v(act, {batch.n, hv, kDv}),
          beta(DType::kF32, {batch.n, hv}), g_cumsum(DType::kF32, {batch.n, hv}),
          a_inv(act, {batch.n, hv, kGdnChunk}), w(act, {batch.n, hv, kDk}),
          u(act, {batch.n, hv, kDv}) {
        fill_bf16_rows(k, "k", 0.2, batch.live);
        fill_bf16_rows(v, "v", 1.0, batch.live);
        fill_unit_interval(beta, batch.live);
        fill_cumulative(g_cumsum, batch);
        for (std::int64_t c = 0; c < batch.chunks; ++c) // above the diagonal stays NaN
            for (std::int64_t i = 0; i < batch.length_of(c); ++i)
                for (std::int64_t h = 0; h < hv; ++h)
                    for (std::int64_t j = 0; j <= i; ++j) {
                        const std::int64_t at = ((batch.row_of(c) + i) * hv + h) * kGdnChunk + j;
                        a_inv.set(at, i == j ? 1 : std::sin(static_cast<double>(at % 1009)));
                        a_inv.set(at, rounded(Precision::kModel, a_inv.at(at)));
                    }
        args = {.k = k,
                .v = v,
                .beta = beta,
                .g_cumsum = g_cumsum,
                .a_inv = a_inv,
                .chunk_row = batch.chunk_row,
                .chunk_len = batch.chunk_len,
                .n_live = batch.n_live,
                .w = w,
                .u = u,
                .precision = precision};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::chunk_recompute_wu, args, threads); }
    // beta_j v_j, or (beta_j exp(G_j)) k_j, as an operand of the product.
    double operand(std::int64_t row, std::int64_t head, std::int64_t column, bool key) {
        auto factor = static_cast<float>(beta.at(row * hv + head));
        if (key)
            factor *= std::exp(static_cast<float>(g_cumsum.at(row * hv + head)));
        const double x = key ? k.at((row * kHk + head / (hv / kHk)) * kDk + column)
                             : v.at((row * hv + head) * kDv + column);
        return rounded(args.precision, static_cast<float>(x) * factor);
    }
};

// u_i or w_i element by element; the sum's products and additions are the only roundings left.
void expect_output(Case& c, bool key) {
    GuardedTensor& out = key ? c.w : c.u;
    const std::int64_t width = key ? kDk : kDv;
    for (std::int64_t chunk = 0; chunk < c.batch.chunks; ++chunk)
        for (std::int64_t head = 0; head < c.hv; ++head)
            for (std::int64_t column = 0; column < width; ++column)
                for (std::int64_t i = 0; i < c.batch.length_of(chunk); ++i) {
                    const std::int64_t row = c.batch.row_of(chunk);
                    double sum = 0, terms = 0;
                    for (std::int64_t j = 0; j <= i; ++j) {
                        const double term = c.a_inv.at(((row + i) * c.hv + head) * kGdnChunk + j) *
                                            c.operand(row + j, head, column, key);
                        sum += term;
                        terms += std::abs(term);
                    }
                    ASSERT_TRUE(near(out.at(((row + i) * c.hv + head) * width + column), sum,
                                     static_cast<double>(i + 2) * kF32Error * terms))
                        << key << " " << chunk << " " << head << " " << i << " " << column;
                }
    for (std::int64_t row = c.batch.live; row < c.batch.n; ++row)
        EXPECT_TRUE(out.row_is_zero(row));
    EXPECT_TRUE(out.guards_intact());
}

TEST(ChunkRecomputeWu, MatchesADoubleOracleWithRoundedOperands) {
    for (Precision precision : {Precision::kF32, Precision::kModel})
        for (std::int64_t group : {1, 3}) {
            Case c({70, 3, 1}, group, DType::kF32, precision);
            c.run(2);
            expect_output(c, false);
            expect_output(c, true);
        }
}

TEST(ChunkRecomputeWu, Bf16OutputIsTheRoundedF32Output) {
    Case wide({70, 3}, 2, DType::kF32, Precision::kModel);
    Case narrow({70, 3}, 2, DType::kBF16, Precision::kModel);
    wide.run();
    narrow.run(2);
    for (std::int64_t i = 0; i < wide.u.count(); ++i)
        ASSERT_EQ(narrow.u.at(i), rounded(Precision::kModel, wide.u.at(i))) << i;
    for (std::int64_t i = 0; i < wide.w.count(); ++i)
        ASSERT_EQ(narrow.w.at(i), rounded(Precision::kModel, wide.w.at(i))) << i;
}

TEST(ChunkRecomputeWu, BitsDoNotDependOnBatchMates) {
    Case both({70, 37}, 2, DType::kBF16, Precision::kModel);
    Case alone({70}, 2, DType::kBF16, Precision::kModel);
    both.run(2);
    alone.run();
    for (std::int64_t row = 0; row < 70; ++row) {
        EXPECT_EQ(both.u.row_bits(row), alone.u.row_bits(row));
        EXPECT_EQ(both.w.row_bits(row), alone.w.row_bits(row));
    }
}

TEST(ChunkRecomputeWu, RefusesShapesThatDisagree) {
    Case c({5}, 2, DType::kBF16, Precision::kModel);
    ChunkRecomputeWuArgs bad = c.args;
    std::swap(bad.w, bad.u);
    EXPECT_EQ(check(bad).message(), "chunk_recompute_wu: w dim 2: expected dk=32, got 16");
    bad = c.args;
    bad.beta.dtype = DType::kBF16;
    EXPECT_EQ(check(bad).message(), "chunk_recompute_wu: beta: expected dtype f32, got bf16");
    bad = c.args;
    bad.v.shape[2] = bad.u.shape[2] = 20;
    EXPECT_EQ(check(bad).message(), "chunk_recompute_wu: expected dv a multiple of 16, got 20");
}

} // namespace
} // namespace lr::ops
