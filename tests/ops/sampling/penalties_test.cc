// SPDX-License-Identifier: Apache-2.0
//
// Bias and penalties of ops/sampling/sample.h, and count_tokens, which feeds them.
#include "ops/sampling/count_tokens.h"
#include "tests/ops/sampling/sample_case.h"

namespace lr::ops {
namespace {

struct CountCase {
    GuardedTensor ids{DType::kI32, {6}}, generated{DType::kI32, {6}}, sequence{DType::kI32, {6}},
        slot{DType::kI32, {3}}, n_live{DType::kI32, {1}}, counts{DType::kU16, {4, 5}};
    CountTokensArgs args{.ids = ids,
                         .generated = generated,
                         .sequence = sequence,
                         .slot = slot,
                         .n_live = n_live,
                         .counts = counts};

    CountCase() {
        counts.set_all(std::vector<double>(20, 0));
        n_live.set(0, 6);
        slot.set_all({2, 0, -1});
    }
    void run() {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(2);
        cpu::count_tokens(args, pool);
        EXPECT_TRUE(counts.guards_intact());
    }
    std::vector<int> row(std::int64_t slot_row) {
        std::vector<int> entries;
        for (std::int64_t i = 0; i < 5; ++i)
            entries.push_back(static_cast<int>(counts.at(slot_row * 5 + i)));
        return entries;
    }
};

constexpr int kPrompt = kPromptToken;

TEST(CountTokens, MarksThePromptAndCountsWhatWasGenerated) {
    CountCase c;
    c.ids.set_all({1, 1, 3, 1, 4, 1});
    c.generated.set_all({0, 0, 1, 1, 1, 1});
    c.sequence.set_all({0, 0, 0, 0, 1, 1});
    c.run();
    EXPECT_EQ(c.row(2), (std::vector<int>{0, kPrompt + 1, 0, 1, 0}));
    EXPECT_EQ(c.row(0), (std::vector<int>{0, 1, 0, 0, 1}));
    c.run();
    EXPECT_EQ(c.row(2), (std::vector<int>{0, kPrompt + 2, 0, 2, 0}));
    EXPECT_EQ(c.row(1), std::vector<int>(5, 0));
    EXPECT_EQ(c.row(3), std::vector<int>(5, 0));
}

TEST(CountTokens, LeavesPaddingAlone) {
    CountCase c;
    c.ids.set_all({0, 2, 2, 2, 2, 2});
    c.generated.set_all({1, 1, 1, 1, 1, 1});
    c.sequence.set_all({1, -1, 2, 1, 1, 1}); // sequence 2 has no slot
    c.n_live.set(0, 3);
    c.ids.poison(3, 3);
    c.sequence.poison(3, 3);
    c.run();
    EXPECT_EQ(c.row(0), (std::vector<int>{1, 0, 0, 0, 0}));
    for (std::int64_t other : {1, 2, 3})
        EXPECT_EQ(c.row(other), std::vector<int>(5, 0));
}

TEST(CountTokens, StopsAtTheLargestCount) {
    CountCase c;
    c.counts.set(2 * 5 + 1, kPromptToken + kMaxTokenCount - 1);
    c.ids.set_all({1, 1, 1, 1, 1, 1});
    c.generated.set_all({1, 1, 1, 1, 0, 1});
    c.sequence.set_all({0, 0, 0, 0, 0, 0});
    c.run();
    EXPECT_EQ(c.row(2), (std::vector<int>{0, kPrompt + kMaxTokenCount, 0, 0, 0}));
}

TEST(CountTokens, CostsTheEntriesItTouches) {
    CountCase c;
    const Cost work = cost(c.args);
    EXPECT_EQ(work.state_bytes, 6 * 2);
    EXPECT_EQ(work.read_bytes, 3 * 6 * 4 + 3 * 4 + 4 + 6 * 2);
    EXPECT_EQ(work.write_bytes, 6 * 2);
    EXPECT_EQ(work.flops, 0);
}

// One row; z is found out by bisection: the largest bias on id 0, whose logit is 0, that still lets
// the greedy draw take `id`.
float z_of(SampleCase& c, std::int64_t id) {
    c.bias_id.set(3, 0);
    float low = -1000, high = 1000;
    while (std::nextafter(low, high) < high) {
        const float middle = low + (high - low) / 2;
        c.bias_value.set(3, middle);
        c.run();
        (c.id(0) == id ? low : high) = middle;
    }
    return high; // id 0 wins a tie, so this is the value itself
}

// Ids 1 to 7 with every kind of entry. Worked by hand: repetition 2, frequency 0.25, presence 0.5.
//   id  logit  seen                 / or * 2   - 0.25 n   - 0.5
//   1    4     not                   4          4          4
//   2    4     prompt                2          2          2
//   3    4     generated twice       2          1.5        1
//   4   -3     prompt, once         -6         -6.25      -6.75
//   5   -3     prompt               -6         -6         -6
//   6    0     generated 4 times     0         -1         -1.5
//   7    0.5   prompt                0.25       0.25       0.25
TEST(Penalties, FollowTheHandComputedTable) {
    SampleCase c(1, 8);
    const std::vector<double> logits = {0, 4, 4, 4, -3, -3, 0, 0.5};
    const std::vector<double> entries = {0, 0, kPrompt, 2, kPrompt + 1, kPrompt, 4, kPrompt};
    const std::vector<double> expected = {0, 4, 2, 1, -6.75, -6, -1.5, 0.25};
    for (std::int64_t i = 0; i < 8; ++i)
        c.counts.set(8 + i, entries[static_cast<std::size_t>(i)]);
    c.count_slot.set(0, 1);
    c.repetition.set(0, 2);
    c.frequency.set(0, 0.25);
    c.presence.set(0, 0.5);
    c.set_bias_range(0, 3, 4);
    for (std::int64_t id = 1; id < 8; ++id) {
        // The others out of the way.
        c.logits.set_all(std::vector<double>(8, -5000));
        c.logits.set(0, 0);
        c.logits.set(id, logits[static_cast<std::size_t>(id)]);
        EXPECT_EQ(z_of(c, id), expected[static_cast<std::size_t>(id)]) << "id " << id;
    }
}

// Held at the largest finite number, of which all then are equal: the others of the vocabulary and
// the draw go on.
TEST(Penalties, StayFinite) {
    SampleCase c(2, 4);
    for (std::int64_t i = 0; i < 8; ++i)
        c.logits.set(i, i < 4 ? -3e38 + 1e37 * static_cast<double>(i) : 3e38);
    c.logits.set(7, 1);
    c.counts.set_all({1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
    c.count_slot.set_all({0, 1});
    c.repetition.set_all({100, 0.01});
    c.set_rows(c.temperature, 1);
    std::vector<int> seen(8, 0);
    for (int position = 0; position < 100; ++position) {
        c.set_rows(c.position, position);
        c.run();
        for (std::int64_t row : {0, 1}) {
            ASSERT_EQ(c.status.at(row), 0);
            ++seen[static_cast<std::size_t>(4 * row + c.id(row))];
        }
    }
    for (std::size_t i = 0; i < 8; ++i)
        EXPECT_EQ(seen[i] > 0, i < 7) << i;
}

TEST(Penalties, AreOffWithoutASlotOrWithNeutralValues) {
    SampleCase c(3, 4);
    c.set_logit_rows({1, 2, 3, 2.5});
    c.counts.set_all({0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 0});
    c.set_rows(c.presence, 1);
    c.count_slot.set(1, 2);
    c.count_slot.set(2, 2);
    c.presence.set(2, 0);
    c.run();
    EXPECT_EQ(c.id(0), 2);
    EXPECT_EQ(c.id(1), 3);
    EXPECT_EQ(c.id(2), 2);
}

TEST(Penalties, MayRewardAndEachWorksAlone) {
    SampleCase c(3, 3);
    c.set_logit_rows({1.5, 2, 1});
    c.counts.set_all({0, 0, 0, 1, 0, 3, 0, 0, 0});
    c.set_rows(c.count_slot, 1);
    c.presence.set(0, -0.75);  // 2.25, 2, 1.75
    c.frequency.set(1, -0.5);  // 2, 2, 2.5
    c.repetition.set(2, 0.25); // 6, 2, 4
    c.run();
    EXPECT_EQ(c.id(0), 0);
    EXPECT_EQ(c.id(1), 2);
    EXPECT_EQ(c.id(2), 0);
}

TEST(Bias, ComesBeforePenaltiesAndTemperature) {
    SampleCase c(1, 3);
    c.logits.set_all({-1, 0.5, -100});
    c.bias_id.set_all({0, 2, 0, 0});
    c.bias_value.set_all({3, 100, 0, 0});
    c.counts.set(0, kPrompt);
    c.count_slot.set(0, 0);
    c.repetition.set(0, 4); // (-1 + 3) / 4 = 0.5: a tie, the lower id; -1 * 4 + 3 = -1 otherwise
    c.set_bias_range(0, 0, 1);
    c.run();
    EXPECT_EQ(c.id(0), 0);
    c.repetition.set(0, 4.001);
    c.run();
    EXPECT_EQ(c.id(0), 1);
    // Softmax of (2, 0.5, 0) / 0.5 with the third id's bias.
    c.repetition.set(0, 1);
    c.set_bias_range(0, 0, 2);
    c.temperature.set(0, 0.5);
    int compared = 0;
    for (int position = 0; position < 200; ++position) {
        c.position.set(0, position);
        c.run();
        const std::int64_t expected =
            plain_draw(plain_distribution({2, 0.5, 0}, 0.5, 0, 1, 0), c.bits(0));
        compared += expected >= 0;
        EXPECT_TRUE(expected < 0 || c.id(0) == expected) << position;
    }
    EXPECT_GT(compared, 195);
}

TEST(Bias, AddsUpOfOneIdAndLeavesOutIdsThatCannotBeDrawn) {
    SampleCase c(2, 6);
    c.set_all_logits(0);
    c.args.vocab_limit = 5;
    c.bias_id.set_all({5, -1, 3, 3});
    c.bias_value.set_all({100, 100, 1, 1});
    c.set_bias_range(0, 0, 4);
    c.set_bias_range(1, 3, 3); // empty
    c.logits.set(2, 1.5);
    c.run();
    EXPECT_EQ(c.id(0), 3);
    EXPECT_EQ(c.id(1), 0);
}

TEST(Bias, BansAndForces) {
    SampleCase c(300, 5);
    c.set_logit_rows({6, 5, 4, 3, 2});
    c.set_rows(c.temperature, 1);
    c.bias_id.set_all({0, 4, 0, 0});
    c.bias_value.set_all({-100, 100, 0, 0});
    for (std::int64_t i = 0; i < 300; ++i)
        c.set_bias_range(i, i < 150 ? 0 : 1, i < 150 ? 1 : 2);
    c.run(2);
    for (std::int64_t i = 0; i < 300; ++i)
        EXPECT_TRUE(i < 150 ? c.id(i) != 0 : c.id(i) == 4) << i << ": " << c.id(i);
}

} // namespace
} // namespace lr::ops
