// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/operand_rows.h"
#include "cpu/rows.h"

#include <algorithm>

namespace lr::cpu {

void linear_splitk(const ops::LinearSplitkArgs& args, ThreadPool& pool) {
    const WeightRows w(args.w);
    const std::int64_t k = w.columns();
    const std::int64_t n = args.x.rows();
    const std::int64_t live = live_rows(args.n_live, n);
    const std::int64_t splits = args.partial.shape[0];
    const std::int64_t run = ops::splitk_run(k, splits);
    auto* partial = args.partial.as<float>();
    pool.parallel_for(splits * w.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
        float* weights = thread_scratch(0, run);
        float* row = thread_scratch(1, run);
        for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t split = task / w.rows();
            const std::int64_t j = task % w.rows();
            const std::int64_t first = std::min(split * run, k);
            const std::int64_t count = std::min(run, k - first);
            w.decode_plain(j, first, count, weights);
            for (std::int64_t i = 0; i < n; ++i) {
                float sum = 0;
                if (i < live) {
                    load_floats(args.x, i, first, count, row);
                    sum = dot(row, weights, count);
                }
                partial[split * args.partial.row_stride + i * w.rows() + j] = sum;
            }
        }
    });
}

} // namespace lr::cpu
