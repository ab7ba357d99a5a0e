// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/detail/math.h"
#include "cuda/gemm/gemm.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    const float* partial; // [splits, n, N]
    const std::int32_t* n_live;
    std::byte* y;
    std::int64_t y_stride;
    bool y_is_f32;
    std::int64_t splits, n, outputs;
};

__global__ void __launch_bounds__(kThreads) splitk_reduce_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t item = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    const std::int64_t row = item / p.outputs, column = item % p.outputs;
    if (row >= p.n)
        return;
    float sum = 0;
    if (is_live(row, p.n_live))
        for (std::int64_t split = 0; split < p.splits; ++split)
            sum += p.partial[(split * p.n + row) * p.outputs + column];
    if (p.y_is_f32)
        reinterpret_cast<float*>(p.y)[row * p.y_stride + column] = sum;
    else
        reinterpret_cast<Bf16*>(p.y)[row * p.y_stride + column] = to_bf16(sum);
}

} // namespace

Status splitk_reduce(const ops::SplitkReduceArgs& args, const Lane& lane) {
    const Params params = {values<const float>(args.partial),
                           values<const std::int32_t>(args.n_live),
                           args.y.data,
                           args.y.row_stride,
                           args.y.dtype == DType::kF32,
                           args.partial.shape[0],
                           args.y.rows(),
                           args.y.shape[1]};
    if (params.n == 0)
        return {};
    return launch("splitk_reduce", splitk_reduce_kernel,
                  {blocks_for(params.n * params.outputs, kThreads), kThreads}, lane.stream, params);
}

} // namespace lr::cuda
