// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/causal_conv.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const CausalConvArgs& args) {
    ShapeCheck check("causal_conv");
    Dim n{"n"}, channels{"C"}, sequences{"B"}, slots{"S"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    check.match("qkv", args.qkv, {n, channels}, act)
        .match("slot", args.slot, {sequences}, {DType::kI32})
        .match("mask", args.mask, {sequences}, {DType::kI32})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("conv_state", args.conv_state, {slots, channels, 3}, {args.qkv.dtype})
        .match("y", args.y, {n, channels}, act);
    LR_TRY(check.status());
    Dim offsets{"B+1", sequences.value() + 1};
    check.match("cu_seqlens", args.cu_seqlens, {offsets}, {DType::kI32});
    check_conv_weight(check, args.conv, channels.value());
    return check.status();
}

Cost cost(const CausalConvArgs& args) {
    CausalConvArgs touched = args; // one slot for each sequence
    touched.conv_state.shape[0] = args.slot.shape[0];
    return whole_tensor_cost(touched, 12 * args.y.shape.count());
}

} // namespace lr::ops
