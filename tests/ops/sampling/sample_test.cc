// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/sampling/sample_case.h"

namespace lr::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kReleasedVocabulary = 248'320;

TEST(Sample, TakesTheLargestLogitWhenGreedy) {
    SampleCase c(1, 6);
    c.logits.set_all({0, -1, 5, 4.999, 2, -7});
    c.run();
    EXPECT_EQ(c.id(0), 2);
    EXPECT_EQ(c.status.at(0), 0);
}

TEST(Sample, LetsTheLowestIdWinTies) {
    SampleCase c(3, 5);
    c.logits.set_all({1, 3, 3, 3, 0, -2, -2, -2, -2, -2, -1, -1, -0.0, 0.0, -1});
    c.run();
    EXPECT_EQ(c.id(0), 1);
    EXPECT_EQ(c.id(1), 0);
    EXPECT_EQ(c.id(2), 2); // -0 equals 0
    c.set_rows(c.temperature, 1);
    c.set_rows(c.top_k, 1);
    c.run();
    EXPECT_EQ(c.id(0), 1);
    EXPECT_EQ(c.id(1), 0);
    EXPECT_EQ(c.id(2), 2);
}

TEST(Sample, FindsTheLargestAtEveryPlaceOfALongRow) {
    const std::int64_t vocab = 64 * 3 + 37;
    SampleCase c(vocab, vocab);
    c.set_all_logits(-3);
    for (std::int64_t i = 0; i < vocab; ++i)
        c.logits.set(i * vocab + i, -2);
    c.run();
    for (std::int64_t i = 0; i < vocab; ++i)
        EXPECT_EQ(c.id(i), i);
}

TEST(Sample, CountsANegativeOrNaNTemperatureAsGreedy) {
    SampleCase c(2, 4);
    c.logits.set_all({0, 0, 9, 0, 0, 8, 0, 0});
    c.temperature.set(0, -1.0);
    c.temperature.set(1, std::nan(""));
    c.run();
    EXPECT_EQ(c.id(0), 2);
    EXPECT_EQ(c.id(1), 1);
}

TEST(Sample, NeverReturnsAMaskedId) {
    SampleCase c(2, 6);
    c.logits.set_all({0, 1, 0, 0, 99, std::nan(""), 0, 1, 0, 0, kInfinity, 99});
    c.args.vocab_limit = 4;
    c.temperature.set(1, 100.0);
    c.run();
    EXPECT_EQ(c.id(0), 1);
    EXPECT_EQ(c.status.at(0), 0); // what lies beyond the limit is not looked at
    EXPECT_LT(c.id(1), 4);
    EXPECT_EQ(c.status.at(1), 0);
}

// In the whole blocks of 64 and in the rest; with every filter, whose steps meet the row first.
TEST(Sample, FailsARowWithNonFiniteLogitsAlone) {
    const std::int64_t vocab = 100;
    SampleCase c(6, vocab);
    c.logits.set(0 * vocab + 5, std::nan(""));
    c.logits.set(1 * vocab + 99, kInfinity);
    c.logits.set(2 * vocab + 63, -kInfinity);
    c.logits.set(3 * vocab + 64, -std::nan(""));
    for (std::int64_t i : {1, 2, 4}) {
        c.temperature.set(i, 1.0);
        c.top_p.set(i, 0.5);
        c.top_k.set(i, i == 2 ? 3 : 0);
        c.presence.set(i, 1);
        c.count_slot.set(i, 0);
    }
    c.run();
    for (std::int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(c.status.at(i), i < 4 ? 1 : 0) << i;
        EXPECT_EQ(c.id(i) == -1, i < 4) << i;
    }
}

