// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/chunk_state.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kHk = 2, kDk = 32, kDv = 16, kSlots = 6;

// All inputs but the state are bf16 numbers, whatever the tensors' dtype.
struct Case {
    Packed batch;
    std::int64_t hv;
    GuardedTensor k, w, u, g_cumsum, ssm_state, h, v_new;
    ChunkStateArgs args;

    Case(const std::vector<std::int64_t>& lengths, const std::vector<int>& slots,
         const std::vector<int>& masks, std::int64_t group, DType act, Precision precision)
        : batch(lengths, slots, masks), hv(kHk * group), k(act, {batch.n, kHk, kDk}),
          w(act, {batch.n, hv, kDk}), u(act, {batch.n, hv, kDv}),
          g_cumsum(DType::kF32, {batch.n, hv}), ssm_state(DType::kF32, {kSlots, hv, kDv, kDk}),
          h(act, {batch.chunks, hv, kDv, kDk}), v_new(act, {batch.n, hv, kDv}) {
        fill_bf16_rows(k, "k", 0.2, batch.live);
        fill_bf16_rows(w, "w", 0.1, batch.live);
        fill_bf16_rows(u, "u", 1.0, batch.live);
        fill_cumulative(g_cumsum, batch);
        ssm_state.fill("state", 0.3);
        args = {.k = k,
                .w = w,
                .u = u,
                .g_cumsum = g_cumsum,
                .chunk_row = batch.chunk_row,
                .chunk_len = batch.chunk_len,
                .seq_chunk = batch.seq_chunk,
                .slot = batch.slot,
                .mask = batch.mask,
                .n_live = batch.n_live,
                .ssm_state = ssm_state,
                .h = h,
                .v_new = v_new,
                .precision = precision};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::chunk_state, args, threads); }
    std::int64_t state_at(std::int64_t block, std::int64_t head, std::int64_t i, std::int64_t j) {
        return ((block * hv + head) * kDv + i) * kDk + j;
    }
    float decay(std::int64_t row, std::int64_t last, std::int64_t head) {
        return std::exp(static_cast<float>(g_cumsum.at(last * hv + head)) -
                        static_cast<float>(g_cumsum.at(row * hv + head)));
    }
};

const std::vector<std::int64_t> kLengths = {130, 3, 64};
const std::vector<int> kSlotOf = {4, 0, 2};
const std::vector<int> kMasks = {1, 0, 1};

// With f32 tensors, h is S and v_new is the product's own operand: each step is checked alone.
void expect_chunk(Case& c, std::int64_t chunk, std::int64_t head, GuardedTensor& next,
                  std::int64_t next_block) {
    const std::int64_t row = c.batch.row_of(chunk), length = c.batch.length_of(chunk);
    const std::int64_t last = row + length - 1;
    for (std::int64_t t = row; t <= last; ++t)
        for (std::int64_t i = 0; i < kDv; ++i) {
            double value = c.u.at((t * c.hv + head) * kDv + i), terms = std::abs(value);
            for (std::int64_t j = 0; j < kDk; ++j) {
                const double term =
                    rounded(c.args.precision, c.h.at(c.state_at(chunk, head, i, j))) *
                    c.w.at((t * c.hv + head) * kDk + j);
                value -= term;
                terms += std::abs(term);
            }
            ASSERT_TRUE(
                near(c.v_new.at((t * c.hv + head) * kDv + i), value, (kDk + 2) * kF32Error * terms))
                << chunk << " " << head << " " << t << " " << i;
        }
    const auto fade = std::exp(static_cast<float>(c.g_cumsum.at(last * c.hv + head)));
    for (std::int64_t i = 0; i < kDv; ++i)
        for (std::int64_t j = 0; j < kDk; ++j) {
            double value = fade * c.h.at(c.state_at(chunk, head, i, j)), terms = std::abs(value);
            for (std::int64_t t = row; t <= last; ++t) {
                const double vn = rounded(
                    c.args.precision, static_cast<float>(c.v_new.at((t * c.hv + head) * kDv + i)) *
                                          c.decay(t, last, head));
                const double term = vn * c.k.at((t * kHk + head / (c.hv / kHk)) * kDk + j);
                value += term;
                terms += std::abs(term);
            }
            ASSERT_TRUE(near(next.at(c.state_at(next_block, head, i, j)), value,
                             static_cast<double>(length + 2) * kF32Error * terms))
                << chunk << " " << head << " " << i << " " << j;
        }
}

