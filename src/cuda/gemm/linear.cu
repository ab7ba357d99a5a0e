// SPDX-License-Identifier: Apache-2.0
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/product_args.h"
#include "cuda/gemm/product_grid.h"

#include <algorithm>

namespace lr::cuda {
namespace {

using namespace detail;

// Up to so many rows the weights are streamed through registers; beyond, tiles pay.
constexpr std::int64_t kFewRows = 16;
// Tiles that fill the device; with fewer, slices of K run beside one another.
constexpr std::int64_t kFullGrid = 132;

bool split(const ops::LinearArgs& args) {
    const std::int64_t n = args.x.rows(), outputs = args.w.rows();
    return n > kFewRows && slices_of(args.w.columns()).count > 1 &&
           static_cast<std::int64_t>(blocks_for(n, kTileX)) *
                   static_cast<std::int64_t>(blocks_for(outputs, kTileW)) <
               kFullGrid;
}

} // namespace

std::int64_t linear_scratch_bytes(const ops::LinearArgs& args) {
    if (!split(args))
        return 0;
    return slices_of(args.w.columns()).count * args.x.rows() * args.w.rows() *
           static_cast<std::int64_t>(sizeof(float));
}

Status linear(const ops::LinearArgs& args, const Lane& lane) {
    LR_TRY(require_model_precision("linear", args));
    const Activation x{args.x, args.x_scale, args.x_global};
    LR_TRY_ASSIGN(ProductParams params, product_params("linear", x, args.w));
    params.n_live = values<const std::int32_t>(args.n_live);
    params.rows = args.x.rows();
    params.y = args.y.data;
    params.y_stride = args.y.row_stride;
    params.y_is_f32 = args.y.dtype == DType::kF32;
    params.partial = reinterpret_cast<float*>(lane.scratch);
    if (params.rows == 0)
        return {};
    if (linear_scratch_bytes(args) > lane.scratch_bytes)
        return fail(Code::kInternal, "cuda: linear: expected {} bytes of scratch, got {}",
                    linear_scratch_bytes(args), lane.scratch_bytes);
    ProductChoice choice;
    choice.few = params.rows <= kFewRows;
    choice.tiles = params.rows <= 8 ? 1 : 2;
    choice.split = split(args);
    choice.row_tiles = choice.few ? 1 : static_cast<std::int64_t>(blocks_for(params.rows, kTileX));
    return run_product(x, args.w, params, choice, lane);
}

} // namespace lr::cuda
