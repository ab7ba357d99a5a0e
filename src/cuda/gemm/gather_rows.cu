// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/launch.h"
#include "cuda/detail/operand.h"
#include "cuda/gemm/gemm.h"

#include <cstdint>

namespace lr::cuda {
namespace {

using namespace detail;

constexpr int kThreads = 128;

struct Params {
    const std::byte* x;
    const std::int32_t* rows;
    std::byte* y;
    std::int64_t x_stride, y_stride, bytes;
};

__global__ void __launch_bounds__(kThreads) gather_rows_kernel(Params p) {
    wait_for_inputs();
    const std::int64_t row = p.rows[blockIdx.x];
    for (std::int64_t at = threadIdx.x * kVectorBytes; at < p.bytes; at += kThreads * kVectorBytes)
        *reinterpret_cast<uint4*>(p.y + blockIdx.x * p.y_stride + at) =
            row < 0 ? uint4{} : *reinterpret_cast<const uint4*>(p.x + row * p.x_stride + at);
}

} // namespace

Status gather_rows(const ops::GatherRowsArgs& args, const Lane& lane) {
    LR_TRY(require_vectors("gather_rows", {{"x", args.x}, {"y", args.y}}));
    if (args.y.rows() == 0)
        return {};
    const Params params = {args.x.data,
                           values<const std::int32_t>(args.rows),
                           args.y.data,
                           dtype_bytes(args.x.dtype, args.x.row_stride),
                           dtype_bytes(args.y.dtype, args.y.row_stride),
                           dtype_bytes(args.y.dtype, args.y.shape.row_count())};
    return launch("gather_rows", gather_rows_kernel,
                  {static_cast<unsigned>(args.y.rows()), kThreads}, lane.stream, params);
}

} // namespace lr::cuda
