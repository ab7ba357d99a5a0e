// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_launch.h: launch_product for one pair of formats. For .cu files, each of which
// instantiates one.
#pragma once

#include "cuda/gemm/product_few.h"
#include "cuda/gemm/product_tile.h"

namespace lr::cuda::detail {

template <typename F>
Status launch_product(const ProductParams& params, const ProductChoice& choice, const Lane& lane) {
    if (choice.few) {
        if (choice.gate)
            return choice.tiles == 1 ? launch_few<F, 1, true>(params, choice, lane)
                                     : launch_few<F, 2, true>(params, choice, lane);
        return choice.tiles == 1 ? launch_few<F, 1, false>(params, choice, lane)
                                 : launch_few<F, 2, false>(params, choice, lane);
    }
    if (choice.gate)
        return launch_tile<F, true, false>(params, choice, lane);
    if (!choice.split)
        return launch_tile<F, false, false>(params, choice, lane);
    LR_TRY((launch_tile<F, false, true>(params, choice, lane)));
    constexpr int kThreads = 256;
    return launch(
        "product sums", sum_slices_kernel<F>,
        {{blocks_for(params.outputs, kThreads), static_cast<unsigned>(params.rows)}, kThreads},
        lane.stream, params);
}

} // namespace lr::cuda::detail
