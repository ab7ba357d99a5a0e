// SPDX-License-Identifier: Apache-2.0
#include "cpu/gdn/gdn.h"
#include "ops/gdn/chunk_cumsum.h"
#include "tests/ops/gdn/gdn_case.h"

namespace lr::ops {
namespace {

using namespace gdn_test;

constexpr std::int64_t kHv = 3;

struct Case {
    Packed batch;
    GuardedTensor g, g_cumsum;
    ChunkCumsumArgs args;

    explicit Case(const std::vector<std::int64_t>& lengths)
        : batch(lengths, std::vector<int>(lengths.size(), 0), std::vector<int>(lengths.size(), 0)),
          g(DType::kF32, {batch.n, kHv}), g_cumsum(DType::kF32, {batch.n, kHv}) {
        fill_rows(g, "g", 1.0, batch.live);
        args = {.g = g,
                .chunk_row = batch.chunk_row,
                .chunk_len = batch.chunk_len,
                .n_live = batch.n_live,
                .g_cumsum = g_cumsum};
    }
    Case(const Case&) = delete;
    void run(int threads = 1) { run_op(cpu::chunk_cumsum, args, threads); }
};

TEST(ChunkCumsum, RestartsAtEachChunk) {
    Case c({130, 5, 64});
    c.run();
    for (std::int64_t chunk = 0; chunk < c.batch.chunks; ++chunk)
        for (std::int64_t h = 0; h < kHv; ++h) {
            double sum = 0, magnitude = 0;
            for (std::int64_t i = 0; i < c.batch.length_of(chunk); ++i) {
                const std::int64_t at = (c.batch.row_of(chunk) + i) * kHv + h;
                sum += c.g.at(at);
                magnitude += std::abs(c.g.at(at));
                EXPECT_TRUE(
                    near(c.g_cumsum.at(at), sum, static_cast<double>(i) * kF32Error * magnitude))
                    << chunk << " " << i;
            }
        }
    for (std::int64_t row = c.batch.live; row < c.batch.n; ++row)
        EXPECT_TRUE(c.g_cumsum.row_is_zero(row));
    EXPECT_TRUE(c.g_cumsum.guards_intact());
    EXPECT_EQ(c.g_cumsum.row_bits(64), c.g.row_bits(64));   // the second chunk's first row
    EXPECT_EQ(c.g_cumsum.row_bits(130), c.g.row_bits(130)); // the second sequence's
}

TEST(ChunkCumsum, BitsDoNotDependOnThreadsAndOutputMayBeG) {
    Case one({130, 5, 64}), two({130, 5, 64}), aliased({130, 5, 64});
    one.run();
    two.run(2);
    EXPECT_EQ(one.g_cumsum.all_bytes(), two.g_cumsum.all_bytes());
    aliased.args.g_cumsum = aliased.g;
    aliased.run();
    EXPECT_EQ(one.g_cumsum.all_bytes(), aliased.g.all_bytes());
}

TEST(ChunkCumsum, RefusesShapesThatDisagree) {
    Case c({5});
    ChunkCumsumArgs bad = c.args;
    bad.chunk_len.shape[0] = 2;
    EXPECT_EQ(check(bad).message(), "chunk_cumsum: chunk_len dim 0: expected NC=3, got 2");
    bad = c.args;
    bad.g.dtype = DType::kBF16;
    EXPECT_EQ(check(bad).message(), "chunk_cumsum: g: expected dtype f32, got bf16");
}

TEST(ChunkCumsumDeathTest, StopsAtAChunkOutsideTheBatch) {
    Case c({5});
    c.batch.chunk_len.set(0, 65);
    EXPECT_DEATH(c.run(), "65 vs 64");
    c.batch.chunk_len.set(0, 60);
    EXPECT_DEATH(c.run(), "60 vs 8");
}

} // namespace
} // namespace lr::ops
