// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/norm/norm.h"
#include "cpu/rows.h"

#include <cmath>

namespace lr::cpu {
namespace {

// Adds a row to s; `row` is scratch.
void add_row(ConstView view, std::int64_t i, std::int64_t d, float* s, float* row) {
    load_floats(view, i, 0, d, row);
    for (std::int64_t j = 0; j < d; ++j)
        s[j] += row[j];
}

// s = residual + x of one row, as the norm reads it.
void load_sum(const ops::AddRmsnormArgs& args, std::int64_t i, std::int64_t d, float* s,
              float* row) {
    ConstView x = args.x;
    for (std::int32_t rank = 0; rank < args.ranks; ++rank) {
        if (args.ranks > 1)
            x.data = args.peers[static_cast<std::size_t>(rank)];
        if (rank == 0)
            load_floats(x, i, 0, d, s);
        else
            add_row(x, i, d, s, row);
    }
    if (!args.residual.empty())
        add_row(args.residual, i, d, s, row);
    if (args.numerics == ops::Numerics::kHf && args.precision == ops::Precision::kModel)
        for (std::int64_t j = 0; j < d; ++j)
            s[j] = round_bf16(s[j]);
}

} // namespace

void add_rmsnorm(const ops::AddRmsnormArgs& args, ThreadPool& pool) {
    for (std::int32_t rank = 0; args.ranks > 1 && rank < args.ranks; ++rank)
        LR_CHECK(args.peers[static_cast<std::size_t>(rank)] != nullptr);
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
