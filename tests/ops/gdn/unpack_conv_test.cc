// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/unpack_conv.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kRows = 6, kHk = 2, kHv = 4, kDk = 16, kDv = 32, kSlots = 8;
constexpr std::int64_t kKeys = kHk * kDk, kValues = kHv * kDv;
constexpr std::int64_t kChannels = 2 * kKeys + kValues;

struct Case {
    GuardedTensor qkvz, ba, slot, n_live, taps_a, taps_b, conv_state, q, k, v, z, b, a;
    std::vector<WeightPart> parts;
    UnpackConvArgs args;

    // The weight is two parts along its rows; the second has the checkpoint's [C, 1, 4].
    explicit Case(DType act, DType tap_dtype = DType::kBF16)
        : qkvz(act, {kRows, kChannels + kValues}, kChannels + kValues + 8),
          ba(act, {kRows, 2 * kHv}), slot(DType::kI32, {kRows}), n_live(DType::kI32, {1}),
          taps_a(tap_dtype, {40, 4}), taps_b(tap_dtype, {kChannels - 40, 1, 4}),
          conv_state(act, {kSlots, kChannels, 3}), q(act, {kRows, kHk, kDk}),
          k(act, {kRows, kHk, kDk}), v(act, {kRows, kHv, kDv}), z(act, {kRows, kHv, kDv}),
          b(act, {kRows, kHv}), a(act, {kRows, kHv}) {
        qkvz.fill("qkvz", 1.5);
        ba.fill("ba", 1.0);
        taps_a.fill("taps_a", 0.5);
        taps_b.fill("taps_b", 0.5);
        conv_state.fill("state", 1.5);
        slot.set_all({3, 0, -1, 6, 1, 7});
        n_live.set(0, kRows - 1);
        qkvz.poison(2, 1); // slot -1
        ba.poison(2, 1);
        qkvz.poison(kRows - 1, 1); // beyond n_live
        ba.poison(kRows - 1, 1);
        for (std::int64_t untouched : {2, 4, 5, 7})
            conv_state.poison(untouched, 1);
        parts = {{.data = taps_a, .scale = {}}, {.data = taps_b, .scale = {}}};
        args = {.qkvz = qkvz,
                .ba = ba,
                .slot = slot,
                .n_live = n_live,
                .conv = {.shape = {kChannels, 4}, .dtype = tap_dtype, .parts = parts},
                .conv_state = conv_state,
                .q = q,
                .k = k,
                .v = v,
                .z = z,
                .b = b,
                .a = a};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::unpack_conv, args, threads); }
    double tap(std::int64_t channel, std::int64_t i) {
        return channel < 40 ? taps_a.at(channel * 4 + i) : taps_b.at((channel - 40) * 4 + i);
    }
    double convolved(std::int64_t row, std::int64_t channel) {
        if (channel < kKeys)
            return q.at(row * kKeys + channel);
        if (channel < 2 * kKeys)
            return k.at(row * kKeys + channel - kKeys);
        return v.at(row * kValues + channel - 2 * kKeys);
    }
    std::vector<GuardedTensor*> outputs() { return {&q, &k, &v, &z, &b, &a}; }
};

void expect_oracle(DType act) {
    Case c(act);
    GuardedTensor before = c.conv_state;
    c.run();
    for (std::int64_t row : {0, 1, 3, 4}) {
        const auto slot = static_cast<std::int64_t>(c.slot.at(row));
        for (std::int64_t channel = 0; channel < kChannels; ++channel) {
            const double x = c.qkvz.at(row * (kChannels + kValues) + channel);
            const std::int64_t at = (slot * kChannels + channel) * 3;
            const double inputs[4] = {before.at(at), before.at(at + 1), before.at(at + 2), x};
            double sum = 0, terms = 0;
            for (std::int64_t i = 0; i < 4; ++i) {
                sum += c.tap(channel, i) * inputs[i];
                terms += std::abs(c.tap(channel, i) * inputs[i]);
            }
            // 4 products and 3 sums; SiLU has slope at most 1.1 and 3 roundings of its own.
            const double bound = kF32Error * (1.1 * 4 * terms + 3 * std::abs(silu(sum))) +
                                 store_error(act) * std::abs(silu(sum));
            EXPECT_TRUE(near(c.convolved(row, channel), silu(sum), bound)) << row << " " << channel;
            for (std::int64_t age = 0; age < 3; ++age)
                EXPECT_EQ(c.conv_state.at(at + age), inputs[age + 1]) << row << " " << channel;
        }
        for (std::int64_t i = 0; i < kValues; ++i)
            EXPECT_EQ(c.z.at(row * kValues + i),
                      c.qkvz.at(row * (kChannels + kValues) + kChannels + i));
        for (std::int64_t h = 0; h < kHv; ++h) {
            EXPECT_EQ(c.b.at(row * kHv + h), c.ba.at(row * 2 * kHv + h));
            EXPECT_EQ(c.a.at(row * kHv + h), c.ba.at(row * 2 * kHv + kHv + h));
        }
    }
    for (GuardedTensor* out : c.outputs()) {
        EXPECT_TRUE(out->row_is_zero(2));
        EXPECT_TRUE(out->row_is_zero(kRows - 1));
        EXPECT_TRUE(out->guards_intact());
    }
    for (std::int64_t untouched : {2, 4, 5, 7})
        EXPECT_EQ(c.conv_state.row_bits(untouched), before.row_bits(untouched));
}

