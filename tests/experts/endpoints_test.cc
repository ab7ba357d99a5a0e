// SPDX-License-Identifier: Apache-2.0
#include "experts/endpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace lr::experts {
namespace {

struct Endpoints {
    std::vector<std::int32_t> start, end;
    std::int32_t last = 0;
};

Endpoints scan(const std::vector<std::int32_t>& counts, std::int32_t alignment) {
    Endpoints out{std::vector<std::int32_t>(counts.size()),
                  std::vector<std::int32_t>(counts.size())};
    out.last = scan_endpoints(counts.data(), static_cast<std::int32_t>(counts.size()), alignment,
                              out.start.data(), out.end.data());
    return out;
}

TEST(Endpoints, WorkedExample) {
    const Endpoints e = scan({96, 0, 129, 1}, 128);
    EXPECT_EQ(e.start, (std::vector<std::int32_t>{0, 128, 128, 384}));
    EXPECT_EQ(e.end, (std::vector<std::int32_t>{96, 128, 257, 385}));
    EXPECT_EQ(e.last, 385);
}

TEST(Endpoints, EmptyExpertsAndNoExperts) {
    const Endpoints e = scan({0, 0, 0}, 16);
    EXPECT_EQ(e.start, (std::vector<std::int32_t>{0, 0, 0}));
    EXPECT_EQ(e.end, e.start);
    EXPECT_EQ(scan({}, 16).last, 0);
    const Endpoints unaligned = scan({3, 0, 2}, 1);
    EXPECT_EQ(unaligned.start, (std::vector<std::int32_t>{0, 3, 3}));
    EXPECT_EQ(unaligned.end, (std::vector<std::int32_t>{3, 3, 5}));
}

TEST(Endpoints, EqualTheSumOfAlignedCountsBefore) {
    std::mt19937 random(2);
    for (int round = 0; round < 500; ++round) {
        std::vector<std::int32_t> counts(random() % 20);
        for (auto& count : counts)
            count = random() % 3 ? static_cast<std::int32_t>(random() % 300) : 0;
        const auto alignment = static_cast<std::int32_t>(1 + random() % 130);
        const Endpoints e = scan(counts, alignment);
        std::int64_t before = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            ASSERT_EQ(e.start[i], before);
            ASSERT_EQ(e.end[i], before + counts[i]);
            ASSERT_EQ(e.start[i] % alignment, 0);
            before += align_up(counts[i], alignment);
        }
    }
}

// Visits every way to give `pairs` distinct-expert picks of n tokens to L experts: counts are any
// vector with entries <= n whose sum is <= n*min(K, L).
void worst_rows(std::vector<std::int32_t>& counts, std::size_t e, std::int64_t left, std::int64_t n,
                std::int32_t alignment, std::int64_t& worst) {
    if (e == counts.size()) {
        worst = std::max(worst, align_up(scan(counts, alignment).last, alignment));
        return;
    }
    for (std::int64_t count = 0; count <= std::min(n, left); ++count) {
        counts[e] = static_cast<std::int32_t>(count);
        worst_rows(counts, e + 1, left - count, n, alignment, worst);
    }
}

TEST(Endpoints, CapacityIsTheWorstCaseExactly) {
    for (std::int64_t n = 0; n <= 4; ++n)
        for (std::int64_t per_token = 1; per_token <= 3; ++per_token)
            for (std::int64_t local = 1; local <= 4; ++local)
                for (std::int32_t alignment : {1, 2, 3, 4, 8}) {
                    std::vector<std::int32_t> counts(static_cast<std::size_t>(local));
                    std::int64_t worst = 0;
                    worst_rows(counts, 0, n * std::min(per_token, local), n, alignment, worst);
                    EXPECT_EQ(rows_capacity(n, per_token, local, alignment), worst)
                        << "n=" << n << " K=" << per_token << " L=" << local << " A=" << alignment;
                }
}

TEST(Endpoints, CapacityOfPublishedModels) {
    EXPECT_EQ(rows_capacity(1, 8, 256, 1), 8);
    EXPECT_EQ(rows_capacity(1, 8, 256, 128), 8 * 128);
    EXPECT_EQ(rows_capacity(512, 8, 256, 1), 4096);
    // 4096 pairs and 256 gaps of 127 rows, down to a multiple of 128.
    EXPECT_EQ(rows_capacity(512, 8, 256, 128), (4096 + 256 * 127) / 128 * 128);
    EXPECT_EQ(rows_capacity(64, 10, 2, 16), 2 * 64);
}

TEST(Endpoints, CompactAndTightBounds) {
    EXPECT_EQ(compact_rows(2, 128, 1), 128);
    EXPECT_EQ(compact_rows(64, 256, 6), 1536);
    EXPECT_EQ(compact_rows(4, 256, 6), 1024);
    EXPECT_EQ(tight_rows(8, 32, 6), 1536);
}

} // namespace
} // namespace lr::experts
