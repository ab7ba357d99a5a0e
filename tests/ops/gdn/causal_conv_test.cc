// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/causal_conv.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kChannels = 144, kSlots = 6;

struct Case {
    Packed batch;
    GuardedTensor qkv, taps, conv_state, y;
    std::vector<WeightPart> parts;
    CausalConvArgs args;

    Case(DType act, const std::vector<std::int64_t>& lengths, const std::vector<int>& slots,
         const std::vector<int>& masks)
        : batch(lengths, slots, masks), qkv(act, {batch.n, kChannels}, kChannels + 16),
          taps(DType::kF32, {kChannels, 4}), conv_state(act, {kSlots, kChannels, 3}),
          y(act, {batch.n, kChannels}) {
        fill_rows(qkv, "qkv", 1.5, batch.live);
        taps.fill("taps", 0.5);
        conv_state.fill("state", 1.5);
        parts = {{.data = taps, .scale = {}}};
        args = {.qkv = qkv,
                .cu_seqlens = batch.cu_seqlens,
                .slot = batch.slot,
                .mask = batch.mask,
                .n_live = batch.n_live,
                .conv = {.shape = {kChannels, 4}, .dtype = DType::kF32, .parts = parts},
                .conv_state = conv_state,
                .y = y};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::causal_conv, args, threads); }
};

const std::vector<std::int64_t> kLengths = {1, 5, 2, 3, 40};
const std::vector<int> kSlotOf = {2, 0, 5, 1, 3};
const std::vector<int> kMasks = {1, 1, 0, 0, 1};

// The state before, then the sequence's rows, as one list for a channel.
std::vector<double> history(Case& c, GuardedTensor& before, std::size_t b, std::int64_t row,
                            std::int64_t channel) {
    std::vector<double> x(3, 0.0);
    for (std::int64_t age = 0; age < 3 && kMasks[b] != 0; ++age)
        x[static_cast<std::size_t>(age)] = before.at((kSlotOf[b] * kChannels + channel) * 3 + age);
    for (std::int64_t t = 0; t < kLengths[b]; ++t)
        x.push_back(c.qkv.at((row + t) * kChannels + channel));
    return x;
}

void expect_oracle(DType act) {
    Case c(act, kLengths, kSlotOf, kMasks);
    for (int unread : {5, 1}) // mask 0
        c.conv_state.poison(unread, 1);
    GuardedTensor before = c.conv_state;
    c.run();
    std::int64_t row = 0;
    for (std::size_t b = 0; b < kLengths.size(); row += kLengths[b++])
        for (std::int64_t channel = 0; channel < kChannels; ++channel) {
            const std::vector<double> x = history(c, before, b, row, channel);
            for (std::size_t t = 0; t + 3 < x.size(); ++t) {
                double sum = 0, terms = 0;
                for (std::size_t i = 0; i < 4; ++i) {
                    const double term =
                        c.taps.at(channel * 4 + static_cast<std::int64_t>(i)) * x[t + i];
                    sum += term;
                    terms += std::abs(term);
                }
                const double bound = kF32Error * (1.1 * 4 * terms + 3 * std::abs(silu(sum))) +
                                     store_error(act) * std::abs(silu(sum));
                const std::int64_t at = (row + static_cast<std::int64_t>(t)) * kChannels + channel;
                EXPECT_TRUE(near(c.y.at(at), silu(sum), bound)) << b << " " << t << " " << channel;
            }
            for (std::size_t age = 0; age < 3; ++age)
                EXPECT_EQ(c.conv_state.at((kSlotOf[b] * kChannels + channel) * 3 +
                                          static_cast<std::int64_t>(age)),
                          x[x.size() - 3 + age])
                    << b << " " << channel;
        }
    for (std::int64_t i = c.batch.live; i < c.batch.n; ++i)
        EXPECT_TRUE(c.y.row_is_zero(i));
    EXPECT_EQ(c.conv_state.row_bits(4), before.row_bits(4)); // in no batch
    EXPECT_TRUE(c.y.guards_intact());
    EXPECT_TRUE(c.conv_state.guards_intact());
}