TEST(UnpackConv, MatchesADoubleOracleInF32) {
    expect_oracle(DType::kF32);
}

TEST(UnpackConv, MatchesADoubleOracleInBf16) {
    expect_oracle(DType::kBF16);
}

TEST(UnpackConv, TheLastTapMultipliesTheCurrentToken) {
    Case c(DType::kF32, DType::kF32);
    c.taps_a.fill("zero", 0).set_all({100, 10, 1, 1000}); // channel 0
    c.conv_state.set_all({3, 2, 1});
    c.slot.set(0, 0);
    c.slot.set(1, -1);
    c.qkvz.set(0, 4);
    c.run();
    EXPECT_EQ(c.q.at(0), 4321.0f); // SiLU is the identity up here
    EXPECT_EQ(c.conv_state.at(0), 2);
    EXPECT_EQ(c.conv_state.at(1), 1);
    EXPECT_EQ(c.conv_state.at(2), 4);
}

TEST(UnpackConv, BitsDoNotDependOnThreadsOrBatchMates) {
    Case one(DType::kBF16), two(DType::kBF16), alone(DType::kBF16);
    one.run();
    two.run(2);
    alone.slot.set_all({-1, -1, -1, 6, -1, -1});
    alone.run();
    for (std::size_t i = 0; i < one.outputs().size(); ++i) {
        EXPECT_EQ(one.outputs()[i]->all_bytes(), two.outputs()[i]->all_bytes());
        EXPECT_EQ(one.outputs()[i]->row_bits(3), alone.outputs()[i]->row_bits(3));
    }
    EXPECT_EQ(one.conv_state.all_bytes(), two.conv_state.all_bytes());
    EXPECT_EQ(one.conv_state.row_bits(6), alone.conv_state.row_bits(6));
}

TEST(UnpackConv, RefusesShapesThatDisagree) {
    Case c(DType::kBF16);
    UnpackConvArgs bad = c.args;
    bad.qkvz.shape[1] -= 1;
    EXPECT_EQ(check(bad).message(), "unpack_conv: qkvz dim 1: expected C+Hv*dv=320, got 319");
    bad = c.args;
    bad.conv.shape = {kChannels, 3};
    EXPECT_EQ(check(bad).message(), "unpack_conv: conv: expected shape [192, 4], got [192, 3]");
    bad = c.args;
    bad.conv.format = WeightFormat::kFp8Block;
    EXPECT_EQ(check(bad).message(), "unpack_conv: conv: expected a plain weight, got fp8-block");
    bad = c.args;
    bad.conv_state.dtype = DType::kF32;
    EXPECT_EQ(check(bad).message(), "unpack_conv: conv_state: expected dtype bf16, got f32");
    bad = c.args;
    bad.slot.dtype = DType::kI64;
    EXPECT_EQ(check(bad).message(), "unpack_conv: slot: expected dtype i32, got i64");
}

TEST(UnpackConv, CostCountsOneSlotForEachRow) {
    Case c(DType::kBF16);
    const Cost got = cost(c.args);
    EXPECT_EQ(got.flops, 12 * kRows * kChannels);
    EXPECT_EQ(got.weight_bytes, kChannels * 4 * 2);
    EXPECT_EQ(got.state_bytes, kRows * kChannels * 3 * 2);
    EXPECT_EQ(got.read_bytes, kRows * (kChannels + kValues + 2 * kHv) * 2 + kRows * 4 + 4 +
                                  got.weight_bytes + got.state_bytes);
    EXPECT_EQ(got.write_bytes, kRows * (kChannels + kValues + 2 * kHv) * 2 + got.state_bytes);
}

} // namespace
} // namespace lr::ops
