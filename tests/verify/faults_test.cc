// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "verify/compare.h"
#include "verify/faults.h"

namespace lr::verify {
namespace {

// [3, 4]: two rows that a launch wrote, one that it left.
struct Tensor {
    std::vector<float> before = std::vector<float>(12, -7),
                       values = {1, 2, 3, 4, 5, 6, 7, 8, -7, -7, -7, -7};
    std::vector<double> bound = std::vector<double>(12, 0.125);

    View view() { return {reinterpret_cast<std::byte*>(values.data()), DType::kF32, {3, 4}}; }
    std::optional<std::string> put(Fault fault) {
        return put_fault(fault, view(), std::as_bytes(std::span(before)), bound.data());
    }
};

TEST(Faults, EveryKindIsSeenByTheComparison) {
    for (const Fault fault : kFaults) {
        if (fault == Fault::kId)
            continue;
        Tensor right, wrong;
        ASSERT_TRUE(wrong.put(fault)) << fault_name(fault);
        EXPECT_TRUE(compare(right.view(), wrong.view(), right.bound.data()).first)
            << fault_name(fault);
    }
}

TEST(Faults, AreWhatTheirNamesSay) {
    Tensor nan, row, stale, swap, pad, element;
    EXPECT_EQ(nan.put(Fault::kNan), "[1, 0]");
    EXPECT_NE(nan.values[4], nan.values[4]);
    EXPECT_EQ(row.put(Fault::kRow), "row 1");
    EXPECT_EQ(row.values, (std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0, -7, -7, -7, -7}));
    EXPECT_EQ(stale.put(Fault::kStale), "row 1");
    EXPECT_EQ(stale.values, (std::vector<float>{1, 2, 3, 4, -7, -7, -7, -7, -7, -7, -7, -7}));
    EXPECT_EQ(swap.put(Fault::kSwap), "[0, 0]");
    EXPECT_EQ(swap.values[0], 2);
    EXPECT_EQ(pad.put(Fault::kPad), "[2, 3]");
    EXPECT_EQ(pad.values[11], 1);
    EXPECT_EQ(element.put(Fault::kElement), "[1, 0]");
    EXPECT_LT(element.values[4], 5 - 4 * 0.125); // beyond four bounds, and not by far
    EXPECT_GT(element.values[4], 4);
}

TEST(Faults, WhereThereIsNoPlaceNothingIsDone) {
    std::vector<std::int32_t> ids = {3, 3};
    const std::vector<std::int32_t> before = {9, 9};
    const View view{reinterpret_cast<std::byte*>(ids.data()), DType::kI32, {2}};
    const auto bytes = std::as_bytes(std::span(before));
    EXPECT_FALSE(put_fault(Fault::kNan, view, bytes, nullptr));
    EXPECT_FALSE(put_fault(Fault::kSwap, view, bytes, nullptr)); // equal neighbours
    EXPECT_FALSE(put_fault(Fault::kPad, view, bytes, nullptr));
    EXPECT_EQ(ids, (std::vector<std::int32_t>{3, 3}));
    EXPECT_TRUE(put_fault(Fault::kId, view, bytes, nullptr));
    EXPECT_EQ(ids, (std::vector<std::int32_t>{3, 4}));
}

} // namespace
} // namespace lr::verify
