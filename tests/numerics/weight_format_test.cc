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

// Scales as the table of the header has them, at odd edges too.
TEST(WeightFormat, ScalesHaveTheirShapes) {
    EXPECT_EQ(weight_scale_shape(WeightFormat::kPlain, 129, 48), Shape());
    EXPECT_EQ(weight_scale_shape(WeightFormat::kFp8Tensor, 129, 48), Shape());
    EXPECT_EQ(weight_scale_shape(WeightFormat::kFp8Block, 129, 48), (Shape{2, 1}));
    EXPECT_EQ(weight_scale_shape(WeightFormat::kFp8Channel, 129, 48), (Shape{129}));
    EXPECT_EQ(weight_scale_shape(WeightFormat::kNvfp4, 129, 48), (Shape{129, 3}));
    EXPECT_EQ(weight_scale_dtype(WeightFormat::kFp8Block), DType::kBF16);
    EXPECT_EQ(weight_scale_dtype(WeightFormat::kFp8Channel), DType::kF32);
    EXPECT_EQ(weight_scale_dtype(WeightFormat::kNvfp4), DType::kE4M3);
    EXPECT_EQ(weight_data_dtype(WeightFormat::kPlain, DType::kF16), DType::kF16);
    EXPECT_EQ(weight_data_dtype(WeightFormat::kFp8Tensor, DType::kF16), DType::kE4M3);
    EXPECT_EQ(weight_data_dtype(WeightFormat::kNvfp4, DType::kF16), DType::kE2M1);
}

} // namespace
} // namespace lr::numerics
