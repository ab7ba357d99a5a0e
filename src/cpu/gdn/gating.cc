// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/gates.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

namespace lr::cpu {

void gating(const ops::GatingArgs& args, ThreadPool& pool) {
    const std::int64_t heads = args.g.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.g.rows());
    zero_rows(args.g, live);
    zero_rows(args.beta, live);
    pool.parallel_for(live, 16, [&](std::int64_t begin, std::int64_t end) {
        float* b = thread_scratch(0, 4 * heads);
        float* a = b + heads;
        float* a_log = a + heads;
        float* dt_bias = a_log + heads;
        load_floats(args.a_log, 0, 0, heads, a_log);
        load_floats(args.dt_bias, 0, 0, heads, dt_bias);
        for (std::int64_t row = begin; row < end; ++row) {
            load_floats(args.ba, row, 0, 2 * heads, b);
            float* g = args.g.row_as<float>(row);
            float* beta = args.beta.row_as<float>(row);
            for (std::int64_t h = 0; h < heads; ++h) {
                g[h] = gdn::log_decay(a[h], a_log[h], dt_bias[h]);
                beta[h] = gdn::write_strength(b[h], args.precision);
            }
        }
    });
}

} // namespace lr::cpu
