// SPDX-License-Identifier: Apache-2.0
//
// A gather in slot order: one thread 8 columns of a token, products and sums apart as the CPU's.
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/experts/experts.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    Rows<const Bf16> z, weights;
    const std::int32_t* row_of;
    const std::int32_t* n_live;
    Rows<Bf16> y;
    std::int64_t d;
    int slots; // K
};

__global__ void __launch_bounds__(kThreads) finalize_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t token = blockIdx.y;
    const std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 8;
    if (c >= p.d)
        return;
    Vec8 sum{};
    if (is_live(token, p.n_live))
        for (int slot = 0; slot < p.slots; ++slot) {
            const std::int32_t from = p.row_of[token * p.slots + slot];
            if (from < 0)
                continue;
            const float weight = to_float(p.weights[token][slot]);
            const Vec8 z = load8(p.z[from] + c);
            for (int i = 0; i < 8; ++i)
                sum.v[i] += weight * z.v[i];
        }
    store8(p.y[token] + c, sum);
}

} // namespace

Status finalize(const ops::FinalizeArgs& args, const Lane& lane) {
    constexpr auto kOp = "finalize";
    LR_TRY(require_dtype(kOp, DType::kBF16,
                         {{"z", args.z}, {"weights", args.weights}, {"y", args.y}}));
    LR_TRY(require_vectors(kOp, {{"z", args.z}, {"y", args.y}}));
    if (args.y.rows() == 0)
        return {};
    const Params params = {rows<const Bf16>(args.z),
                           rows<const Bf16>(args.weights),
                           values<const std::int32_t>(args.row_of),
                           values<const std::int32_t>(args.n_live),
                           rows<Bf16>(args.y),
                           args.y.shape[1],
                           static_cast<int>(args.weights.shape[1])};
    return launch(
        kOp, finalize_kernel,
        {{blocks_for(params.d / 8, kThreads), static_cast<unsigned>(args.y.rows())}, kThreads},
        lane.stream, params);
}

} // namespace lr::cuda
