// SPDX-License-Identifier: Apache-2.0
//
// One block takes 16 rows of one head's state (so that one sequence fills the device), 8 lanes a
// row: lane j holds the float4s j, j + 8, ... of the row, and of qn and kn. The state is read and
// written once.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"
#include "ops/gdn/l2norm.h"

#include <cmath>
#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;
constexpr int kRowLanes = 8;
constexpr int kBlockRows = kThreads / kRowLanes;

struct Params {
    Rows<const Bf16> q, k, v, b, a;
    AnyFloats a_log, dt_bias;
    const std::int32_t* slot;
    const std::int32_t* n_live;
    std::byte* ssm_state; // [S, Hv, dv, dk]
    Rows<Bf16> o;
    int heads, group, dk, dv; // Hv, Hv/Hk
    float q_scale;            // dk^-0.5
};

// Four consecutive elements of a state row.
struct F32State {
    using Raw = float4;
    static __device__ float4 load(const Raw* p) { return *p; }
    static __device__ void store(Raw* p, float4 x) { *p = x; }
};
struct Bf16State {
    using Raw = uint2;
    static __device__ float4 load(const Raw* p) {
        const uint2 raw = *p;
        return {bf16_low(raw.x), bf16_high(raw.x), bf16_low(raw.y), bf16_high(raw.y)};
    }
    static __device__ void store(Raw* p, float4 x) {
        *p = {pack_bf16(x.x, x.y), pack_bf16(x.z, x.w)};
    }
};

__device__ float dot4(float4 x, float4 y, float sum) {
    return fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum))));
}

// This lane's part of a head of q or k, normalised: x / length * scale.
template <int kVectors>
__device__ void load_unit(const Bf16* x, int dk, float scale, float4 (&out)[kVectors]) {
    const int lane = threadIdx.x % kRowLanes;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
        const int at = (i * kRowLanes + lane) * 4;
        out[i] = at < dk ? Bf16State::load(reinterpret_cast<const uint2*>(x + at)) : float4{};
        squares = dot4(out[i], out[i], squares);
    }
    const float length = sqrtf(warp_sum<kRowLanes>(squares) + ops::kL2NormEps);
#pragma unroll
    for (int i = 0; i < kVectors; ++i)
        out[i] = {out[i].x / length * scale, out[i].y / length * scale, out[i].z / length * scale,
                  out[i].w / length * scale};
}

template <typename State, int kVectors> __global__ void __launch_bounds__(kThreads)
    recurrent_update_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.y;
    const int blocks = (p.dv + kBlockRows - 1) / kBlockRows;
    const int head = static_cast<int>(blockIdx.x) / blocks;
    const int lane = threadIdx.x % kRowLanes;
    const int i = static_cast<int>(blockIdx.x) % blocks * kBlockRows + threadIdx.x / kRowLanes;
    const std::int64_t slot = is_live(row, p.n_live) ? p.slot[row] : -1;
    const std::int64_t out = std::int64_t{head} * p.dv + i;
    if (slot < 0) {
        if (lane == 0 && i < p.dv)
            p.o[row][out] = to_bf16(0.0f);
        return;
    }
    // dv is a multiple of 16, so every row of the block exists and warps stay whole.
    const std::int64_t first = ((slot * p.heads + head) * p.dv + i) * p.dk / 4;
    auto* const state = reinterpret_cast<typename State::Raw*>(p.ssm_state) + first;
    float4 s[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        const int at = v * kRowLanes + lane;
        s[v] = at * 4 < p.dk ? State::load(state + at) : float4{};
    }
    float4 kn[kVectors], qn[kVectors];
    load_unit<kVectors>(p.k[row] + head / p.group * p.dk, p.dk, 1.0f, kn);
    load_unit<kVectors>(p.q[row] + head / p.group * p.dk, p.dk, p.q_scale, qn);
    const float alpha =
        expf(log_decay(to_float(p.a[row][head]), at(p.a_log, head), at(p.dt_bias, head)));
    const float beta = write_strength(to_float(p.b[row][head]));

    float known = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        s[v] = {alpha * s[v].x, alpha * s[v].y, alpha * s[v].z, alpha * s[v].w};
        known = dot4(s[v], kn[v], known);
    }
    const float d = beta * (to_float(p.v[row][out]) - warp_sum<kRowLanes>(known));
    float read = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        s[v] = {fmaf(d, kn[v].x, s[v].x), fmaf(d, kn[v].y, s[v].y), fmaf(d, kn[v].z, s[v].z),
                fmaf(d, kn[v].w, s[v].w)};
        read = dot4(s[v], qn[v], read);
        const int at = v * kRowLanes + lane;
        if (at * 4 < p.dk)
            State::store(state + at, s[v]);
    }
    read = warp_sum<kRowLanes>(read);
    if (lane == 0)
        p.o[row][out] = to_bf16(read);
}

template <typename State>
Status launch_for(const Params& params, std::int64_t n, const Lane& lane) {
    constexpr auto kOp = "recurrent_update";
    const LaunchShape shape = {
        {static_cast<unsigned>(params.heads * (params.dv / kBlockRows)), static_cast<unsigned>(n)},
        kThreads};
    if (params.dk <= 32)
        return launch(kOp, recurrent_update_kernel<State, 1>, shape, lane.stream, params);
    if (params.dk <= 64)
        return launch(kOp, recurrent_update_kernel<State, 2>, shape, lane.stream, params);
    if (params.dk <= 128)
        return launch(kOp, recurrent_update_kernel<State, 4>, shape, lane.stream, params);
    if (params.dk <= 256)
        return launch(kOp, recurrent_update_kernel<State, 8>, shape, lane.stream, params);
    return fail(Code::kUnsupported, "cuda: recurrent_update: expected dk <= 256, got {}",
                params.dk);
}

} // namespace

Status recurrent_update(const ops::RecurrentUpdateArgs& args, const Lane& lane) {
    constexpr auto kOp = "recurrent_update";
    LR_TRY(require_model_precision(kOp, args));
    const auto named = {Named{"q", args.q}, Named{"k", args.k}, Named{"v", args.v},
                        Named{"o", args.o}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"a", args.a}, {"b", args.b}}));
    if (args.q.rows() == 0)
        return {};
    Params params{};
    params.q = rows<const Bf16>(args.q);
    params.k = rows<const Bf16>(args.k);
    params.v = rows<const Bf16>(args.v);
    params.b = rows<const Bf16>(args.b);
    params.a = rows<const Bf16>(args.a);
    params.a_log = any_floats(args.a_log);
    params.dt_bias = any_floats(args.dt_bias);
    params.slot = values<const std::int32_t>(args.slot);
    params.n_live = values<const std::int32_t>(args.n_live);
    params.ssm_state = args.ssm_state.data;
    params.o = rows<Bf16>(args.o);
    params.heads = static_cast<int>(args.v.shape[1]);
    params.group = static_cast<int>(args.v.shape[1] / args.k.shape[1]);
    params.dk = static_cast<int>(args.k.shape[2]);
    params.dv = static_cast<int>(args.v.shape[2]);
    params.q_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(params.dk)));
    return args.ssm_state.dtype == DType::kF32 ? launch_for<F32State>(params, args.q.rows(), lane)
                                               : launch_for<Bf16State>(params, args.q.rows(), lane);
}

} // namespace lr::cuda