TEST(CausalConv, MatchesADoubleOracleInF32) {
    expect_oracle(DType::kF32);
}

TEST(CausalConv, MatchesADoubleOracleInBf16) {
    expect_oracle(DType::kBF16);
}

TEST(CausalConv, AnUnusedSlotGivesZeroRowsAndTouchesNoState) {
    Case c(DType::kBF16, {4, 6, 5}, {1, -1, 2}, {1, 1, 1});
    c.qkv.poison(4, 6);
    GuardedTensor before = c.conv_state;
    c.run();
    for (std::int64_t row = 4; row < 10; ++row)
        EXPECT_TRUE(c.y.row_is_zero(row));
    for (std::int64_t slot : {0, 3, 4, 5})
        EXPECT_EQ(c.conv_state.row_bits(slot), before.row_bits(slot));
    EXPECT_NE(c.conv_state.row_bits(1), before.row_bits(1));
}

TEST(CausalConv, ASequenceWithoutRowsLeavesItsStateAlone) {
    Case c(DType::kBF16, {4, 0}, {1, 3}, {1, 0});
    GuardedTensor before = c.conv_state;
    c.run();
    EXPECT_EQ(c.conv_state.row_bits(3), before.row_bits(3));
}

TEST(CausalConv, BitsDoNotDependOnThreadsBatchMatesOrWhereThePieceBegins) {
    for (DType act : {DType::kBF16, DType::kF32}) {
        Case whole(act, {40}, {3}, {0}), threads(act, {40}, {3}, {0});
        Case first(act, {2}, {3}, {0}), rest(act, {38}, {3}, {1}),
            mates(act, {7, 40}, {1, 3}, {1, 0});
        whole.run();
        threads.run(2);
        EXPECT_EQ(whole.y.all_bytes(), threads.y.all_bytes());
        EXPECT_EQ(whole.conv_state.all_bytes(), threads.conv_state.all_bytes());

        first.run();
        rest.conv_state = first.conv_state;
        rest.args.conv_state = rest.conv_state;
        for (std::int64_t i = 0; i < 38 * kChannels; ++i)
            rest.qkv.set(i, whole.qkv.at(2 * kChannels + i));
        rest.run();
        for (std::int64_t i = 0; i < 40 * kChannels; ++i)
            mates.qkv.set(7 * kChannels + i, whole.qkv.at(i));
        mates.run();
        for (std::int64_t row = 0; row < 40; ++row) {
            EXPECT_EQ(whole.y.row_bits(row),
                      row < 2 ? first.y.row_bits(row) : rest.y.row_bits(row - 2));
            EXPECT_EQ(whole.y.row_bits(row), mates.y.row_bits(row + 7));
        }
        EXPECT_EQ(whole.conv_state.row_bits(3), rest.conv_state.row_bits(3));
        EXPECT_EQ(whole.conv_state.row_bits(3), mates.conv_state.row_bits(3));
    }
}

TEST(CausalConv, RefusesShapesThatDisagree) {
    Case c(DType::kBF16, {4, 6}, {1, 2}, {1, 1});
    CausalConvArgs bad = c.args;
    bad.cu_seqlens.shape[0] = 3;
    EXPECT_EQ(check(bad).message(), "causal_conv: cu_seqlens dim 0: expected B+1=4, got 3");
    bad = c.args;
    bad.conv_state.shape[2] = 4;
    EXPECT_EQ(check(bad).message(), "causal_conv: conv_state dim 2: expected 3, got 4");
    bad = c.args;
    bad.conv.shape = {kChannels, 1, 4};
    EXPECT_EQ(check(bad).message(), "causal_conv: conv: expected shape [144, 4], got [144, 1, 4]");
    bad = c.args;
    bad.y.dtype = DType::kF16;
    EXPECT_EQ(check(bad).message(), "causal_conv: y: expected dtype bf16 or f32, got f16");
}

} // namespace
} // namespace lr::ops
