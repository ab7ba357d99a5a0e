// SPDX-License-Identifier: Apache-2.0
#include "cpu/activation.h"
#include "cpu/experts/experts.h"
#include "cpu/rows.h"

namespace lr::cpu {

void shared_gate_merge(const ops::SharedGateMergeArgs& args, ThreadPool& pool) {
    const std::int64_t d = args.y.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.y.rows());
    zero_rows(args.y, live);
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        float* weight = thread_scratch(0, d);
        float* row = thread_scratch(1, d);
        float* y = thread_scratch(2, d);
        load_floats(args.gate_weight, 0, 0, d, weight);
        for (std::int64_t t = begin; t < end; ++t) {
            load_floats(args.m, t, 0, d, row);
            const float eta = sigmoid(dot(row, weight, d));
            load_floats(args.shared, t, 0, d, row);
            load_floats(args.routed, t, 0, d, y);
            for (std::int64_t i = 0; i < d; ++i)
                y[i] += eta * row[i];
            store_floats(args.y, t, 0, d, y);
        }
    });
}

} // namespace lr::cpu
