// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "cpu/rows.h"

#include <cmath>

namespace lr::cpu {
namespace {

// s = residual + x of one row, as the norm reads it.
void load_sum(const ops::AddRmsnormArgs& args, std::int64_t i, std::int64_t d, float* s,
              float* residual) {
    load_floats(args.x, i, 0, d, s);
    if (!args.residual.empty()) {
        load_floats(args.residual, i, 0, d, residual);
        for (std::int64_t j = 0; j < d; ++j)
            s[j] = residual[j] + s[j];
    }
    if (args.numerics == ops::Numerics::kHf && args.precision == ops::Precision::kModel)
        for (std::int64_t j = 0; j < d; ++j)
            s[j] = round_bf16(s[j]);
}

} // namespace

void add_rmsnorm(const ops::AddRmsnormArgs& args, ThreadPool& pool) {
    LR_CHECK_EQ(args.ranks, 1);
    const std::int64_t d = args.x.shape[1];
    const std::int64_t live = live_rows(args.n_live, args.x.rows());
    pool.parallel_for(live, 8, [&](std::int64_t begin, std::int64_t end) {
        float* s = thread_scratch(0, d);
        float* residual = thread_scratch(1, d);
        float* gain = thread_scratch(2, d);
        load_floats(args.weight, 0, 0, d, gain);
        for (std::int64_t j = 0; j < d; ++j)
            gain[j] = 1.0f + gain[j];
        for (std::int64_t i = begin; i < end; ++i) {
            load_sum(args, i, d, s, residual);
            if (!args.residual_out.empty())
                store_floats(args.residual_out, i, 0, d, s);
            const float mean = sum_squares(s, d) / static_cast<float>(d);
            const float inv = 1.0f / std::sqrt(mean + args.eps);
            for (std::int64_t j = 0; j < d; ++j)
                s[j] = s[j] * inv * gain[j];
            store_floats(args.y, i, 0, d, s);
        }
    });
    if (!args.residual_out.empty())
        zero_rows(args.residual_out, live);
    zero_rows(args.y, live);
}

} // namespace lr::cpu
