// SPDX-License-Identifier: Apache-2.0
//
// One warp a head: two elements a lane and step.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"
#include "ops/gdn/l2norm.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kWarps = 4;

struct Params {
    Rows<const Bf16> x;
    Rows<Bf16> y;
    const std::int32_t* n_live;
    std::int64_t n, heads, pairs; // d/2
};

__global__ void __launch_bounds__(kWarps* kWarp) l2norm_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t item = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
    const std::int64_t row = item / p.heads, head = item % p.heads;
    const int lane = threadIdx.x % kWarp;
    if (row >= p.n)
        return;
    const auto* const x = reinterpret_cast<const std::uint32_t*>(p.x[row]) + head * p.pairs;
    auto* const y = reinterpret_cast<std::uint32_t*>(p.y[row]) + head * p.pairs;
    const bool live = is_live(row, p.n_live);
    float squares = 0;
    for (std::int64_t i = lane; live && i < p.pairs; i += kWarp) {
        squares = fmaf(bf16_low(x[i]), bf16_low(x[i]), squares);
        squares = fmaf(bf16_high(x[i]), bf16_high(x[i]), squares);
    }
    const float length = sqrtf(warp_sum(squares) + ops::kL2NormEps);
    for (std::int64_t i = lane; i < p.pairs; i += kWarp)
        y[i] = live ? pack_bf16(bf16_low(x[i]) / length, bf16_high(x[i]) / length) : 0;
}

} // namespace

Status l2norm(const ops::L2normArgs& args, const Lane& lane) {
    constexpr auto kOp = "l2norm";
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"x", args.x}, {"y", args.y}}));
    LR_TRY(require_vectors(kOp, {{"x", args.x}, {"y", args.y}}));
    const Params params = {rows<const Bf16>(args.x),
                           rows<Bf16>(args.y),
                           values<const std::int32_t>(args.n_live),
                           args.x.rows(),
                           args.x.shape[1],
                           args.x.shape[2] / 2};
    if (params.n == 0)
        return {};
    return launch(kOp, l2norm_kernel, {blocks_for(params.n * params.heads, kWarps), kWarps * kWarp},
                  lane.stream, params);
}

} // namespace lr::cuda
