// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/gdn.h"
#include "ops/gdn/initial_state_mask.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

TEST(InitialStateMask, IsOneWhereSomePrefixIsStored) {
    GuardedTensor prefix_len(DType::kI32, {4}), mask(DType::kI32, {4});
    prefix_len.set_all({0, 1, 8192, 0});
    const InitialStateMaskArgs args{.prefix_len = prefix_len, .mask = mask};
    ASSERT_TRUE(check(args).ok());
    ThreadPool pool(1);
    cpu::initial_state_mask(args, pool);
    EXPECT_EQ(mask.at(0), 0);
    EXPECT_EQ(mask.at(1), 1);
    EXPECT_EQ(mask.at(2), 1);
    EXPECT_EQ(mask.at(3), 0);
    EXPECT_TRUE(mask.guards_intact());
    EXPECT_EQ(cost(args).bytes(), 8 * 4);
}

TEST(InitialStateMask, RefusesShapesThatDisagree) {
    GuardedTensor prefix_len(DType::kI32, {4}), mask(DType::kI32, {5});
    EXPECT_EQ(check(InitialStateMaskArgs{.prefix_len = prefix_len, .mask = mask}).message(),
              "initial_state_mask: mask dim 0: expected B=4, got 5");
}

} // namespace
} // namespace lr::ops
