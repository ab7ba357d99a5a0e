// SPDX-License-Identifier: Apache-2.0
//
// One thread a 16-byte vector of the convolved row.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gdn/gdn.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;

struct Params {
    Rows<const Bf16> x;
    const std::int32_t* n_live;
    Rows<Bf16> q, k, v;
    std::int64_t qk, channels; // Hk*dk; C
};

__global__ void __launch_bounds__(kThreads) qkv_split_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.y;
    const std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 8;
    if (c >= p.channels)
        return;
    Bf16* const to = c < p.qk       ? p.q[row] + c
                     : c < 2 * p.qk ? p.k[row] + c - p.qk
                                    : p.v[row] + c - 2 * p.qk;
    *reinterpret_cast<uint4*>(to) =
        is_live(row, p.n_live) ? *reinterpret_cast<const uint4*>(p.x[row] + c) : uint4{};
}

} // namespace

Status qkv_split(const ops::QkvSplitArgs& args, const Lane& lane) {
    constexpr auto kOp = "qkv_split";
    const auto named = {Named{"x", args.x}, Named{"q", args.q}, Named{"k", args.k},
                        Named{"v", args.v}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    if (args.x.rows() == 0)
        return {};
    const Params params = {rows<const Bf16>(args.x), values<const std::int32_t>(args.n_live),
                           rows<Bf16>(args.q),       rows<Bf16>(args.k),
                           rows<Bf16>(args.v),       args.q.shape.row_count(),
                           args.x.shape[1]};
    return launch(
        kOp, qkv_split_kernel,
        {{blocks_for(params.channels / 8, kThreads), static_cast<unsigned>(args.x.rows())},
         kThreads},
        lane.stream, params);
}

} // namespace lr::cuda
