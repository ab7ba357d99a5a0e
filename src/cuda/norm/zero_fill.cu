// SPDX-License-Identifier: Apache-2.0
#include "cuda/detail/check.h"
#include "cuda/detail/operand.h"
#include "cuda/norm/norm.h"

namespace lr::cuda {

Status zero_fill(const ops::ZeroFillArgs& args, const Lane& lane) {
    const auto width =
        static_cast<std::size_t>(dtype_bytes(args.y.dtype, args.y.shape.row_count()));
    const auto pitch = static_cast<std::size_t>(dtype_bytes(args.y.dtype, args.y.row_stride));
    const auto rows = static_cast<std::size_t>(args.y.rows());
    const cudaStream_t stream = detail::native(lane.stream);
    if (width == 0 || rows == 0)
        return {};
    if (args.y.dense())
        CUDA_CHECK(cudaMemsetAsync(args.y.data, 0, width * rows, stream));
    else
        CUDA_CHECK(cudaMemset2DAsync(args.y.data, pitch, 0, width, rows, stream));
    return {};
}

} // namespace lr::cuda
