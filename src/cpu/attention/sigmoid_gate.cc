// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/activation.h"
#include "cpu/attention/attention.h"
#include "cpu/rows.h"

namespace lr::cpu {

void sigmoid_gate(const ops::SigmoidGateArgs& args, ThreadPool& pool) {
    const std::int64_t c = args.o.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.o.rows());
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        float* o = thread_scratch(0, c);
        float* gate = thread_scratch(1, c);
        for (std::int64_t i = begin; i < end; ++i) {
            load_floats(args.o, i, 0, c, o);
            load_floats(args.gate, i, 0, c, gate);
            sigmoid_each(gate, c, gate);
            for (std::int64_t j = 0; j < c; ++j)
                o[j] *= gate[j];
            store_floats(args.y, i, 0, c, o);
        }
    });
    zero_rows(args.y, live);
}

} // namespace lr::cpu
