// SPDX-License-Identifier: Apache-2.0
#include "numerics/weight_format.h"

#include <gtest/gtest.h>

namespace lr::numerics {
namespace {

TEST(WeightFormat, EveryNameLeadsBackToItsFormat) {
    for (WeightFormat format :
         {WeightFormat::kPlain, WeightFormat::kFp8Block, WeightFormat::kFp8Channel,
          WeightFormat::kFp8Tensor, WeightFormat::kNvfp4})
        EXPECT_EQ(weight_format_from_name(weight_format_name(format)), format);
    EXPECT_EQ(weight_format_name(WeightFormat::kFp8Block), "fp8-block");
    EXPECT_FALSE(weight_format_from_name("int4").has_value());
}

// The in_proj_qkvz weight of the 397B model on one of two ranks, and a router-sized corner.
TEST(WeightFormat, BytesAreThoseOfReleasedFiles) {
    auto bytes = [](WeightFormat format) {
        return weight_format_bytes(format, DType::kBF16, 10240, 4096);
    };
    EXPECT_EQ(bytes(WeightFormat::kPlain), 83'886'080);
    EXPECT_EQ(bytes(WeightFormat::kFp8Channel), 41'984'000);
    EXPECT_EQ(bytes(WeightFormat::kFp8Block), 41'948'160);
    EXPECT_EQ(bytes(WeightFormat::kFp8Tensor), 41'943'040);
    EXPECT_EQ(bytes(WeightFormat::kNvfp4), 23'592'960);
    EXPECT_EQ(weight_format_bytes(WeightFormat::kPlain, DType::kF32, 3, 5), 60);
    EXPECT_EQ(weight_format_bytes(WeightFormat::kFp8Block, DType::kBF16, 129, 16), 129 * 16 + 4)
        << "a partial block has a scale too";
}

} // namespace
} // namespace lr::numerics
