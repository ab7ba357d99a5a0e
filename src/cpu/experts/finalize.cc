// SPDX-License-Identifier: Apache-2.0
#include "cpu/experts/experts.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {

void finalize(const ops::FinalizeArgs& args, ThreadPool& pool) {
    const std::int64_t d = args.y.shape[1];
    const std::int64_t k = args.weights.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.y.rows());
    zero_rows(args.y, live);
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        float* sums = thread_scratch(0, d);
        float* row = thread_scratch(1, d);
        float* weights = thread_scratch(2, k);
        for (std::int64_t t = begin; t < end; ++t) {
            std::fill_n(sums, d, 0.0f);
            load_floats(args.weights, t, 0, k, weights);
            for (std::int64_t slot = 0; slot < k; ++slot) {
                const std::int32_t from = int_at(args.row_of, t * k + slot);
                if (from < 0)
                    continue;
                load_floats(args.z, from, 0, d, row);
                for (std::int64_t i = 0; i < d; ++i)
                    sums[i] += weights[slot] * row[i];
            }
            store_floats(args.y, t, 0, d, sums);
        }
    });
}

} // namespace lr::cpu
