// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "ops/norm/embedding_lookup.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

#include <array>

namespace lr::ops {
namespace {

constexpr std::int64_t kVocab = 7;
constexpr std::int64_t kHidden = 5;

struct Case {
    GuardedTensor ids{DType::kI32, {4}};
    GuardedTensor n_live{DType::kI32, {1}};
    GuardedTensor first;  // rows 0..3 of the table
    GuardedTensor second; // rows 4..6
    GuardedTensor y;
    std::array<WeightPart, 2> parts;
    EmbeddingLookupArgs args;

    explicit Case(DType table, DType out)
        : first(table, {4, kHidden}, 8), second(table, {3, kHidden}), y(out, {4, kHidden}, 6) {
        ids.set_all({6, 0, 3, 4});
        n_live.set(0, 4);
        first.fill("first", 1.0);
        second.fill("second", 1.0);
        parts[0].data = first;
        parts[1].data = second;
        args.ids = ids;
        args.n_live = n_live;
        args.table = {WeightFormat::kPlain, {kVocab, kHidden}, table, parts};
        args.y = y;
    }

    double table_at(std::int64_t row, std::int64_t column) {
        return row < 4 ? first.at(row * kHidden + column) : second.at((row - 4) * kHidden + column);
    }
};

TEST(EmbeddingLookup, CopiesRowsOfAStackedTable) {
    for (DType out : {DType::kBF16, DType::kF32}) {
        Case c(DType::kBF16, out);
        ASSERT_TRUE(check(c.args).ok()) << check(c.args).message();
        ThreadPool pool(2);
        cpu::embedding_lookup(c.args, pool);
        const std::array<std::int64_t, 4> ids = {6, 0, 3, 4};
        for (std::int64_t i = 0; i < 4; ++i)
            for (std::int64_t j = 0; j < kHidden; ++j)
                EXPECT_EQ(c.y.at(i * kHidden + j), c.table_at(ids[static_cast<std::size_t>(i)], j));
        EXPECT_TRUE(c.y.guards_intact());
    }
}

TEST(EmbeddingLookup, RoundsAnF32TableToBf16Rows) {
    Case c(DType::kF32, DType::kBF16);
    ThreadPool pool(1);
    cpu::embedding_lookup(c.args, pool);
    EXPECT_EQ(c.y.at(kHidden), numerics::round_bf16(static_cast<float>(c.table_at(0, 0))));
}

TEST(EmbeddingLookup, ZeroesDeadRowsWithoutReadingTheirIds) {
    Case c(DType::kBF16, DType::kBF16);
    c.n_live.set(0, 2);
    c.ids.set(2, 0x7FFFFFFF);
    c.ids.set(3, -5);
    ThreadPool pool(1);
    cpu::embedding_lookup(c.args, pool);
    EXPECT_FALSE(c.y.row_is_zero(1));
    EXPECT_TRUE(c.y.row_is_zero(2));
    EXPECT_TRUE(c.y.row_is_zero(3));
    EXPECT_TRUE(c.y.guards_intact());
}

TEST(EmbeddingLookup, GivesAFailedRowZeroes) {
    Case c(DType::kBF16, DType::kBF16);
    c.ids.set(1, -1);
    ThreadPool pool(1);
    cpu::embedding_lookup(c.args, pool);
    EXPECT_TRUE(c.y.row_is_zero(1));
    EXPECT_FALSE(c.y.row_is_zero(2));
}

TEST(EmbeddingLookupDeathTest, RefusesAnIdOutsideTheTable) {
    Case c(DType::kBF16, DType::kBF16);
    c.ids.set(1, kVocab);
    ThreadPool pool(1);
    EXPECT_DEATH(cpu::embedding_lookup(c.args, pool), "id < table.rows\\(\\): 7 vs 7");
}

TEST(EmbeddingLookup, RefusesWrongShapesByName) {
    Case c(DType::kBF16, DType::kBF16);
    EmbeddingLookupArgs args = c.args;
    args.table.format = WeightFormat::kFp8Block;
    EXPECT_EQ(check(args).message(),
              "embedding_lookup: table: expected format bf16, got fp8-block");
    args = c.args;
    args.table = {};
    EXPECT_EQ(check(args).message(), "embedding_lookup: table: expected a tensor, got none");
    args = c.args;
    args.y.shape[1] = 4;
    EXPECT_EQ(check(args).message(), "embedding_lookup: y dim 1: expected D=5, got 4");
    args = c.args;
    args.ids.dtype = DType::kI64;
    EXPECT_EQ(check(args).message(), "embedding_lookup: ids: expected dtype i32, got i64");
}

TEST(EmbeddingLookup, CountsOnlyTheRowsItReads) {
    const Cost expected{
        .read_bytes = 4 * 4 + 4 + 4 * 5 * 2, .write_bytes = 4 * 5 * 4, .weight_bytes = 4 * 5 * 2};
    EXPECT_EQ(cost(Case(DType::kBF16, DType::kF32).args), expected);
}

} // namespace
} // namespace lr::ops
