// SPDX-License-Identifier: Apache-2.0
#include "cuda/gemm/product_args.h"

namespace lr::cuda::detail {
namespace {

using ops::ActivationFormat;
using ops::WeightFormat;

bool fp8_weight(WeightFormat format) {
    return format == WeightFormat::kFp8Block || format == WeightFormat::kFp8Channel ||
           format == WeightFormat::kFp8Tensor;
}

// Values of k that one load of a kernel takes.
std::int64_t unit_of(WeightFormat format) {
    return format == WeightFormat::kPlain ? 8 : 16;
}

Status check_operands(std::string_view op, const Activation& x, const ops::Weight& w) {
    if (w.parts.size() != 1)
        return fail(Code::kInternal, "cuda: {}: expected a weight in its device form, got {} parts",
                    op, w.parts.size());
    const bool plain_x = ops::activation_format(x.x, x.scale) == ActivationFormat::kPlain;
    if (plain_x && x.x.dtype != DType::kBF16)
        return fail(Code::kUnsupported, "cuda: {}: expected bf16 activations, got {}", op,
                    dtype_name(x.x.dtype));
    const std::int64_t k = w.columns(), unit = unit_of(w.format);
    if (k % unit != 0)
        return fail(Code::kUnsupported, "cuda: {}: expected K % {} == 0 of {} weights, got K={}",
                    op, unit, numerics::weight_format_name(w.format), k);
    const std::int64_t x_stride = dtype_bytes(x.x.dtype, x.x.row_stride);
    const std::int64_t bytes = x.x.dtype == DType::kE2M1 ? 8 : kVectorBytes;
    if (reinterpret_cast<std::uintptr_t>(x.x.data) % kVectorBytes != 0 ||
        (x.x.rows() > 1 && x_stride % bytes != 0))
        return fail(Code::kUnsupported,
                    "cuda: {}: expected rows of x on {}-byte boundaries, got {} bytes apart", op,
                    bytes, x_stride);
    return {};
}

} // namespace

Result<ProductParams> product_params(std::string_view op, const Activation& x,
                                     const ops::Weight& w) {
    LR_TRY(check_operands(op, x, w));
    const ops::WeightPart& part = w.parts[0];
    ProductParams params{};
    params.w = part.data.data;
    params.w_stride = dtype_bytes(part.data.dtype, part.data.row_stride);
    params.w_scale = part.scale.data;
    params.w_scale_stride = part.scale.row_stride;
    if (w.format == WeightFormat::kFp8Block && part.scale.rows() != part.data.rows())
        params.scale_shift = 7; // 128 rows
    params.row_factor = values<const float>(part.row_factor);
    params.w_rows = w.rows();
    params.x = x.x.data;
    params.x_stride = dtype_bytes(x.x.dtype, x.x.row_stride);
    params.x_scale = x.scale.data;
    params.x_scale_stride = x.scale.row_stride;
    params.x_global = x.global;
    params.per_token = 1;
    params.groups = 1;
    params.outputs = w.rows();
    params.k = static_cast<int>(w.columns());
    params.slices = slices_of(w.columns());
    return params;
}

Status run_product(const Activation& x, const ops::Weight& w, const ProductParams& params,
                   const ProductChoice& choice, const Lane& lane) {
    const ActivationFormat format = ops::activation_format(x.x, x.scale);
    const bool block = w.format == WeightFormat::kFp8Block;
    if (format == ActivationFormat::kPlain && w.format == WeightFormat::kPlain)
        return launch_product<Format<Codes::kBf16, Codes::kBf16, false>>(params, choice, lane);
    if (format == ActivationFormat::kPlain && fp8_weight(w.format))
        return block
                   ? launch_product<Format<Codes::kBf16, Codes::kFp8, true>>(params, choice, lane)
                   : launch_product<Format<Codes::kBf16, Codes::kFp8, false>>(params, choice, lane);
    if (format == ActivationFormat::kPlain)
        return launch_product<Format<Codes::kBf16, Codes::kNvfp4, false>>(params, choice, lane);
    if (format == ActivationFormat::kNvfp4)
        return launch_product<Format<Codes::kNvfp4, Codes::kNvfp4, false>>(params, choice, lane);
    return block ? launch_product<Format<Codes::kFp8, Codes::kFp8, true>>(params, choice, lane)
                 : launch_product<Format<Codes::kFp8, Codes::kFp8, false>>(params, choice, lane);
}

} // namespace lr::cuda::detail