TEST(Sample, GivesDeadRowsMinusOneWithoutReadingThem) {
    SampleCase c(4, 8);
    c.m_live.set(0, 1);
    for (GuardedTensor* t : {&c.logits, &c.temperature, &c.top_k, &c.count_slot, &c.bias_range})
        t->poison(1, 3);
    c.run(2);
    EXPECT_GE(c.id(0), 0);
    for (std::int64_t i = 1; i < 4; ++i) {
        EXPECT_EQ(c.id(i), -1);
        EXPECT_EQ(c.status.at(i), 0);
    }
}

TEST(Sample, DrawsByInverseDistributionFunction) {
    const std::int64_t rows = 300, vocab = 50;
    SampleCase c(rows, vocab);
    for (std::int64_t i = 0; i < rows; ++i)
        c.temperature.set(i, 0.5 + 0.01 * static_cast<double>(i));
    c.run();
    int compared = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        std::vector<double> z;
        for (std::int64_t j = 0; j < vocab; ++j)
            z.push_back(c.logits.at(i * vocab + j));
        const std::int64_t expected =
            plain_draw(plain_distribution(z, c.temperature.at(i), 0, 1, 0), c.bits(i));
        compared += expected >= 0;
        EXPECT_TRUE(expected < 0 || c.id(i) == expected) << i;
    }
    EXPECT_GT(compared, 295);
}

