// SPDX-License-Identifier: Apache-2.0
//
// cuda/gemm/product_args.h: from the operands of an op to a launch of gemm/product.h. For .cu files
// only.
#pragma once

#include "cuda/gemm/product.h"
#include "ops/operand.h"

#include <string_view>

namespace lr::cuda::detail {

// The activations of a product as ops hold them.
struct Activation {
    ConstView x, scale;
    float global = 1.0f;
};

// Operands alone: rows, groups and results are the caller's. kUnsupported: a pair of formats,
// dtype, K or alignment that the kernels do not have.
Result<ProductParams> product_params(std::string_view op, const Activation& x,
                                     const ops::Weight& w);

Status run_product(const Activation& x, const ops::Weight& w, const ProductParams& params,
                   const ProductChoice& choice, const Lane& lane);

} // namespace lr::cuda::detail
