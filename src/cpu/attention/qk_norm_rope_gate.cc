// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"
#include "cpu/attention/attention.h"
#include "cpu/rows.h"

#include <cmath>

namespace lr::cpu {
namespace {

// Pointers into a thread's scratch for one run of rows.
struct Buffers {
    float* q_gain;   // [dh], 1 + w
    float* k_gain;   // [dh]
    float* inv_freq; // [rotary/2]
    float* cosine;   // [rotary/2] of the row's position
    float* sine;     // [rotary/2]
    float* head;     // [2dh]
};

Buffers make_buffers(const ops::QkNormRopeGateArgs& args, std::int64_t dh) {
    const std::int64_t half = args.rotary_dim / 2;
    float* gains = thread_scratch(0, 2 * dh);
    float* angles = thread_scratch(1, 3 * half);
    const Buffers buffers{gains,         gains + dh,        angles,
                          angles + half, angles + 2 * half, thread_scratch(2, 2 * dh)};
    load_floats(args.q_norm, 0, 0, dh, buffers.q_gain);
    load_floats(args.k_norm, 0, 0, dh, buffers.k_gain);
    for (std::int64_t j = 0; j < 2 * dh; ++j)
        gains[j] = 1.0f + gains[j];
    for (std::int64_t i = 0; i < half; ++i) {
        const float exponent = static_cast<float>(2 * i) / static_cast<float>(args.rotary_dim);
        buffers.inv_freq[i] = 1.0f / std::pow(args.rope_theta, exponent);
    }
    return buffers;
}

// Norm and rotation of one head in place; x [dh].
void norm_and_rotate(const ops::QkNormRopeGateArgs& args, const Buffers& buffers, const float* gain,
                     std::int64_t dh, float* x) {
    const float mean = sum_squares(x, dh) / static_cast<float>(dh);
    const float inv = 1.0f / std::sqrt(mean + args.eps);
    for (std::int64_t j = 0; j < dh; ++j)
        x[j] = x[j] * inv * gain[j];
    if (args.precision == ops::Precision::kModel)
        for (std::int64_t j = 0; j < dh; ++j)
            x[j] = round_bf16(x[j]);
    const std::int64_t half = args.rotary_dim / 2;
    for (std::int64_t i = 0; i < half; ++i) {
        const float low = x[i];
        const float high = x[i + half];
        x[i] = low * buffers.cosine[i] - high * buffers.sine[i];
        x[i + half] = high * buffers.cosine[i] + low * buffers.sine[i];
    }
}

void run_row(const ops::QkNormRopeGateArgs& args, const Buffers& buffers, std::int64_t row) {
    const std::int64_t dh = args.k.shape[2];
    const auto position = static_cast<float>(int_at(args.positions, row));
    for (std::int64_t i = 0; i < args.rotary_dim / 2; ++i) {
        const float angle = position * buffers.inv_freq[i];
        buffers.cosine[i] = std::cos(angle);
        buffers.sine[i] = std::sin(angle);
    }
    for (std::int64_t h = 0; h < args.q.shape[1]; ++h) {
        load_floats(args.qg, row, h * 2 * dh, 2 * dh, buffers.head);
        store_floats(args.gate, row, h * dh, dh, buffers.head + dh);
        norm_and_rotate(args, buffers, buffers.q_gain, dh, buffers.head);
        store_floats(args.q, row, h * dh, dh, buffers.head);
    }
    for (std::int64_t h = 0; h < args.k.shape[1]; ++h) {
        load_floats(args.k, row, h * dh, dh, buffers.head);
        norm_and_rotate(args, buffers, buffers.k_gain, dh, buffers.head);
        store_floats(args.k_out, row, h * dh, dh, buffers.head);
    }
}

} // namespace

void qk_norm_rope_gate(const ops::QkNormRopeGateArgs& args, ThreadPool& pool) {
    const std::int64_t live = live_rows(args.n_live, args.k.rows());
    pool.parallel_for(live, 4, [&](std::int64_t begin, std::int64_t end) {
        const Buffers buffers = make_buffers(args, args.k.shape[2]);
        for (std::int64_t row = begin; row < end; ++row)
            run_row(args, buffers, row);
    });
    zero_rows(args.q, live);
    zero_rows(args.gate, live);
    zero_rows(args.k_out, live);
}

} // namespace lr::cpu
