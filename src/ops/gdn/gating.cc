// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/gating.h"

#include "core/dims.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const GatingArgs& args) {
    ShapeCheck check("gating");
    Dim n{"n"}, hv{"Hv"};
    const std::initializer_list<DType> floats = {DType::kBF16, DType::kF32};
    const std::initializer_list<DType> weights = {DType::kBF16, DType::kF16, DType::kF32};
    check.match("g", args.g, {n, hv}, {DType::kF32})
        .match("beta", args.beta, {n, hv}, {DType::kF32})
        .match("a_log", args.a_log, {hv}, weights)
        .match("dt_bias", args.dt_bias, {hv}, weights)
        .match_optional("n_live", args.n_live, {1}, {DType::kI32});
    LR_TRY(check.status());
    Dim columns{"2*Hv", 2 * hv.value()};
    return check.match("ba", args.ba, {n, columns}, floats).status();
}

Cost cost(const GatingArgs& args) {
    return whole_tensor_cost(args, 8 * args.g.shape.count());
}

} // namespace lr::ops
