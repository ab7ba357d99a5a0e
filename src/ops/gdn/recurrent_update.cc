// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/recurrent_update.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const RecurrentUpdateArgs& args) {
    ShapeCheck check("recurrent_update");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, dv{"dv"}, slots{"S"};
    const std::initializer_list<DType> floats = {DType::kBF16, DType::kF32};
    const std::initializer_list<DType> weights = {DType::kBF16, DType::kF16, DType::kF32};
    check.match("q", args.q, {n, hk, dk}, floats)
        .match("k", args.k, {n, hk, dk}, floats)
        .match("v", args.v, {n, hv, dv}, floats)
        .match("b", args.b, {n, hv}, floats)
        .match("a", args.a, {n, hv}, floats)
        .match("a_log", args.a_log, {hv}, weights)
        .match("dt_bias", args.dt_bias, {hv}, weights)
        .match("slot", args.slot, {n}, {DType::kI32})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("ssm_state", args.ssm_state, {slots, hv, dv, dk}, floats)
        .match("o", args.o, {n, hv, dv}, floats);
    LR_TRY(check.status());
    check_gdn_heads(check, hk.value(), hv.value());
    check_gdn_width(check, "dk", dk.value());
    check_gdn_width(check, "dv", dv.value());
    return check.status();
}

Cost cost(const RecurrentUpdateArgs& args) {
    RecurrentUpdateArgs touched = args; // one slot for each row
    touched.ssm_state.shape[0] = args.q.shape[0];
    return whole_tensor_cost(touched, 7 * touched.ssm_state.shape.count());
}

} // namespace lr::ops
