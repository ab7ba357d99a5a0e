// SPDX-License-Identifier: Apache-2.0
//
// A narrow product. A block takes one run of K for 16 output columns and 8 rows; its eight warps
// are the slices of the run (the tree of gemm/product.h, for K = the run's length), all loads of a
// warp on their way together.
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/product_args.h"

#include <algorithm>

namespace lr::cuda {
namespace {

using namespace detail;

using F = Format<Codes::kBf16, Codes::kBf16, false>;
constexpr int kThreads = kMaxSlices * kWarp;
constexpr int kAhead = 4; // groups of k on their way together

struct Params {
    ProductParams product;
    float* partial; // [splits, n, N]
    int run;
    Slices slices; // of a run
};

__global__ void __launch_bounds__(kThreads) linear_splitk_kernel(Params p) {
    __shared__ float sums[kMaxSlices][8][17];
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
    const int g = lane / 4, t = lane % 4;
    const std::int64_t output0 = std::int64_t{blockIdx.x} * 16;
    const std::int64_t row0 = std::int64_t{blockIdx.y} * 8, split = blockIdx.z;
    const std::int64_t w_row[2] = {min(output0 + g, p.product.outputs - 1),
                                   min(output0 + g + 8, p.product.outputs - 1)};
    const int run_end = min(p.product.k, static_cast<int>(split + 1) * p.run);
    const int k0 = static_cast<int>(split) * p.run + warp * p.slices.length;
    const int k1 = min(run_end, k0 + p.slices.length);
    wait_for_inputs();
    const bool live = row0 + g < p.product.rows && is_live(row0 + g, p.product.n_live);
    float c[4] = {};
    for (int first = k0; first < k1; first += kAhead * F::kGroup) {
        Raw w0[kAhead], w8[kAhead], x[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int k = first + i * F::kGroup + t * F::kUnit;
            w0[i] = k < k1 ? load_w<F>(p.product, w_row[0], k) : Raw{};
            w8[i] = k < k1 ? load_w<F>(p.product, w_row[1], k) : Raw{};
            x[i] = k < k1 && live ? load_x<F>(p.product, row0 + g, k) : Raw{};
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            std::uint32_t a0[F::kPairs], a8[F::kPairs], b[F::kPairs];
            expand_w<F>(w0[i], a0);
            expand_w<F>(w8[i], a8);
            expand_x<F>(x[i], b);
            multiply_group<F>(c, a0, a8, b);
        }
    }
    for (int e = 0; e < 4; ++e)
        sums[warp][2 * t + e % 2][g + e / 2 * 8] = c[e];
    __syncthreads();
    const int column = static_cast<int>(threadIdx.x) / 16, m = threadIdx.x % 16;
    const std::int64_t row = row0 + column, output = output0 + m;
    if (column >= 8 || row >= p.product.rows || output >= p.product.outputs)
        return;
    float sum = 0;
    for (int slice = 0; slice < p.slices.count; ++slice)
        sum += sums[slice][column][m];
    p.partial[(split * p.product.rows + row) * p.product.outputs + output] = sum;
}

} // namespace

Status linear_splitk(const ops::LinearSplitkArgs& args, const Lane& lane) {
    constexpr auto kOp = "linear_splitk";
    const Activation x{args.x, {}, 1.0f};
    Params params{};
    LR_TRY_ASSIGN(params.product, product_params(kOp, x, args.w));
    LR_TRY(require_dtype(kOp, DType::kBF16, {{"w", args.w.parts[0].data}}));
    params.product.n_live = values<const std::int32_t>(args.n_live);
    params.product.rows = args.x.rows();
    params.partial = values<float>(args.partial);
    params.run = static_cast<int>(ops::splitk_run(args.w.columns(), args.partial.shape[0]));
    params.slices = slices_of(params.run);
    if (params.product.rows == 0)
        return {};
    return launch(kOp, linear_splitk_kernel,
                  {{blocks_for(params.product.outputs, 16), blocks_for(params.product.rows, 8),
                    static_cast<unsigned>(args.partial.shape[0])},
                   kThreads},
                  lane.stream, params);
}

} // namespace lr::cuda
