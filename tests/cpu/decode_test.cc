// SPDX-License-Identifier: Apache-2.0
#include "cpu/decode.h"
#include "numerics/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace lr::cpu {
namespace {

// Every code of the dtype, at an odd address, for lengths around the run of 8.
void expect_same_as_convert(DType dtype, std::int64_t codes) {
    const std::int64_t bytes = dtype_bytes(dtype, codes);
    std::vector<std::byte> memory(static_cast<std::size_t>(bytes) + 1);
    for (std::int64_t i = 0; i < codes; ++i) {
        std::byte* code = memory.data() + 1;
        if (dtype == DType::kE2M1)
            code[i / 2] |= static_cast<std::byte>((i & 0xF) << (i % 2 * 4));
        else
            std::memcpy(code + dtype_bytes(dtype, i), &i,
                        static_cast<std::size_t>(dtype_bytes(dtype, 1)));
    }
    for (std::int64_t count :
         {codes, codes - 2, std::int64_t{22}, std::int64_t{6}, std::int64_t{0}}) {
        std::vector<float> expected(static_cast<std::size_t>(count) + 1, 7.0f);
        std::vector<float> got = expected;
        numerics::decode_to_f32(dtype, memory.data() + 1, count, expected.data());
        decode_row(dtype, memory.data() + 1, count, got.data());
        for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_TRUE(std::memcmp(&got[i], &expected[i], 4) == 0 ||
                        (std::isnan(got[i]) && std::isnan(expected[i])))
                << dtype_name(dtype) << " code " << i << ": " << got[i] << " vs " << expected[i];
    }
}

TEST(Decode, EveryCodeHasTheBitsOfTheCodec) {
    expect_same_as_convert(DType::kBF16, 65536);
    expect_same_as_convert(DType::kF16, 65536);
    expect_same_as_convert(DType::kE4M3, 256);
    expect_same_as_convert(DType::kE2M1, 32);
}

} // namespace
} // namespace lr::cpu
