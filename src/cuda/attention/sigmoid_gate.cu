// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention/attention.h"
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 256;

struct Params {
    Rows<const Bf16> o, gate;
    const std::int32_t* n_live;
    Rows<Bf16> y;
    std::int64_t width;
};

__global__ void __launch_bounds__(kThreads) sigmoid_gate_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = blockIdx.y;
    const std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 8;
    if (c >= p.width)
        return;
    Vec8 y{};
    if (is_live(row, p.n_live)) {
        const Vec8 o = load8(p.o[row] + c), gate = load8(p.gate[row] + c);
        for (int i = 0; i < 8; ++i)
            y.v[i] = o.v[i] * sigmoid(gate.v[i]);
    }
    store8(p.y[row] + c, y);
}

} // namespace

Status sigmoid_gate(const ops::SigmoidGateArgs& args, const Lane& lane) {
    constexpr auto kOp = "sigmoid_gate";
    const auto named = {Named{"o", args.o}, Named{"gate", args.gate}, Named{"y", args.y}};
    LR_TRY(require_dtype(kOp, DType::kBF16, named));
    LR_TRY(require_vectors(kOp, named));
    if (args.y.rows() == 0)
        return {};
    const Params params = {rows<const Bf16>(args.o), rows<const Bf16>(args.gate),
                           values<const std::int32_t>(args.n_live), rows<Bf16>(args.y),
                           args.y.shape[1]};
    return launch(
        kOp, sigmoid_gate_kernel,
        {{blocks_for(params.width / 8, kThreads), static_cast<unsigned>(args.y.rows())}, kThreads},
        lane.stream, params);
}

} // namespace lr::cuda
