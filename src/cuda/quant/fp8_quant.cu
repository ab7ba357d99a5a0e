// SPDX-License-Identifier: Apache-2.0
//
// Group and static scales: 16 lanes take 128 channels in 16-byte vectors. A scale for the whole
// row: one block a row, which reads it twice (the second time from the cache).
#include "cuda/detail/launch.h"
#include "cuda/quant/codes.h"
#include "cuda/quant/quant.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;
constexpr int kGroupLanes = numerics::kFp8Group / 8;

struct Params {
    Rows<const Bf16> x;
    Rows<std::uint8_t> q;
    Rows<float> scale;
    LiveRows rows;
    std::int64_t n, k;
    float static_scale; // without scale
};

__device__ void store_codes(const Params& p, std::int64_t row, std::int64_t first, uint2 codes) {
    *reinterpret_cast<uint2*>(p.q[row] + first) = codes;
}

__global__ void __launch_bounds__(kThreads) fp8_quant_groups_kernel(Params p, std::int64_t groups) {
    wait_for_inputs();
    const std::int64_t item = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kGroupLanes;
    const int lane = threadIdx.x % kGroupLanes;
    const std::int64_t row = item / groups, group = item % groups;
    const std::int64_t first = group * numerics::kFp8Group + lane * 8;
    const bool inside = row < p.n && first < p.k;
    const bool live = inside && p.rows.live(row), writes = live || p.rows.zeroes();
    const Vec8 x = live ? load8(p.x[row] + first) : Vec8{};
    float s = p.static_scale;
    if (p.scale) {
        const std::uint32_t amax = warp_max<kGroupLanes>(max_magnitude(x));
        s = fp8_scale(amax);
        if (lane == 0 && row < p.n && writes)
            p.scale[row][group] = live ? s : 0.0f;
    }
    if (inside && writes)
        store_codes(p, row, first, live ? fp8_codes(x, s) : uint2{});
}

__global__ void __launch_bounds__(kThreads) fp8_quant_rows_kernel(Params p) {
    wait_for_inputs();
    __shared__ std::uint32_t partial[kThreads / kWarp];
    const std::int64_t row = blockIdx.x;
    const bool live = p.rows.live(row);
    if (!live && !p.rows.zeroes())
        return;
    std::uint32_t amax = 0;
    for (std::int64_t first = threadIdx.x * 8; live && first < p.k; first += kThreads * 8)
        amax = max(amax, max_magnitude(load8(p.x[row] + first)));
    amax = warp_max(amax);
    if (threadIdx.x % kWarp == 0)
        partial[threadIdx.x / kWarp] = amax;
    __syncthreads();
    for (const std::uint32_t other : partial)
        amax = max(amax, other);
    const float s = fp8_scale(amax);
    if (threadIdx.x == 0)
        *p.scale[row] = live ? s : 0.0f;
    for (std::int64_t first = threadIdx.x * 8; first < p.k; first += kThreads * 8)
        store_codes(p, row, first, live ? fp8_codes(load8(p.x[row] + first), s) : uint2{});
}

} // namespace

Status fp8_quant(const ops::Fp8QuantArgs& args, const Lane& lane) {
    return fp8_quant(args, {}, {}, lane);
}

Status fp8_quant(const ops::Fp8QuantArgs& args, ConstView start, ConstView end, const Lane& lane) {
    constexpr auto kOp = "fp8_quant";
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"x", args.x}}));
    LR_TRY(require_vectors(kOp, {{"x", args.x}}));
    const Params params = {rows<const Bf16>(args.x),
                           rows<std::uint8_t>(args.q),
                           rows<float>(args.scale),
                           {values<const std::int32_t>(args.n_live),
                            values<const std::int32_t>(start), values<const std::int32_t>(end),
                            static_cast<int>(start.shape[0])},
                           args.x.rows(),
                           args.x.shape[1],
                           args.static_scale};
    if (params.n == 0)
        return {};
    if (!args.scale.empty() && args.group == 0)
        return launch(kOp, fp8_quant_rows_kernel, {static_cast<unsigned>(params.n), kThreads},
                      lane.stream, params);
    const std::int64_t groups = (params.k + numerics::kFp8Group - 1) / numerics::kFp8Group;
    return launch(kOp, fp8_quant_groups_kernel,
                  {blocks_for(params.n * groups * kGroupLanes, kThreads), kThreads}, lane.stream,
                  params, groups);
}

} // namespace lr::cuda
