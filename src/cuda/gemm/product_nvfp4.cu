// SPDX-License-Identifier: Apache-2.0
//
// NVFP4 activations and weights.
#include "cuda/gemm/product_launch.h"

namespace lr::cuda::detail {

template Status launch_product<Format<Codes::kNvfp4, Codes::kNvfp4, false>>(const ProductParams&,
                                                                            const ProductChoice&,
                                                                            const Lane&);

} // namespace lr::cuda::detail
