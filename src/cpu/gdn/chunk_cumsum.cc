// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/chunk.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

namespace lr::cpu {

void chunk_cumsum(const ops::ChunkCumsumArgs& args, ThreadPool& pool) {
    const std::int64_t n = args.g.rows();
    const std::int64_t heads = args.g.shape[1];
    pool.parallel_for(args.chunk_row.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin; c < end; ++c) {
            const gdn::Chunk chunk = gdn::chunk_at(args.chunk_row, args.chunk_len, c, n);
            for (std::int64_t h = 0; h < heads; ++h) {
                float sum = 0;
                for (std::int64_t i = 0; i < chunk.length; ++i) {
                    sum += args.g.row_as<float>(chunk.row + i)[h];
                    args.g_cumsum.row_as<float>(chunk.row + i)[h] = sum;
                }
            }
        }
    });
    zero_rows(args.g_cumsum, live_rows(args.n_live, n));
}

} // namespace lr::cpu
