// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "experts/endpoints.h"
#include "ops/experts/routing_indices.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <random>

namespace lr::ops {
namespace {

struct Case {
    GuardedTensor ids, counts, start, end, row_map, row_of, n_live{DType::kI32, {1}};
    RoutingIndicesArgs args;

    Case(std::int64_t n, std::int64_t k, std::int64_t local, std::int32_t align)
        : ids(DType::kI32, {n, k}), counts(DType::kI32, {local}), start(DType::kI32, {local}),
          end(DType::kI32, {local}),
          row_map(DType::kI32, {experts::rows_capacity(n, k, local, align)}),
          row_of(DType::kI32, {n * k}) {
        n_live.set(0, static_cast<double>(n));
        args.ids = ids;
        args.n_live = n_live;
        args.counts = counts;
        args.start = start;
        args.end = end;
        args.row_map = row_map;
        args.row_of = row_of;
        args.align = align;
    }
    void run() {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(1);
        for (GuardedTensor* out : {&counts, &start, &end, &row_map, &row_of})
            for (std::int64_t i = 0; i < out->count(); ++i)
                out->set(i, 0x7FFFFFFF);
        cpu::routing_indices(args, pool);
        for (GuardedTensor* out : {&counts, &start, &end, &row_map, &row_of})
            EXPECT_TRUE(out->guards_intact());
    }
};

std::vector<double> values(GuardedTensor& tensor) {
    std::vector<double> out;
    for (std::int64_t i = 0; i < tensor.count(); ++i)
        out.push_back(tensor.at(i));
    return out;
}

TEST(RoutingIndices, PlacesPairsInAscendingOrderOfTheirExperts) {
    Case c(3, 2, 3, 4);
    c.ids.set_all({2, 0, 0, 2, 2, 0}); // expert 1 is empty
    c.run();
    EXPECT_EQ(values(c.counts), (std::vector<double>{3, 0, 3}));
    EXPECT_EQ(values(c.start), (std::vector<double>{0, 4, 4}));
    EXPECT_EQ(values(c.end), (std::vector<double>{3, 4, 7}));
    EXPECT_EQ(values(c.row_map), (std::vector<double>{1, 2, 5, -1, 0, 3, 4, -1, -1, -1, -1, -1}));
    EXPECT_EQ(values(c.row_of), (std::vector<double>{4, 0, 1, 5, 6, 2}));
}

TEST(RoutingIndices, ForeignExpertsAndDeadRowsHaveNoRow) {
    Case c(4, 2, 2, 1);
    c.args.first_expert = 4; // this rank holds 4 and 5
    c.n_live.set(0, 3);
    c.ids.set_all({5, 0, 7, 4, -1, 5, 4, 5}); // the last token is dead
    c.run();
    EXPECT_EQ(values(c.counts), (std::vector<double>{1, 2}));
    EXPECT_EQ(values(c.end), (std::vector<double>{1, 3}));
    EXPECT_EQ(values(c.row_map), (std::vector<double>{3, 0, 5, -1, -1, -1, -1, -1}));
    EXPECT_EQ(values(c.row_of), (std::vector<double>{1, -1, -1, 0, -1, 2, -1, -1}));
}

TEST(RoutingIndices, NothingLiveGivesEmptyExperts) {
    Case c(4, 2, 3, 8);
    c.n_live.set(0, 0); // ids stay poison: a read would be out of range or count
    c.ids.poison(0, 4);
    c.run();
    EXPECT_EQ(values(c.counts), (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(values(c.end), (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(values(c.row_of), std::vector<double>(8, -1));
    EXPECT_EQ(values(c.row_map),
              std::vector<double>(static_cast<std::size_t>(c.row_map.count()), -1));
}

TEST(RoutingIndices, MapsAreInverseAndRowsStayInsideTheCapacity) {
    std::mt19937 random(3);
    for (int round = 0; round < 60; ++round) {
        const std::int64_t experts_total = 1 + random() % 16;
        const std::int64_t local = 1 + random() % experts_total;
        const std::int64_t k = 1 + random() % std::min<std::int64_t>(4, experts_total);
        const std::int64_t n = 1 + random() % 20;
        Case c(n, k, local, static_cast<std::int32_t>(1 + random() % 9));
        c.args.first_expert = static_cast<std::int32_t>(random() % (experts_total - local + 1));
        for (std::int64_t t = 0; t < n; ++t) { // K distinct experts: a rotated run
            const std::int64_t first = round % 3 ? random() % experts_total : 0;
            for (std::int64_t slot = 0; slot < k; ++slot)
                c.ids.set(t * k + slot, static_cast<double>((first + slot) % experts_total));
        }
        c.run();
        for (std::int64_t e = 0; e < local; ++e)
            for (double row = c.start.at(e), before = -1; row < c.end.at(e); ++row) {
                const double flat = c.row_map.at(static_cast<std::int64_t>(row));
                ASSERT_GT(flat, before);
                before = flat;
                ASSERT_EQ(c.ids.at(static_cast<std::int64_t>(flat)), e + c.args.first_expert);
                ASSERT_EQ(c.row_of.at(static_cast<std::int64_t>(flat)), row);
            }
        double placed = 0, mapped = 0;
        for (std::int64_t e = 0; e < local; ++e)
            placed += c.counts.at(e);
        for (double row : values(c.row_of))
            mapped += row >= 0;
        ASSERT_EQ(placed, mapped);
    }
}

TEST(RoutingIndices, HandsTheWeightsOfLiveRowsOn) {
    Case c(3, 2, 4, 1);
    GuardedTensor weights(DType::kBF16, {3, 2}), out(DType::kBF16, {3, 2});
    weights.set_all({0.75, 0.25, 0.5, 0.5}); // row 2 stays NaN
    c.ids.set_all({0, 1, 2, 3});
    c.n_live.set(0, 2);
    c.args.weights = weights;
    EXPECT_EQ(check(c.args).message(),
              "routing_indices: weights and weights_out: expected both or neither, got one");
    c.args.weights_out = out;
    c.run();
    EXPECT_EQ(values(out), (std::vector<double>{0.75, 0.25, 0.5, 0.5, 0, 0}));
    EXPECT_TRUE(out.guards_intact());
}

TEST(RoutingIndices, RefusesWrongShapes) {
    Case c(4, 2, 3, 8);
    RoutingIndicesArgs args = c.args;
    args.row_of.shape[0] = 7;
    EXPECT_EQ(check(args).message(), "routing_indices: row_of dim 0: expected 8, got 7");
    args = c.args;
    args.align = 0;
    EXPECT_EQ(check(args).message(), "routing_indices: align: expected >= 1, got 0");
    args = c.args;
    args.end.shape[0] = 4;
    EXPECT_EQ(check(args).message(), "routing_indices: end dim 0: expected L=3, got 4");
}

TEST(RoutingIndicesDeathTest, TooSmallACapacityIsACallerBug) {
    Case c(2, 1, 1, 1);
    c.ids.set_all({0, 0});
    c.args.row_map.shape[0] = 1;
    ThreadPool pool(1);
    EXPECT_DEATH(cpu::routing_indices(c.args, pool), "last <= rows");
}

} // namespace
} // namespace lr::ops
