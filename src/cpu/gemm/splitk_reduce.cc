// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {

void splitk_reduce(const ops::SplitkReduceArgs& args, ThreadPool& pool) {
    const std::int64_t columns = args.y.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.y.rows());
    zero_rows(args.y, live);
    pool.parallel_for(live, 8, [&](std::int64_t begin, std::int64_t end) {
        float* sums = thread_scratch(0, columns);
        for (std::int64_t i = begin; i < end; ++i) {
            std::fill_n(sums, columns, 0.0f);
            for (std::int64_t split = 0; split < args.partial.shape[0]; ++split) {
                const float* values = args.partial.row_as<float>(split) + i * columns;
                for (std::int64_t j = 0; j < columns; ++j)
                    sums[j] += values[j];
            }
            store_floats(args.y, i, 0, columns, sums);
        }
    });
}

} // namespace lr::cpu
