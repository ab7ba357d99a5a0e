// SPDX-License-Identifier: Apache-2.0
//
// One grouped product with SwiGLU in its epilogue. Where f is codes, the product leaves F in
// scratch and a second kernel quantises its live rows.
#include "cuda/experts/experts.h"
#include "cuda/experts/grouped.h"
#include "cuda/quant/quant.h"

namespace lr::cuda {
namespace {

using namespace detail;

Status quantise(const ops::ExpertsGateUpArgs& args, ConstView f, const Lane& lane) {
    if (args.f.dtype == DType::kE2M1) {
        ops::Nvfp4QuantArgs quant;
        quant.x = f;
        quant.q = args.f;
        quant.scale = args.f_scale;
        quant.encode_scale = args.f_global;
        return nvfp4_quant(quant, args.start, args.end, lane);
    }
    ops::Fp8QuantArgs quant;
    quant.x = f;
    quant.q = args.f;
    quant.scale = args.f_scale;
    quant.group = args.f_scale.shape.rank() == 2 ? 128 : 0;
    quant.static_scale = args.f_scale.empty() ? args.f_global : 0.0f;
    return fp8_quant(quant, args.start, args.end, lane);
}

} // namespace

std::int64_t experts_gate_up_scratch_bytes(const ops::ExpertsGateUpArgs& args) {
    return args.f.dtype == DType::kBF16 ? 0 : dtype_bytes(DType::kBF16, args.f.shape.count());
}

Status experts_gate_up(const ops::ExpertsGateUpArgs& args, const Lane& lane) {
    constexpr auto kOp = "experts_gate_up";
    LR_TRY(require_model_precision(kOp, args));
    const Activation x{args.x, args.x_scale, args.x_global};
    LR_TRY_ASSIGN(ProductParams params, product_params(kOp, x, args.w));
    if (experts_gate_up_scratch_bytes(args) > lane.scratch_bytes)
        return fail(Code::kInternal, "cuda: experts_gate_up: expected {} bytes of scratch, got {}",
                    experts_gate_up_scratch_bytes(args), lane.scratch_bytes);
    const bool codes = args.f.dtype != DType::kBF16;
    const View f = codes ? View(lane.scratch, DType::kBF16, args.f.shape) : args.f;
    set_groups(params, args.start, args.end, f.rows());
    params.row_map = values<const std::int32_t>(args.row_map);
    params.per_token = args.per_token;
    params.outputs = f.shape[1];
    params.y = f.data;
    params.y_stride = f.row_stride;
    if (f.rows() == 0)
        return {};
    LR_TRY(run_product(x, args.w, params, grouped_choice(f.rows(), params.groups, true), lane));
    return codes ? quantise(args, f, lane) : Status();
}

} // namespace lr::cuda
