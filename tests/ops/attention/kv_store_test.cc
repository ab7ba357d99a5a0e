// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/attention/attention.h"
#include "ops/attention/kv_store.h"
#include "tests/ops/guarded_tensor.h"

#include <gtest/gtest.h>

namespace lr::ops {
namespace {

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 2 * 6; // Hkv * dh

struct Case {
    GuardedTensor k, v, k_cache, v_cache;
    GuardedTensor kv_slot{DType::kI64, {kRows}};
    GuardedTensor n_live{DType::kI32, {1}};
    KvStoreArgs args;

    Case(DType act, DType cache)
        : k(act, {kRows, 2, 6}), v(act, {kRows, 2, 6}, 40), k_cache(cache, {3, 64, 2, 6}),
          v_cache(cache, {3, 64, 2, 6}) {
        k.fill("k", 1.0);
        v.fill("v", 1.0);
        kv_slot.set_all({64 + 63, 0, -1, 128, 2});
        n_live.set(0, 4);
        kv_slot.set(4, 12345678); // dead
        k.poison(4, 1);
        v.poison(4, 1);
        args = {.k = k,
                .v = v,
                .kv_slot = kv_slot,
                .n_live = n_live,
                .k_cache = k_cache,
                .v_cache = v_cache};
    }
    void run() {
        ASSERT_TRUE(check(args).ok()) << check(args).message();
        ThreadPool pool(2);
        cpu::kv_store(args, pool);
    }
};

TEST(KvStore, WritesEachTokenToItsSlotAndNothingElse) {
    Case c(DType::kBF16, DType::kBF16);
    Case untouched(DType::kBF16, DType::kBF16);
    c.run();
    const std::vector<std::pair<std::int64_t, std::int64_t>> stored = {{0, 127}, {1, 0}, {3, 128}};
    for (const auto& [row, slot] : stored)
        for (std::int64_t j = 0; j < kWidth; ++j) {
            EXPECT_EQ(c.k_cache.at(slot * kWidth + j), c.k.at(row * kWidth + j));
            EXPECT_EQ(c.v_cache.at(slot * kWidth + j), c.v.at(row * kWidth + j));
            // Back to what it was, so that one comparison covers every other byte.
            untouched.k_cache.set(slot * kWidth + j, c.k.at(row * kWidth + j));
            untouched.v_cache.set(slot * kWidth + j, c.v.at(row * kWidth + j));
        }
    EXPECT_EQ(c.k_cache.all_bytes(), untouched.k_cache.all_bytes());
    EXPECT_EQ(c.v_cache.all_bytes(), untouched.v_cache.all_bytes());
}

TEST(KvStore, RoundsOnceIntoANarrowerCache) {
    Case c(DType::kF32, DType::kBF16);
    c.run();
    EXPECT_EQ(c.k_cache.at(3), numerics::round_bf16(static_cast<float>(c.k.at(kWidth + 3))));
}

TEST(KvStoreDeathTest, RefusesASlotOutsideTheCache) {
    Case c(DType::kBF16, DType::kBF16);
    c.kv_slot.set(0, 3 * 64);
    ThreadPool pool(1);
    EXPECT_DEATH(cpu::kv_store(c.args, pool), "slot < slots: 192 vs 192");
}

TEST(KvStore, RefusesWrongShapes) {
    Case c(DType::kBF16, DType::kBF16);
    KvStoreArgs args = c.args;
    args.k_cache.shape[1] = 16;
    EXPECT_EQ(check(args).message(), "kv_store: k_cache dim 1: expected 64, got 16");
    args = c.args;
    args.v_cache.dtype = DType::kF32;
    EXPECT_EQ(check(args).message(), "kv_store: v_cache: expected dtype bf16, got f32");
    args = c.args;
    args.kv_slot.dtype = DType::kI32;
    EXPECT_EQ(check(args).message(), "kv_store: kv_slot: expected dtype i64, got i32");
    args = c.args;
    args.v.shape[1] = 1;
    EXPECT_EQ(check(args).message(), "kv_store: v dim 1: expected Hkv=2, got 1");
}

TEST(KvStore, CountsTheTokensItWrites) {
    const Case c(DType::kF32, DType::kBF16);
    const Cost expected{.read_bytes = 2 * kRows * kWidth * 4 + kRows * 8 + 4,
                        .write_bytes = 2 * kRows * kWidth * 2};
    EXPECT_EQ(cost(c.args), expected);
}

} // namespace
} // namespace lr::ops
