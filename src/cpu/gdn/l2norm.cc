// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

#include <cmath>

namespace lr::cpu {

void l2norm(const ops::L2normArgs& args, ThreadPool& pool) {
    const std::int64_t heads = args.x.shape[1];
    const std::int64_t width = args.x.shape[2];
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    zero_rows(args.y, live);
    pool.parallel_for(live * heads, 16, [&](std::int64_t begin, std::int64_t end) {
        float* x = thread_scratch(0, width);
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t row = item / heads;
            const std::int64_t first = item % heads * width;
            load_floats(args.x, row, first, width, x);
            const float length = std::sqrt(sum_squares(x, width) + ops::kL2NormEps);
            for (std::int64_t i = 0; i < width; ++i)
                x[i] /= length;
            store_floats(args.y, row, first, width, x);
        }
    });
}

} // namespace lr::cpu
