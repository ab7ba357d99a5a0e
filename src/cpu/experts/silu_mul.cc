// SPDX-License-Identifier: Apache-2.0
#include "cpu/activation.h"
#include "cpu/experts/experts.h"
#include "cpu/rows.h"

namespace lr::cpu {

void silu_mul(const ops::SiluMulArgs& args, ThreadPool& pool) {
    const std::int64_t width = args.y.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.y.rows());
    zero_rows(args.y, live);
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        float* gate_up = thread_scratch(0, 2 * width);
        float* y = thread_scratch(1, width);
        for (std::int64_t t = begin; t < end; ++t) {
            load_floats(args.gate_up, t, 0, 2 * width, gate_up);
            silu_each(gate_up, width, y);
            for (std::int64_t i = 0; i < width; ++i)
                y[i] *= gate_up[width + i];
            store_floats(args.y, t, 0, width, y);
        }
    });
}

} // namespace lr::cpu
