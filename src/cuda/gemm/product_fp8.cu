// SPDX-License-Identifier: Apache-2.0
//
// FP8 activations with a scale for a token or the tensor, FP8 weights likewise.
#include "cuda/gemm/product_launch.h"

namespace lr::cuda::detail {

template Status launch_product<Format<Codes::kFp8, Codes::kFp8, false>>(const ProductParams&,
                                                                        const ProductChoice&,
                                                                        const Lane&);

} // namespace lr::cuda::detail
