// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/unpack_conv.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const UnpackConvArgs& args) {
    ShapeCheck check("unpack_conv");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, dv{"dv"}, slots{"S"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    check.match("q", args.q, {n, hk, dk}, act)
        .match("k", args.k, {n, hk, dk}, act)
        .match("v", args.v, {n, hv, dv}, act)
        .match("z", args.z, {n, hv, dv}, act)
        .match("b", args.b, {n, hv}, act)
        .match("a", args.a, {n, hv}, act);
    LR_TRY(check.status());

    Dim channels{"C", 2 * hk.value() * dk.value() + hv.value() * dv.value()};
    Dim columns{"C+Hv*dv", channels.value() + hv.value() * dv.value()};
    check.match("qkvz", args.qkvz, {n, columns}, act)
        .match("ba", args.ba, {n, 2 * hv.value()}, act)
        .match("slot", args.slot, {n}, {DType::kI32})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("conv_state", args.conv_state, {slots, channels, 3}, {args.qkvz.dtype});
    check_conv_weight(check, args.conv, channels.value());
    return check.status();
}

Cost cost(const UnpackConvArgs& args) {
    UnpackConvArgs touched = args; // one slot for each row
    touched.conv_state.shape[0] = args.q.shape[0];
    return whole_tensor_cost(touched, 4 * touched.conv_state.shape.count());
}

} // namespace lr::ops
