// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    Rows<const Bf16> ba;
    AnyFloats a_log, dt_bias;
    const std::int32_t* n_live;
    Rows<float> g, beta;
    std::int64_t n, heads;
};

__global__ void __launch_bounds__(kThreads) gating_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t item = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    const std::int64_t row = item / p.heads, head = item % p.heads;
    if (row >= p.n)
        return;
    const bool live = is_live(row, p.n_live);
    p.beta[row][head] = live ? write_strength(to_float(p.ba[row][head])) : 0.0f;
    p.g[row][head] = live ? log_decay(to_float(p.ba[row][p.heads + head]), at(p.a_log, head),
                                      at(p.dt_bias, head))
                          : 0.0f;
}

} // namespace

Status gating(const ops::GatingArgs& args, const Lane& lane) {
    constexpr auto kOp = "gating";
    LR_TRY(require_model_precision(kOp, args));
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"ba", args.ba}}));
    const Params params = {rows<const Bf16>(args.ba),
                           any_floats(args.a_log),
                           any_floats(args.dt_bias),
                           values<const std::int32_t>(args.n_live),
                           rows<float>(args.g),
                           rows<float>(args.beta),
                           args.g.rows(),
                           args.g.shape[1]};
    if (params.n == 0)
        return {};
    return launch(kOp, gating_kernel, {blocks_for(params.n * params.heads, kThreads), kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