void expect_oracle(Precision precision, std::int64_t group) {
    Case c(kLengths, kSlotOf, kMasks, group, DType::kF32, precision);
    c.ssm_state.poison(0, 1); // mask 0: not read
    GuardedTensor before = c.ssm_state;
    c.run(2);
    std::int64_t chunk = 0;
    for (std::size_t b = 0; b < kLengths.size(); ++b) {
        const auto end = static_cast<std::int64_t>(c.batch.seq_chunk.at(static_cast<int>(b) + 1));
        for (std::int64_t i = 0; i < c.hv * kDv * kDk; ++i)
            ASSERT_EQ(c.h.at(chunk * c.hv * kDv * kDk + i),
                      kMasks[b] != 0 ? before.at(kSlotOf[b] * c.hv * kDv * kDk + i) : 0);
        for (; chunk < end; ++chunk)
            for (std::int64_t head = 0; head < c.hv; ++head)
                expect_chunk(c, chunk, head, chunk + 1 < end ? c.h : c.ssm_state,
                             chunk + 1 < end ? chunk + 1 : kSlotOf[b]);
    }
    for (std::int64_t row = c.batch.live; row < c.batch.n; ++row)
        EXPECT_TRUE(c.v_new.row_is_zero(row));
    for (std::int64_t untouched : {1, 3, 5})
        EXPECT_EQ(c.ssm_state.row_bits(untouched), before.row_bits(untouched));
    for (GuardedTensor* out : {&c.h, &c.v_new, &c.ssm_state})
        EXPECT_TRUE(out->guards_intact());
}

TEST(ChunkState, MatchesADoubleOracleInF32) {
    for (std::int64_t group : {1, 3})
        expect_oracle(Precision::kF32, group);
}

TEST(ChunkState, MatchesADoubleOracleWithRoundedOperands) {
    expect_oracle(Precision::kModel, 2);
}

// Neither h nor v_new is read back: bf16 tensors hold the rounded values, and the state that is
// carried on is the same f32.
TEST(ChunkState, Bf16OutputsAreTheRoundedF32Outputs) {
    Case wide(kLengths, kSlotOf, kMasks, 2, DType::kF32, Precision::kModel);
    Case narrow(kLengths, kSlotOf, kMasks, 2, DType::kBF16, Precision::kModel);
    wide.run();
    narrow.run(2);
    EXPECT_EQ(wide.ssm_state.all_bytes(), narrow.ssm_state.all_bytes());
    for (std::int64_t i = 0; i < wide.v_new.count(); ++i)
        ASSERT_EQ(narrow.v_new.at(i), rounded(Precision::kModel, wide.v_new.at(i))) << i;
    for (std::int64_t i = 0; i < (wide.batch.chunks - 2) * wide.hv * kDv * kDk; ++i)
        ASSERT_EQ(narrow.h.at(i), rounded(Precision::kModel, wide.h.at(i))) << i;
}

TEST(ChunkState, BitsDoNotDependOnThreadsOrBatchMates) {
    Case one(kLengths, kSlotOf, kMasks, 2, DType::kBF16, Precision::kModel);
    Case two(kLengths, kSlotOf, kMasks, 2, DType::kBF16, Precision::kModel);
    Case alone({130}, {4}, {1}, 2, DType::kBF16, Precision::kModel);
    one.run();
    two.run(2);
    alone.run();
    EXPECT_EQ(one.v_new.all_bytes(), two.v_new.all_bytes());
    EXPECT_EQ(one.h.all_bytes(), two.h.all_bytes());
    EXPECT_EQ(one.ssm_state.all_bytes(), two.ssm_state.all_bytes());
    EXPECT_EQ(one.ssm_state.row_bits(4), alone.ssm_state.row_bits(4));
    for (std::int64_t row = 0; row < 130; ++row)
        EXPECT_EQ(one.v_new.row_bits(row), alone.v_new.row_bits(row));
}

TEST(ChunkState, AnUnusedSlotGivesZerosAndTouchesNoState) {
    Case c({70, 66}, {-1, 3}, {1, 1}, 2, DType::kBF16, Precision::kModel);
    for (GuardedTensor* x : {&c.k, &c.w, &c.u})
        x->poison(0, 70);
    GuardedTensor before = c.ssm_state;
    c.run();
    for (std::int64_t row = 0; row < 70; ++row)
        EXPECT_TRUE(c.v_new.row_is_zero(row));
    EXPECT_TRUE(c.h.row_is_zero(0) && c.h.row_is_zero(1));
    for (std::int64_t slot = 0; slot < kSlots; ++slot)
        EXPECT_EQ(c.ssm_state.row_bits(slot) == before.row_bits(slot), slot != 3);
}

TEST(ChunkState, RefusesShapesThatDisagree) {
    Case c({5}, {0}, {0}, 2, DType::kBF16, Precision::kModel);
    ChunkStateArgs bad = c.args;
    bad.h.shape[0] = 9;
    EXPECT_EQ(check(bad).message(), "chunk_state: h dim 0: expected NC=3, got 9");
    bad = c.args;
    bad.seq_chunk.shape[0] = 2;
    EXPECT_EQ(check(bad).message(), "chunk_state: seq_chunk dim 0: expected B+1=3, got 2");
    bad = c.args;
    std::swap(bad.ssm_state.shape[2], bad.ssm_state.shape[3]);
    EXPECT_EQ(check(bad).message(), "chunk_state: ssm_state dim 2: expected dv=16, got 32");
}

TEST(ChunkState, CostCountsOneSlotForEachSequence) {
    Case c({5}, {0}, {0}, 2, DType::kBF16, Precision::kModel);
    const Cost got = cost(c.args);
    EXPECT_EQ(got.state_bytes, 2 * 4 * kDv * kDk * 4); // one used, one unused sequence
    EXPECT_EQ(got.flops, 4 * 8 * 4 * kDv * kDk);
}

} // namespace
} // namespace lr::ops
