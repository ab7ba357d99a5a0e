// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/experts/experts.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    Rows<const Bf16> gate_up;
    const std::int32_t* n_live;
    Rows<Bf16> y;
    std::int64_t width; // I
};

__global__ void __launch_bounds__(kThreads) silu_mul_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t token = blockIdx.y;
    const std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 8;
    if (c >= p.width)
        return;
    Vec8 y{};
    if (is_live(token, p.n_live)) {
        const Vec8 gate = load8(p.gate_up[token] + c), up = load8(p.gate_up[token] + p.width + c);
        for (int i = 0; i < 8; ++i)
            y.v[i] = silu(gate.v[i]) * up.v[i];
    }
    store8(p.y[token] + c, y);
}

} // namespace

Status silu_mul(const ops::SiluMulArgs& args, const Lane& lane) {
    constexpr auto kOp = "silu_mul";
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"gate_up", args.gate_up}, {"y", args.y}}));
    LR_TRY(require_vectors(kOp, {{"gate_up", args.gate_up}, {"y", args.y}}));
    if (args.y.rows() == 0)
        return {};
    const Params params = {rows<const Bf16>(args.gate_up), values<const std::int32_t>(args.n_live),
                           rows<Bf16>(args.y), args.y.shape[1]};
    return launch(
        kOp, silu_mul_kernel,
        {{blocks_for(params.width / 8, kThreads), static_cast<unsigned>(args.y.rows())}, kThreads},
        lane.stream, params);
}

} // namespace lr::cuda
