// SPDX-License-Identifier: Apache-2.0
//
// BF16 activations, FP8 weights with a scale for a channel or the tensor.
//
// Spills: 8 bytes of bookkeeping in the tile kernels, so that two blocks share a multiprocessor.
#include "cuda/gemm/product_launch.h"

namespace lr::cuda::detail {

template Status launch_product<Format<Codes::kBf16, Codes::kFp8, false>>(const ProductParams&,
                                                                         const ProductChoice&,
                                                                         const Lane&);

} // namespace lr::cuda::detail
