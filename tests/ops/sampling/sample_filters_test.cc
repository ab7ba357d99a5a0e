// SPDX-License-Identifier: Apache-2.0
//
// Top-k, top-p and min-p of ops/sampling/sample.h.
#include "tests/ops/sampling/sample_case.h"

#include <set>

namespace lr::ops {
namespace {

struct Setting {
    double temperature, top_k, top_p, min_p;
};

void apply(SampleCase& c, const Setting& s) {
    c.set_rows(c.temperature, s.temperature);
    c.set_rows(c.top_k, s.top_k);
    c.set_rows(c.top_p, s.top_p);
    c.set_rows(c.min_p, s.min_p);
}

// As the op reads them.
Setting in_f32(const Setting& s) {
    const auto f32 = [](double x) { return static_cast<double>(static_cast<float>(x)); };
    return {f32(s.temperature), s.top_k, f32(s.top_p), f32(s.min_p)};
}

constexpr Setting kSettings[] = {
    {1, 0, 1, 0},      {0.7, 20, 1, 0},     {0.7, 1, 1, 0},       {1.5, 0, 0.9, 0},
    {1, 0, 0.5, 0},    {1, 20, 0.95, 0},    {0.6, 20, 0.95, 0.1}, {2, 0, 1, 0.05},
    {1, 0, 0.9, 0.02}, {1, 5, 0.3, 0},      {3, 900, 0.99, 0},    {1, 999, 1, 0},
    {1, 1000, 1, 0},   {1, 100000, 0.9, 0}, {1, -1, 0.9, 0},      {1, 0, 1, 1},
    {0.3, 64, 1, 0},   {5, 0, 0.9999, 0},   {1, 0, 0.01, 0},      {0.05, 40, 0.95, 0.05},
};

// Random rows, and rows of few distinct values, where ties decide.
TEST(SampleFilters, DrawTheIdsOfAPlainImplementation) {
    const std::int64_t rows = 60, vocab = 1000;
    SampleCase c(rows, vocab);
    for (std::int64_t i = rows / 2 * vocab; i < rows * vocab; ++i)
        c.logits.set(i, std::round(c.logits.at(i)));
    int compared = 0, total = 0;
    for (const Setting& setting : kSettings) {
        apply(c, setting);
        c.run(2);
        const Setting s = in_f32(setting);
        for (std::int64_t i = 0; i < rows; ++i, ++total) {
            std::vector<double> z;
            for (std::int64_t j = 0; j < vocab; ++j)
                z.push_back(c.logits.at(i * vocab + j));
            const PlainDistribution plain =
                plain_distribution(z, s.temperature, s.top_k, s.top_p, s.min_p);
            const std::int64_t expected = plain_draw(plain, c.bits(i));
            compared += expected >= 0;
            ASSERT_TRUE(expected < 0 || c.id(i) == expected)
                << "row " << i << " got " << c.id(i) << " expected " << expected << " at T "
                << s.temperature << " k " << s.top_k << " p " << s.top_p << " min " << s.min_p;
        }
    }
    EXPECT_GT(compared, total * 97 / 100);
}

std::set<std::int64_t> drawn_ids(SampleCase& c) {
    c.run(2);
    std::set<std::int64_t> ids;
    for (std::int64_t i = 0; i < c.m; ++i)
        ids.insert(c.id(i));
    return ids;
}

using Ids = std::set<std::int64_t>;

TEST(SampleFilters, TopKKeepsExactlyKAndOfTiesTheLowestIds) {
    SampleCase c(400, 8);
    c.set_logit_rows({1, 2, 1, 1.5, 1, 1, -4, 1});
    c.set_rows(c.temperature, 5);
    c.set_rows(c.top_k, 4);
    EXPECT_EQ(drawn_ids(c), (Ids{0, 1, 2, 3}));
    c.set_rows(c.top_k, 2);
    EXPECT_EQ(drawn_ids(c), (Ids{1, 3}));
}

// Probabilities 0.4, 0.3, 0.2, 0.1 (logits ln 4, ln 3, ln 2, 0), ids not in rank.
TEST(SampleFilters, TopPKeepsTheTokenThatReachesIt) {
    SampleCase c(400, 4);
    c.set_logit_rows({std::log(2.0), std::log(4.0), 0, std::log(3.0)});
    c.set_rows(c.temperature, 1);
    const auto kept = [&](double top_p) {
        c.set_rows(c.top_p, top_p);
        return drawn_ids(c);
    };
    EXPECT_EQ(kept(1), (Ids{0, 1, 2, 3}));
    EXPECT_EQ(kept(0.95), (Ids{0, 1, 2, 3}));
    EXPECT_EQ(kept(0.89), (Ids{0, 1, 3}));
    EXPECT_EQ(kept(0.71), (Ids{0, 1, 3}));
    EXPECT_EQ(kept(0.69), (Ids{1, 3}));
    EXPECT_EQ(kept(0.39), (Ids{1}));
    EXPECT_EQ(kept(1e-9), (Ids{1}));
    EXPECT_EQ(kept(0), (Ids{1}));
    // Of the two that top-k leaves, 4/7 and 3/7.
    c.set_rows(c.top_k, 2);
    EXPECT_EQ(kept(0.58), (Ids{1, 3}));
    EXPECT_EQ(kept(0.57), (Ids{1}));
}

// Four equal weights: the edge itself is exact. Half is reached by two, and a third stays only when
// the limit is beyond them.
TEST(SampleFilters, TopPLeavesOutWhatComesOnceItIsReached) {
    SampleCase c(400, 4);
    c.set_all_logits(3);
    c.set_rows(c.temperature, 1);
    c.set_rows(c.top_p, 0.5);
    EXPECT_EQ(drawn_ids(c), (Ids{0, 1}));
    c.set_rows(c.top_p, std::nextafter(0.5f, 1.0f));
    EXPECT_EQ(drawn_ids(c), (Ids{0, 1, 2}));
}

TEST(SampleFilters, MinPIsRelativeToTheLikeliestAndKeepsWhatEqualsIt) {
    SampleCase c(400, 4);
    c.set_logit_rows({std::log(2.0), std::log(4.0), 0, std::log(3.0)});
    c.set_rows(c.temperature, 1);
    const auto kept = [&](double min_p) {
        c.set_rows(c.min_p, min_p);
        return drawn_ids(c);
    };
    EXPECT_EQ(kept(0.24), (Ids{0, 1, 2, 3}));
    EXPECT_EQ(kept(0.26), (Ids{0, 1, 3}));
    EXPECT_EQ(kept(0.74), (Ids{1, 3}));
    EXPECT_EQ(kept(0.76), (Ids{1}));
    EXPECT_EQ(kept(1), (Ids{1}));
    EXPECT_EQ(kept(7), (Ids{1}));
    EXPECT_EQ(kept(-1), (Ids{0, 1, 2, 3}));
    // After the temperature: at 2 the ratios are square roots.
    c.set_rows(c.temperature, 2);
    EXPECT_EQ(kept(0.49), (Ids{0, 1, 2, 3}));
    EXPECT_EQ(kept(0.51), (Ids{0, 1, 3}));
}

TEST(SampleFilters, ATopKOfAtLeastTheVocabularyIsOff) {
    SampleCase c(100, 70);
    c.set_rows(c.temperature, 2);
    c.run();
    const auto expected = c.token.all_bytes();
    for (double k : {-1.0, 70.0, 71.0, 2147483647.0}) {
        c.set_rows(c.top_k, k);
        c.run();
        EXPECT_EQ(c.token.all_bytes(), expected) << k;
    }
    c.args.vocab_limit = 10; // k counts the ids that can be drawn
    c.set_rows(c.top_k, 0);
    c.run();
    const auto limited = c.token.all_bytes();
    c.set_rows(c.top_k, 10);
    c.run();
    EXPECT_EQ(c.token.all_bytes(), limited);
}

// Pearson's statistic over 1e5 draws, within four standard deviations of its mean.
TEST(SampleFilters, FollowTheDistribution) {
    const std::int64_t draws = 100'000, vocab = 24;
    SampleCase c(draws, vocab);
    std::vector<double> row;
    for (std::int64_t j = 0; j < vocab; ++j)
        row.push_back(c.logits.at(j));
    c.set_logit_rows(row);
    for (const Setting& setting :
         {Setting{1, 0, 1, 0}, Setting{2.5, 0, 1, 0}, Setting{1, 10, 1, 0}, Setting{1, 0, 0.8, 0},
          Setting{1.3, 15, 0.9, 0}, Setting{1, 0, 1, 0.1}, Setting{1.2, 20, 0.95, 0.03}}) {
        apply(c, setting);
        c.run(2);
        const Setting s = in_f32(setting);
        const auto p =
            plain_distribution(row, s.temperature, s.top_k, s.top_p, s.min_p).probability;
        std::vector<double> seen(p.size(), 0);
        for (std::int64_t i = 0; i < draws; ++i)
            ++seen[static_cast<std::size_t>(c.id(i))];
        double statistic = 0, freedom = -1;
        for (std::size_t j = 0; j < p.size(); ++j) {
            const double expected = p[j] * static_cast<double>(draws);
            if (p[j] == 0) {
                EXPECT_EQ(seen[j], 0) << "id " << j;
                continue;
            }
            statistic += (seen[j] - expected) * (seen[j] - expected) / expected;
            ++freedom;
        }
        ASSERT_GT(freedom, 2);
        EXPECT_NEAR(statistic, freedom, 4 * std::sqrt(2 * freedom))
            << "T " << s.temperature << " k " << s.top_k << " p " << s.top_p << " min " << s.min_p;
    }
}

// Streams of one seed and seeds of one stream are independent: pairs of draws from 4 equal logits
// fill all 16 cells alike.
TEST(SampleFilters, DrawStreamsAndSeedsIndependently) {
    const std::int64_t draws = 32'000;
    SampleCase c(2 * draws, 4);
    c.set_all_logits(0);
    c.set_rows(c.temperature, 1);
    for (const bool streams : {true, false}) {
        for (std::int64_t i = 0; i < 2 * draws; ++i) {
            c.position.set(i, static_cast<double>(i / 2));
            c.stream.set(i, streams ? static_cast<double>(i % 2) : 0);
            c.seed.set(i, streams ? 5 : static_cast<double>(i % 2));
        }
        c.run(2);
        std::vector<double> cells(16, 0);
        for (std::int64_t i = 0; i < draws; ++i)
            ++cells[static_cast<std::size_t>(4 * c.id(2 * i) + c.id(2 * i + 1))];
        double statistic = 0;
        for (double cell : cells)
            statistic += (cell - 2000) * (cell - 2000) / 2000;
        EXPECT_NEAR(statistic, 15, 4 * std::sqrt(30.0));
    }
}

} // namespace
} // namespace lr::ops
