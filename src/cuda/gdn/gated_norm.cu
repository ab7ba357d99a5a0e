// SPDX-License-Identifier: Apache-2.0
//
// One warp a head: two elements a lane and step.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kWarps = 4;

struct Params {
    Rows<const Bf16> o, z;
    Rows<Bf16> y;
    const std::int32_t* n_live;
    AnyFloats weight;
    std::int64_t n, heads, dv;
    float eps;
};

__device__ std::uint32_t pair_at(const Bf16* p) {
    return *reinterpret_cast<const std::uint32_t*>(p);
}

__global__ void __launch_bounds__(kWarps* kWarp) gated_norm_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t item = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
    const std::int64_t row = item / p.heads, first = item % p.heads * p.dv;
    const int lane = threadIdx.x % kWarp;
    if (row >= p.n)
        return;
    auto* const y = reinterpret_cast<std::uint32_t*>(p.y[row] + first);
    const std::int64_t pairs = p.dv / 2;
    if (!is_live(row, p.n_live)) {
        for (std::int64_t i = lane; i < pairs; i += kWarp)
            y[i] = 0;
        return;
    }
    const Bf16* const o = p.o[row] + first;
    const Bf16* const z = p.z[row] + first;
    float squares = 0;
    for (std::int64_t i = lane; i < pairs; i += kWarp) {
        const std::uint32_t pair = pair_at(o + 2 * i);
        squares = fmaf(bf16_low(pair), bf16_low(pair), squares);
        squares = fmaf(bf16_high(pair), bf16_high(pair), squares);
    }
    const float inv = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(p.dv) + p.eps);
    for (std::int64_t i = lane; i < pairs; i += kWarp) {
        const std::uint32_t value = pair_at(o + 2 * i), gate = pair_at(z + 2 * i);
        const float z0 = bf16_low(gate), z1 = bf16_high(gate);
        y[i] = pack_bf16(bf16_low(value) * inv * at(p.weight, 2 * i) * z0 * sigmoid(z0),
                         bf16_high(value) * inv * at(p.weight, 2 * i + 1) * z1 * sigmoid(z1));
    }
}

} // namespace

Status gated_norm(const ops::GatedNormArgs& args, const Lane& lane) {
    constexpr auto kOp = "gated_norm";
    const auto named = {Named{"o", args.o}, Named{"z", args.z}, Named{"y", args.y}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    const Params params = {rows<const Bf16>(args.o),
                           rows<const Bf16>(args.z),
                           rows<Bf16>(args.y),
                           values<const std::int32_t>(args.n_live),
                           any_floats(args.weight),
                           args.o.rows(),
                           args.o.shape[1],
                           args.o.shape[2],
                           args.eps};
    if (params.n == 0)
        return {};
    return launch(kOp, gated_norm_kernel,
                  {blocks_for(params.n * params.heads, kWarps), kWarps * kWarp}, lane.stream,
                  params);
}

} // namespace lr::cuda
