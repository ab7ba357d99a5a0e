// SPDX-License-Identifier: Apache-2.0
//
// BF16 activations, NVFP4 weights.
#include "cuda/gemm/product_launch.h"

namespace lr::cuda::detail {

template Status launch_product<Format<Codes::kBf16, Codes::kNvfp4, false>>(const ProductParams&,
                                                                           const ProductChoice&,
                                                                           const Lane&);

} // namespace lr::cuda::detail
