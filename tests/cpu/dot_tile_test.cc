// SPDX-License-Identifier: Apache-2.0
#include "cpu/dot_tile.h"
#include "cpu/rows.h"
#include "tests/cpu/plain_dot.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace lr::cpu {
namespace {

std::vector<float> random_floats(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values)
        value = normal(random);
    return values;
}

TEST(DotTile, EveryInstructionSetAndTileGivesTheBitsOfTheDefinition) {
    for (std::int64_t count : {0, 1, 15, 16, 17, 63, 64, 100, 257}) {
        const std::int64_t stride = count + 3;
        const auto x = random_floats(static_cast<std::size_t>(9 * stride), 1);
        const auto w = random_floats(static_cast<std::size_t>(11 * stride), 2);
        for (const DotKernels& kernels : dot_kernels())
            for (std::int64_t rows : {1, 3, 4, 5, 9})
                for (std::int64_t columns : {1, 2, 4, 7, 11}) {
                    std::vector<float> out(static_cast<std::size_t>(rows * 12), -1.0f);
                    dot_tile_with(kernels, x.data(), stride, rows, w.data(), stride, columns, count,
                                  out.data(), 12);
                    for (std::int64_t i = 0; i < rows; ++i)
                        for (std::int64_t j = 0; j < 12; ++j) {
                            const float expected =
                                j < columns
                                    ? plain_dot(x.data() + i * stride, w.data() + j * stride, count)
                                    : -1.0f;
                            const float got = out[static_cast<std::size_t>(i * 12 + j)];
                            ASSERT_EQ(std::memcmp(&got, &expected, 4), 0)
                                << kernels.name << " " << rows << "x" << columns << "x" << count
                                << " at " << i << "," << j << ": " << got << " vs " << expected;
                        }
                }
    }
}

TEST(DotTile, DotIsTheSameFunction) {
    const auto x = random_floats(1000, 3);
    const auto w = random_floats(1000, 4);
    for (std::int64_t count : {1, 16, 31, 128, 1000}) {
        EXPECT_EQ(dot(x.data(), w.data(), count), plain_dot(x.data(), w.data(), count));
        EXPECT_EQ(dot_one(x.data(), w.data(), count), plain_dot(x.data(), w.data(), count));
    }
}

TEST(DotTile, CarriesNaN) {
    std::vector<float> x(64, 1.0f), w(64, 1.0f);
    x[37] = NAN;
    for (const DotKernels& kernels : dot_kernels()) {
        float out = 0;
        dot_tile_with(kernels, x.data(), 64, 1, w.data(), 64, 1, 64, &out, 1);
        EXPECT_TRUE(std::isnan(out)) << kernels.name;
    }
}

} // namespace
} // namespace lr::cpu
