// SPDX-License-Identifier: Apache-2.0
//
// One block a token: the gate's dot, then the merge.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/experts/experts.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;

struct Params {
    Rows<const Bf16> m, shared, routed;
    const std::int32_t* n_live;
    AnyFloats gate_weight;
    Rows<Bf16> y;
    std::int64_t d;
};

__global__ void __launch_bounds__(kThreads) shared_gate_merge_kernel(Params p) {
    wait_for_inputs();
    __shared__ float partial[kThreads / kWarp];
    const std::int64_t token = blockIdx.x;
    const bool live = is_live(token, p.n_live);
    float sum = 0;
    for (std::int64_t c = threadIdx.x * 8; live && c < p.d; c += kThreads * 8) {
        const Vec8 m = load8(p.m[token] + c);
        for (int i = 0; i < 8; ++i)
            sum = fmaf(m.v[i], at(p.gate_weight, c + i), sum);
    }
    const float eta = sigmoid(block_sum<kThreads>(sum, partial));
    for (std::int64_t c = threadIdx.x * 8; c < p.d; c += kThreads * 8) {
        Vec8 y{};
        if (live) {
            const Vec8 shared = load8(p.shared[token] + c);
            y = load8(p.routed[token] + c);
            for (int i = 0; i < 8; ++i)
                y.v[i] += eta * shared.v[i];
        }
        store8(p.y[token] + c, y);
    }
}

} // namespace

Status shared_gate_merge(const ops::SharedGateMergeArgs& args, const Lane& lane) {
    constexpr auto kOp = "shared_gate_merge";
    const auto named = {Named{"m", args.m}, Named{"shared", args.shared},
                        Named{"routed", args.routed}, Named{"y", args.y}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    if (args.y.rows() == 0)
        return {};
    const Params params = {rows<const Bf16>(args.m),
                           rows<const Bf16>(args.shared),
                           rows<const Bf16>(args.routed),
                           values<const std::int32_t>(args.n_live),
                           any_floats(args.gate_weight),
                           rows<Bf16>(args.y),
                           args.y.shape[1]};
    return launch(kOp, shared_gate_merge_kernel, {static_cast<unsigned>(args.y.rows()), kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
