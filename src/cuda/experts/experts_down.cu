// SPDX-License-Identifier: Apache-2.0
#include "cuda/experts/experts.h"
#include "cuda/experts/grouped.h"

namespace lr::cuda {

Status experts_down(const ops::ExpertsDownArgs& args, const Lane& lane) {
    using namespace detail;
    constexpr auto kOp = "experts_down";
    LR_TRY(require_model_precision(kOp, args));
    const Activation f{args.f, args.f_scale, args.f_global};
    LR_TRY_ASSIGN(ProductParams params, product_params(kOp, f, args.w));
    set_groups(params, args.start, args.end, args.f.rows());
    params.y = args.z.data;
    params.y_stride = args.z.row_stride;
    params.y_is_f32 = args.z.dtype == DType::kF32;
    if (args.f.rows() == 0)
        return {};
    return run_product(f, args.w, params, grouped_choice(args.f.rows(), params.groups, false),
                       lane);
}

} // namespace lr::cuda
