// SPDX-License-Identifier: Apache-2.0
//
// One block a row. The sum of residual and x stays in registers between the two passes: each tensor
// is moved once, in 16-byte vectors.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/norm/norm.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;
constexpr int kVectors = 4; // of a thread at most: D <= 8192

struct Params {
    const Bf16* x[kMaxRanks];
    std::int64_t x_stride;
    Rows<const Bf16> residual;
    Rows<Bf16> residual_out, y;
    const std::int32_t* n_live;
    AnyFloats weight;
    std::int64_t d;
    float eps;
    int ranks;
    bool rounded; // the norm reads the sum rounded to bf16
};

__device__ Vec8 load_sum(const Params& p, std::int64_t row, std::int64_t first) {
    Vec8 s = load8(p.x[0] + row * p.x_stride + first);
    for (int rank = 1; rank < p.ranks; ++rank) {
        const Vec8 other = load8(p.x[rank] + row * p.x_stride + first);
        for (int i = 0; i < 8; ++i)
            s.v[i] += other.v[i];
    }
    if (p.residual) {
        const Vec8 residual = load8(p.residual[row] + first);
        for (int i = 0; i < 8; ++i)
            s.v[i] += residual.v[i];
    }
    for (int i = 0; i < 8; ++i)
        s.v[i] = p.rounded ? round_bf16(s.v[i]) : s.v[i];
    return s;
}

__device__ void zero_row(const Params& p, std::int64_t row) {
    for (std::int64_t first = threadIdx.x * 8; first < p.d; first += kThreads * 8) {
        store8(p.y[row] + first, Vec8{});
        if (p.residual_out)
            store8(p.residual_out[row] + first, Vec8{});
    }
}

__global__ void __launch_bounds__(kThreads) add_rmsnorm_kernel(Params p) {
    wait_for_inputs();
    __shared__ float partial[kThreads / kWarp];
    const std::int64_t row = blockIdx.x;
    if (!is_live(row, p.n_live))
        return zero_row(p, row);
    Vec8 s[kVectors];
    float squares = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        const std::int64_t first = (v * kThreads + threadIdx.x) * 8;
        if (first >= p.d)
            break;
        s[v] = load_sum(p, row, first);
        if (p.residual_out)
            store8(p.residual_out[row] + first, s[v]);
        for (int i = 0; i < 8; ++i)
            squares = fmaf(s[v].v[i], s[v].v[i], squares);
    }
    const float mean = block_sum<kThreads>(squares, partial) / static_cast<float>(p.d);
    const float inv = 1.0f / sqrtf(mean + p.eps);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        const std::int64_t first = (v * kThreads + threadIdx.x) * 8;
        if (first >= p.d)
            break;
        for (int i = 0; i < 8; ++i)
            s[v].v[i] = s[v].v[i] * inv * (1.0f + at(p.weight, first + i));
        store8(p.y[row] + first, s[v]);
    }
}

} // namespace

Status add_rmsnorm(const ops::AddRmsnormArgs& args, const Lane& lane) {
    constexpr auto kOp = "add_rmsnorm";
    LR_TRY(require_model_precision(kOp, args));
    const auto named = {Named{"x", args.x}, Named{"residual", args.residual},
                        Named{"residual_out", args.residual_out}, Named{"y", args.y}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    const std::int64_t d = args.x.shape[1];
    if (d > kVectors * kThreads * 8)
        return fail(Code::kUnsupported, "cuda: add_rmsnorm: expected D <= {}, got {}",
                    kVectors * kThreads * 8, d);
    if (args.y.rows() == 0)
        return {};
    Params params{};
    params.x[0] = values<const Bf16>(args.x);
    for (std::int32_t rank = 0; args.ranks > 1 && rank < args.ranks; ++rank)
        params.x[rank] = reinterpret_cast<const Bf16*>(args.peers[static_cast<std::size_t>(rank)]);
    params.x_stride = args.x.row_stride;
    params.residual = rows<const Bf16>(args.residual);
    params.residual_out = rows<Bf16>(args.residual_out);
    params.y = rows<Bf16>(args.y);
    params.n_live = values<const std::int32_t>(args.n_live);
    params.weight = any_floats(args.weight);
    params.d = d;
    params.eps = args.eps;
    params.ranks = args.ranks;
    params.rounded = args.numerics == ops::Numerics::kHf;
    return launch(kOp, add_rmsnorm_kernel, {static_cast<unsigned>(args.y.rows()), kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
