// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_values.h"
#include "numerics/e4m3.h"
#include "tests/checkpoint/files.h"

#include <cmath>

namespace lr::checkpoint {
namespace {

StoredWeight nvfp4(const TensorInfo& scale) {
    return {StoredFormat::kNvfp4ModelOpt, {}, nullptr, &scale};
}

// Every code at every place of lengths around the 8 and the 64 that are looked at together.
TEST(QuantValues, FindsEveryBadE4M3ScaleAtEveryPlace) {
    for (const std::int64_t length : {1, 7, 8, 9, 17, 63, 64, 65, 130})
        for (std::int64_t place = 0; place < length; ++place)
            for (int code = 0; code < 256; ++code) {
                std::vector<std::uint8_t> codes(static_cast<std::size_t>(length), 0x7E);
                codes[static_cast<std::size_t>(place)] = static_cast<std::uint8_t>(code);
                const TensorInfo scale{"s",
                                       "F8_E4M3",
                                       DType::kE4M3,
                                       {length},
                                       reinterpret_cast<const std::byte*>(codes.data()),
                                       length};
                ScaleCounts counts;
                const Status status = check_scales(nvfp4(scale), counts);
                const float value = numerics::decode_e4m3(static_cast<std::uint8_t>(code));
                ASSERT_EQ(status.ok(), value >= 0) << code << " at " << place;
                if (status.ok()) {
                    ASSERT_EQ(counts.zeros, value == 0) << code << " at " << place;
                    ASSERT_EQ(counts.scales, length);
                } else {
                    ASSERT_TRUE(status.message().ends_with(fmt::format(" at [{}]", place)))
                        << status.message();
                }
            }
}

TEST(QuantValues, TheFirstBadScaleIsNamedByItsIndex) {
    std::vector<std::uint8_t> codes(24, 0x38);
    codes[13] = 0xB8;
    codes[14] = 0x7F;
    const TensorInfo scale{
        "s", "F8_E4M3", DType::kE4M3, {2, 12}, reinterpret_cast<const std::byte*>(codes.data()),
        24};
    ScaleCounts counts;
    expect_error(check_scales(nvfp4(scale), counts), Code::kInvalidFile,
                 {"tensor 's': expected finite scales >= 0, got -1 at [1, 1]"});
}

TEST(QuantValues, FactorsKeepTheirDirection) {
    const float g = 2688.0f;
    const TensorInfo factor{"g", "F32", DType::kF32, {1}, reinterpret_cast<const std::byte*>(&g),
                            4};
    StoredWeight weight{StoredFormat::kNvfp4Compressed, {2, 16}, nullptr, nullptr, &factor};
    weight.input_scale = &factor;
    EXPECT_EQ(weight.decode_factor(0), 1.0f / g);
    EXPECT_EQ(*static_input_scale(weight), 1.0f / g);
    weight.format = StoredFormat::kNvfp4ModelOpt;
    EXPECT_EQ(weight.decode_factor(0), g);
    EXPECT_EQ(*static_input_scale(weight), g);
}

} // namespace
} // namespace lr::checkpoint