// Equal weights: id k of N owns the draws in [k/N, (k+1)/N), its lower edge included.
TEST(Sample, SharesTheDrawsOfEqualLogitsOverTheReleasedVocabulary) {
    const std::int64_t rows = 8;
    SampleCase c(rows, kReleasedVocabulary);
    c.set_all_logits(-1.25);
    const auto shared_by = [&](std::int64_t count) {
        c.run(2);
        for (std::int64_t i = 0; i < rows; ++i)
            EXPECT_EQ(c.id(i), static_cast<std::int64_t>(
                                   numerics::below(c.bits(i), static_cast<std::uint64_t>(count))));
    };
    shared_by(1); // greedy
    c.set_rows(c.temperature, 0.7);
    shared_by(kReleasedVocabulary);
    c.set_rows(c.min_p, 1);
    shared_by(kReleasedVocabulary);
    c.set_rows(c.top_p, 0.5);
    shared_by(kReleasedVocabulary / 2);
    c.set_rows(c.top_k, 1000);
    shared_by(500);
    c.set_rows(c.top_p, 1);
    shared_by(1000);
    c.set_rows(c.top_k, 100'000);
    shared_by(100'000);
}

// The x with x ^ (x >> shift) == y.
std::uint64_t undo_shift(std::uint64_t y, int shift) {
    std::uint64_t x = y;
    for (int done = shift; done < 64; done += shift)
        x = y ^ (x >> shift);
    return x;
}

// The factor's inverse modulo 2^64: each round doubles the bits that are right.
std::uint64_t undo_product(std::uint64_t product, std::uint64_t factor) {
    std::uint64_t inverse = factor;
    for (int round = 0; round < 6; ++round)
        inverse *= 2 - factor * inverse;
    return product * inverse;
}

std::uint64_t undo_mix64(std::uint64_t mixed) {
    std::uint64_t x = undo_product(undo_shift(mixed, 31), 0x94D0'49BB'1331'11EBu);
    x = undo_product(undo_shift(x, 27), 0xBF58'476D'1CE4'E5B9u);
    return undo_shift(x, 30);
}

// The seed whose draw at stream 0, position 0 has these bits.
std::uint64_t seed_of(std::uint64_t bits) {
    const std::uint64_t key = undo_mix64(bits) - numerics::kGolden;
    return undo_mix64(undo_mix64(key)) - numerics::kGolden;
}

// Four equal weights: the second quarter of the bits begins with its own first number.
TEST(Sample, GivesTheLowerEdgeOfAnIntervalToItsToken) {
    constexpr std::uint64_t kQuarter = std::uint64_t{1} << 62;
    SampleCase c(6, 4);
    c.set_all_logits(0.5);
    c.set_rows(c.temperature, 0.7);
    c.set_rows(c.position, 0);
    const std::uint64_t bits[] = {
        0, kQuarter - 1, kQuarter, 3 * kQuarter - 1, 3 * kQuarter, ~std::uint64_t{0}};
    for (std::int64_t i = 0; i < 6; ++i) {
        const std::uint64_t seed = seed_of(bits[i]);
        ASSERT_EQ(numerics::counter_bits(seed, 0, 0), bits[i]);
        c.seed.view().as<std::int64_t>()[i] = static_cast<std::int64_t>(seed);
    }
    for (const double top_k : {0, 3}) {
        c.set_rows(c.top_k, top_k); // 3: the quarter lies within the first third
        c.run();
        const std::vector<std::int64_t> expected =
            top_k == 0 ? std::vector<std::int64_t>{0, 0, 1, 2, 3, 3}
                       : std::vector<std::int64_t>{0, 0, 0, 2, 2, 2};
        for (std::int64_t i = 0; i < 6; ++i)
            EXPECT_EQ(c.id(i), expected[static_cast<std::size_t>(i)]) << i << " top-k " << top_k;
    }
}

TEST(Sample, NeverDrawsATokenWithoutWeight) {
    SampleCase c(2, 4);
    c.set_logit_rows({-1000, 1, 1, -1000});
    c.set_rows(c.temperature, 1);
    c.set_rows(c.position, 0);
    c.seed.view().as<std::int64_t>()[0] = static_cast<std::int64_t>(seed_of(0));
    c.seed.view().as<std::int64_t>()[1] = static_cast<std::int64_t>(seed_of(~std::uint64_t{0}));
    for (const double top_k : {0, 4, 3}) {
        c.set_rows(c.top_k, top_k);
        c.run();
        EXPECT_EQ(c.id(0), 1);
        EXPECT_EQ(c.id(1), 2);
    }
}

// All rows hold the same logits; what differs is seed, stream or position.
TEST(Sample, DependsOnSeedStreamAndPositionNotOnTheRow) {
    SampleCase c(8, 1000);
    c.set_all_logits(0);
    c.set_rows(c.temperature, 3);
    c.set_rows(c.position, 17);
    c.position.set(4, 18);
    c.seed.set(5, 12);
    c.stream.set(6, 1);
    c.run();
    for (std::int64_t i : {1, 2, 3, 7})
        EXPECT_EQ(c.id(i), c.id(0));
    EXPECT_NE(c.id(4), c.id(0));
    EXPECT_NE(c.id(5), c.id(0));
    EXPECT_NE(c.id(6), c.id(0));
}

// A row alone and among 16, at every place, with padding, on one thread and on two.
TEST(Sample, ARowsDrawDoesNotDependOnItsMates) {
    const std::int64_t rows = 16, vocab = 500;
    SampleCase all(rows, vocab);
    const auto configure = [&](SampleCase& c, std::int64_t row, std::int64_t kind) {
        c.temperature.set(row, 0.6 + 0.1 * static_cast<double>(kind));
        c.top_k.set(row, kind % 3 == 0 ? 0 : static_cast<double>(kind * 7));
        c.top_p.set(row, kind % 2 == 0 ? 1 : 0.9);
        c.min_p.set(row, kind % 5 == 0 ? 0.01 : 0);
        c.presence.set(row, kind % 4 == 0 ? 0.5 : 0);
        c.count_slot.set(row, static_cast<double>(kind % 3));
        c.seed.set(row, static_cast<double>(kind));
        c.set_bias_range(row, kind % 4, 4);
    };
    const auto fill_shared = [&](SampleCase& c) {
        for (std::int64_t j = 0; j < 4; ++j) {
            c.bias_id.set(j, static_cast<double>(j * 100));
            c.bias_value.set(j, static_cast<double>(j));
        }
        for (std::int64_t i = 0; i < c.counts.count(); i += 3)
            c.counts.set(i, static_cast<double>(i % 5));
    };
    fill_shared(all);
    for (std::int64_t i = 0; i < rows; ++i)
        configure(all, i, i);
    all.run(1);
    const auto bytes = all.token.all_bytes();
    all.run(2);
    EXPECT_EQ(all.token.all_bytes(), bytes);
    for (std::int64_t kind = 0; kind < rows; ++kind)
        for (const auto& [size, row, live] :
             std::vector<std::array<std::int64_t, 3>>{{1, 0, 1}, {5, 3, 4}, {5, 0, 1}}) {
            SampleCase c(size, vocab);
            fill_shared(c);
            configure(c, row, kind);
            for (std::int64_t j = 0; j < vocab; ++j)
                c.logits.set(row * vocab + j, all.logits.at(kind * vocab + j));
            c.position.set(row, all.position.at(kind));
            c.m_live.set(0, static_cast<double>(live));
            c.run();
            EXPECT_EQ(c.id(row), all.id(kind)) << "kind " << kind << " of " << size;
        }
}

TEST(Sample, SurvivesExtremeLogitsAndTemperatures) {
    SampleCase c(5, 3);
    c.set_logit_rows({1e30, -3e38, 9.9e29});
    c.temperature.set(0, 1e-38);
    c.temperature.set(1, kInfinity); // all ids alike, but for the one that is infinitely far
    c.temperature.set(2, 1e6);
    c.top_p.set(2, 0.5);
    c.temperature.set(3, 1);
    c.repetition.set(3, 100); // -3e38 * 100 stays finite
    c.count_slot.set(3, 0);
    c.counts.set_all({1, 1, 1, 0, 0, 0, 0, 0, 0});
    c.logits.set(4 * 3 + 0, 3e38); // 6e38 apart
    c.temperature.set(4, 1);
    c.run();
    EXPECT_EQ(c.id(0), 0);
    EXPECT_GE(c.id(1), 0);
    EXPECT_EQ(c.id(2), 0);
    EXPECT_EQ(c.id(3), 0);
    EXPECT_EQ(c.id(4), 0);
    for (std::int64_t i = 0; i < 5; ++i)
        EXPECT_EQ(c.status.at(i), 0) << i;
}

TEST(Sample, RefusesWrongArguments) {
    SampleCase c(2, 5);
    SampleArgs args = c.args;
    args.vocab_limit = 6;
    EXPECT_EQ(check(args).message(), "sample: vocab_limit: expected a number in [1, V=5], got 6");
    args.vocab_limit = 0;
    EXPECT_EQ(check(args).message(), "sample: vocab_limit: expected a number in [1, V=5], got 0");
    args = c.args;
    args.logits.dtype = DType::kBF16;
    EXPECT_EQ(check(args).message(), "sample: logits: expected dtype f32, got bf16");
    args = c.args;
    args.seed.dtype = DType::kI32;
    EXPECT_EQ(check(args).message(), "sample: seed: expected dtype i64, got i32");
    args = c.args;
    args.counts.shape[1] = 6;
    EXPECT_EQ(check(args).message(), "sample: counts dim 1: expected V=5, got 6");
    args = c.args;
    args.bias_value.shape[0] = 3;
    EXPECT_EQ(check(args).message(), "sample: bias_value dim 0: expected NB=4, got 3");
    args = c.args;
    args.status.shape[0] = 3;
    EXPECT_EQ(check(args).message(), "sample: status dim 0: expected m=2, got 3");
    args = c.args;
    args.logits.shape[1] = args.counts.shape[1] = (1 << 23) + 1;
    EXPECT_EQ(check(args).message(), "sample: V: expected at most 8388608, got 8388609");
}

TEST(Sample, CostsOnePassOverTheLogits) {
    SampleCase c(4, 1000, 300);
    const Cost work = cost(c.args);
    EXPECT_EQ(work.read_bytes, 4 * 1000 * 4 + 4 * (10 * 4 + 8 + 8) + 4);
    EXPECT_EQ(work.write_bytes, 4 * 2 * 4);
}

} // namespace
} // namespace lr::ops
