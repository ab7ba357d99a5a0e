// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"

#include <gtest/gtest.h>

#include <array>

namespace lr {
namespace {

struct Expected {
    DType dtype;
    const char* name;
    int bits;
};

constexpr std::array kAll = {
    Expected{DType::kF32, "f32", 32},  Expected{DType::kBF16, "bf16", 16},
    Expected{DType::kF16, "f16", 16},  Expected{DType::kE4M3, "e4m3", 8},
    Expected{DType::kE2M1, "e2m1", 4}, Expected{DType::kUE8M0, "ue8m0", 8},
    Expected{DType::kU8, "u8", 8},     Expected{DType::kI32, "i32", 32},
    Expected{DType::kI64, "i64", 64},  Expected{DType::kU16, "u16", 16},
    Expected{DType::kF64, "f64", 64},
};

TEST(DType, KnowsNameAndWidthOfEveryType) {
    for (const Expected& expected : kAll) {
        EXPECT_EQ(dtype_name(expected.dtype), expected.name);
        EXPECT_EQ(dtype_bits(expected.dtype), expected.bits) << expected.name;
        EXPECT_EQ(dtype_from_name(expected.name), expected.dtype);
    }
}

TEST(DType, RejectsNamesThatAreNotOurs) {
    for (const char* name : {"", "BF16", "fp32", "f32 ", "float"})
        EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
}

TEST(DType, CountsBytesOfDenseElements) {
    EXPECT_EQ(dtype_bytes(DType::kF32, 3), 12);
    EXPECT_EQ(dtype_bytes(DType::kBF16, 3), 6);
    EXPECT_EQ(dtype_bytes(DType::kE4M3, 3), 3);
    EXPECT_EQ(dtype_bytes(DType::kE2M1, 6), 3);
    EXPECT_EQ(dtype_bytes(DType::kI64, 0), 0);
    EXPECT_EQ(dtype_bytes(DType::kF32, std::int64_t{1} << 40), std::int64_t{1} << 42);
}

TEST(DType, CallsThreeTypesFloat) {
    int floats = 0;
    for (const Expected& expected : kAll)
        floats += is_float(expected.dtype) ? 1 : 0;
    EXPECT_EQ(floats, 3);
    EXPECT_TRUE(is_float(DType::kF16));
    EXPECT_FALSE(is_float(DType::kE4M3));
}

TEST(DTypeDeathTest, RefusesHalfAByte) {
    EXPECT_DEATH(dtype_bytes(DType::kE2M1, 3), "check failed: bits % 8 == 0: 4 vs 0");
}

} // namespace
} // namespace lr
