// SPDX-License-Identifier: Apache-2.0
//
// One warp a head of q or k. The row's head lies in shared memory between norm and rotation.
#include "cuda/attention/attention.h"
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kWarps = 4;
constexpr int kMaxWidth = 512;

struct Params {
    Rows<const Bf16> qg, k;
    const std::int32_t* positions;
    const std::int32_t* n_live;
    AnyFloats q_norm, k_norm;
    Rows<Bf16> q, gate, k_out;
    std::int64_t n;
    int q_heads, kv_heads, dh, rotary_dim;
    float eps, theta;
};

// x [dh] becomes the normalised head, rounded to bf16.
__device__ void norm_head(const Params& p, const Bf16* from, AnyFloats gain, float* x) {
    const int lane = threadIdx.x % kWarp;
    float squares = 0;
    for (int i = lane; i < p.dh; i += kWarp) {
        x[i] = to_float(from[i]);
        squares = fmaf(x[i], x[i], squares);
    }
    const float inv = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(p.dh) + p.eps);
    for (int i = lane; i < p.dh; i += kWarp)
        x[i] = round_bf16(x[i] * inv * (1.0f + at(gain, i)));
    __syncwarp();
}

__device__ void rotate_and_store(const Params& p, const float* x, std::int32_t position, Bf16* y) {
    const int half = p.rotary_dim / 2;
    for (int i = threadIdx.x % kWarp; i < p.dh; i += kWarp) {
        float value = x[i];
        if (i < p.rotary_dim) {
            const int pair = i < half ? i : i - half;
            const float exponent = static_cast<float>(2 * pair) / static_cast<float>(p.rotary_dim);
            const float angle = static_cast<float>(position) * (1.0f / powf(p.theta, exponent));
            const float cosine = cosf(angle), sine = sinf(angle);
            value =
                i < half ? x[i] * cosine - x[i + half] * sine : x[i] * cosine + x[i - half] * sine;
        }
        y[i] = to_bf16(value);
    }
}

__device__ void zero(Bf16* y, int count) {
    for (int i = threadIdx.x % kWarp; i < count; i += kWarp)
        y[i] = to_bf16(0.0f);
}

__global__ void __launch_bounds__(kWarps* kWarp) qk_norm_rope_gate_kernel(Params p) {
    wait_for_inputs();
    __shared__ float heads[kWarps][kMaxWidth];
    float* const x = heads[threadIdx.x / kWarp];
    const int all = p.q_heads + p.kv_heads;
    const std::int64_t item = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
    const std::int64_t row = item / all;
    const int head = static_cast<int>(item % all), kv_head = head - p.q_heads;
    if (row >= p.n)
        return;
    const bool live = is_live(row, p.n_live), query = kv_head < 0;
    Bf16* const y = query ? p.q[row] + head * p.dh : p.k_out[row] + kv_head * p.dh;
    if (!live) {
        zero(y, p.dh);
        if (query)
            zero(p.gate[row] + head * p.dh, p.dh);
        return;
    }
    const Bf16* const from = query ? p.qg[row] + head * 2 * p.dh : p.k[row] + kv_head * p.dh;
    if (query)
        for (int i = threadIdx.x % kWarp; i < p.dh; i += kWarp)
            p.gate[row][head * p.dh + i] = from[p.dh + i];
    norm_head(p, from, query ? p.q_norm : p.k_norm, x);
    rotate_and_store(p, x, p.positions[row], y);
}

} // namespace

Status qk_norm_rope_gate(const ops::QkNormRopeGateArgs& args, const Lane& lane) {
    constexpr auto kOp = "qk_norm_rope_gate";
    LR_TRY(require_model_precision(kOp, args));
    LR_TRY(require_dtype(kOp, DType::kBF16,
                         {{"qg", args.qg},
                          {"k", args.k},
                          {"q", args.q},
                          {"gate", args.gate},
                          {"k_out", args.k_out}}));
    Params params{};
    params.qg = rows<const Bf16>(args.qg);
    params.k = rows<const Bf16>(args.k);
    params.positions = values<const std::int32_t>(args.positions);
    params.n_live = values<const std::int32_t>(args.n_live);
    params.q_norm = any_floats(args.q_norm);
    params.k_norm = any_floats(args.k_norm);
    params.q = rows<Bf16>(args.q);
    params.gate = rows<Bf16>(args.gate);
    params.k_out = rows<Bf16>(args.k_out);
    params.n = args.k.rows();
    params.q_heads = static_cast<int>(args.q.shape[1]);
    params.kv_heads = static_cast<int>(args.k.shape[1]);
    params.dh = static_cast<int>(args.k.shape[2]);
    params.rotary_dim = args.rotary_dim;
    params.eps = args.eps;
    params.theta = args.rope_theta;
    if (params.dh > kMaxWidth)
        return fail(Code::kUnsupported, "cuda: qk_norm_rope_gate: expected dh <= {}, got {}",
                    kMaxWidth, params.dh);
    if (params.n == 0)
        return {};
    return launch(
        kOp, qk_norm_rope_gate_kernel,
        {blocks_for(params.n * (params.q_heads + params.kv_heads), kWarps), kWarps * kWarp},
        lane.stream, params);
}

} // namespace lr::cuda
