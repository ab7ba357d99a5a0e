// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/activation.h"
#include "cpu/gdn/gdn.h"
#include "cpu/rows.h"

#include <cmath>

namespace lr::cpu {

void gated_norm(const ops::GatedNormArgs& args, ThreadPool& pool) {
    const std::int64_t heads = args.o.shape[1];
    const std::int64_t dv = args.o.shape[2];
    const std::int64_t live = live_rows(args.n_live, args.o.rows());
    zero_rows(args.y, live);
    pool.parallel_for(live * heads, 16, [&](std::int64_t begin, std::int64_t end) {
        float* o = thread_scratch(0, 4 * dv);
        float* z = o + dv;
        float* weight = z + dv;
        float* gate = weight + dv;
        load_floats(args.weight, 0, 0, dv, weight);
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t row = item / heads;
            const std::int64_t first = item % heads * dv;
            load_floats(args.o, row, first, dv, o);
            load_floats(args.z, row, first, dv, z);
            const float mean = sum_squares(o, dv) / static_cast<float>(dv);
            const float inv = 1.0f / std::sqrt(mean + args.eps);
            sigmoid_each(z, dv, gate);
            for (std::int64_t i = 0; i < dv; ++i)
                o[i] = o[i] * inv * weight[i] * z[i] * gate[i];
            store_floats(args.y, row, first, dv, o);
        }
    });
}

} // namespace lr::cpu
