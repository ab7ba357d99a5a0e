// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include <gtest/gtest.h>

namespace lr {
namespace {

TEST(Check, PassesInSilenceWhenTheConditionHolds) {
    LR_CHECK(true);
    LR_CHECK_EQ(2 + 2, 4);
    LR_CHECK_NE(1, 2);
    LR_CHECK_LT(1, 2);
    LR_CHECK_LE(2, 2);
    LR_CHECK_GT(2, 1);
    LR_CHECK_GE(2, 2);
    LR_DCHECK(true);
}

TEST(Check, EvaluatesEachOperandOnce) {
    int calls = 0;
    const auto next = [&calls] { return ++calls; };
    LR_CHECK_EQ(next(), 1);
    LR_CHECK(next() == 2);
    EXPECT_EQ(calls, 2);
}

TEST(CheckDeathTest, NamesTheExpressionAndThePlace) {
    EXPECT_DEATH(LR_CHECK(1 > 2),
                 "liverow: internal error at .*check_test.cc:[0-9]+: check failed: 1 > 2");
}

TEST(CheckDeathTest, PrintsBothValues) {
    const int rows = 3;
    EXPECT_DEATH(LR_CHECK_EQ(rows, 4), "check failed: rows == 4: 3 vs 4");
    EXPECT_DEATH(LR_CHECK_LT(rows, 2), "check failed: rows < 2: 3 vs 2");
}

} // namespace
} // namespace lr
