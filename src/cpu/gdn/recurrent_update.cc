// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/gdn/gates.h"
#include "cpu/gdn/gdn.h"
#include "cpu/kernels/kernels.h"
#include "cpu/rows.h"

#include <cmath>

namespace lr::cpu {
namespace {

void normalise(float* x, std::int64_t count, float scale) {
    const float length = std::sqrt(sum_squares(x, count) + ops::kL2NormEps);
    for (std::int64_t i = 0; i < count; ++i)
        x[i] = x[i] / length * scale;
}

// One row, one value head.
void update_head(const ops::RecurrentUpdateArgs& args, std::int64_t row, std::int64_t slot,
                 std::int64_t head) {
    const std::int64_t dk = args.k.shape[2];
    const std::int64_t dv = args.v.shape[2];
    const std::int64_t key_head = head / (args.v.shape[1] / args.k.shape[1]);
    float* qn = thread_scratch(0, 3 * dk + 2 * dv);
    float* kn = qn + dk;
    float* stored = kn + dk; // a state row that is not f32 in memory
    float* v = stored + dk;
    float* o = v + dv;
    load_floats(args.q, row, key_head * dk, dk, qn);
    load_floats(args.k, row, key_head * dk, dk, kn);
    load_floats(args.v, row, head * dv, dv, v);
    normalise(qn, dk, static_cast<float>(1.0 / std::sqrt(static_cast<double>(dk))));
    normalise(kn, dk, 1.0f);

    float a = 0;
    float b = 0;
    load_floats(args.a, row, head, 1, &a);
    load_floats(args.b, row, head, 1, &b);
    const float g = gdn::log_decay(a, float_at(args.a_log, head), float_at(args.dt_bias, head));
    const float alpha = std::exp(g);
    const float beta = gdn::write_strength(b, args.precision);

    const bool in_place = args.ssm_state.dtype == DType::kF32;
    for (std::int64_t i = 0; i < dv; ++i) {
        const std::int64_t first = (head * dv + i) * dk;
        float* state = in_place ? args.ssm_state.row_as<float>(slot) + first : stored;
        if (!in_place)
            load_floats(args.ssm_state, slot, first, dk, state);
        o[i] = kernels().delta_row({alpha, beta, v[i], kn, qn, dk, state});
        if (!in_place)
            store_floats(args.ssm_state, slot, first, dk, state);
    }
    store_floats(args.o, row, head * dv, dv, o);
}

} // namespace

void recurrent_update(const ops::RecurrentUpdateArgs& args, ThreadPool& pool) {
    const std::int64_t n = args.q.rows();
    const std::int64_t heads = args.v.shape[1];
    const std::int64_t live = live_rows(args.n_live, n);
    pool.parallel_for(n * heads, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t row = item / heads;
            const std::int64_t head = item % heads;
            const std::int64_t slot = row < live ? int_at(args.slot, row) : -1;
            if (slot >= 0)
                update_head(args, row, slot, head);
            else if (head == 0)
                zero_rows(args.o.slice_rows(row, 1), 0);
        }
    });
}

} // namespace lr::cpu
