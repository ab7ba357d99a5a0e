// SPDX-License-Identifier: Apache-2.0
#include "experts/load.h"
#include "ops/op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace lr::experts {
namespace {

double sum(const Load& load) {
    return std::accumulate(load.begin(), load.end(), 0.0);
}

TEST(Load, AddsUpToTheChoicesOfAToken) {
    for (double exponent : {0.0, 0.5, 1.0, 2.0, 8.0}) {
        const Load load = zipf_load(64, 6, exponent);
        EXPECT_NEAR(sum(load), 6, 1e-9) << exponent;
        EXPECT_TRUE(std::is_sorted(load.rbegin(), load.rend()));
        EXPECT_LE(load.front(), 1);
    }
    EXPECT_EQ(uniform_load(8, 8), Load(8, 1.0));
    EXPECT_NEAR(uniform_load(64, 6)[17], 6.0 / 64, 1e-12);
}

TEST(Load, SkewIsTheBusiestExpertOverTheMean) {
    for (double skew : {1.0, 1.5, 4.0, 10.0}) {
        const Load load = skewed_load(64, 6, skew);
        EXPECT_NEAR(load.front(), skew * 6 / 64, 1e-6) << skew;
        EXPECT_NEAR(sum(load), 6, 1e-9);
    }
    EXPECT_NEAR(measured_skew(std::vector<std::int32_t>{70, 12}), 70.0 * 2 / 82, 1e-12);
    EXPECT_EQ(measured_skew(std::vector<std::int32_t>{0, 0}), 0);
}

TEST(Load, OfMeasuredCountsIsInProportionUntilOneIsFull) {
    EXPECT_EQ(measured_load(std::vector<std::int32_t>{3, 1, 0, 0}, 1), (Load{0.75, 0.25, 0, 0}));
    // 2 choices: 3/2 of expert 0 is too many; the other choice is shared 1 to 1.
    EXPECT_EQ(measured_load(std::vector<std::int32_t>{6, 1, 1, 0}, 2), (Load{1, 0.5, 0.5, 0}));
}

TEST(Load, DrawsDistinctExpertsWithItsProbabilities) {
    const Load load = zipf_load(16, 4, 1.0);
    constexpr std::int64_t kTokens = 20000;
    const Routing routing = draw_routing(load, kTokens, 4, 1);
    ASSERT_EQ(routing.tokens(), kTokens);
    for (std::int64_t t = 0; t < kTokens; ++t) {
        const auto first = routing.ids.begin() + 4 * t;
        ASSERT_EQ(std::set<std::int32_t>(first, first + 4).size(), 4u);
    }
    const std::vector<std::int32_t> counts = count_rows(routing);
    for (std::size_t e = 0; e < load.size(); ++e) {
        // 5 standard deviations of a binomial.
        const double deviation = std::sqrt(kTokens * load[e] * (1 - load[e]));
        EXPECT_NEAR(counts[e], kTokens * load[e], 5 * deviation + 1) << e;
    }
    EXPECT_EQ(routing.ids, draw_routing(load, kTokens, 4, 1).ids);
    EXPECT_NE(routing.ids, draw_routing(load, kTokens, 4, 2).ids);
}

TEST(Load, ExpectedDistinctExpertsOfUniformTokens) {
    // The closed form, and published sizes at 1, 2, 4, ..., 64 tokens.
    const double of_256[] = {8, 15.8, 30.5, 57.4, 102, 163, 222};
    const double of_512[] = {10, 19.8, 38.8, 74.7, 138.6, 239.6, 367.1};
    for (int i = 0; i < 7; ++i) {
        EXPECT_NEAR(expected_distinct(uniform_load(256, 8), 1 << i), of_256[i], 0.5) << i;
        EXPECT_NEAR(expected_distinct(uniform_load(512, 10), 1 << i), of_512[i], 0.06) << i;
        EXPECT_NEAR(expected_distinct(uniform_load(512, 10), 1 << i),
                    ops::expected_live_experts(512, 10, 1 << i), 1e-9);
    }
    // Skew touches fewer.
    EXPECT_LT(expected_distinct(zipf_load(256, 8, 1), 16), 80);
}

TEST(Load, MeanRowsOf64TokensOverTheHistoricalModel) {
    // 64 experts, 6 a token: 6 rows an expert, and 3 in each half.
    for (double share : uniform_load(64, 6)) {
        EXPECT_NEAR(64 * share, 6, 1e-9);
        EXPECT_NEAR(32 * share, 3, 1e-9);
    }
}

} // namespace
} // namespace lr::experts
