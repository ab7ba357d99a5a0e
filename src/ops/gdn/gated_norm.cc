// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/gated_norm.h"

#include "core/dims.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const GatedNormArgs& args) {
    ShapeCheck check("gated_norm");
    Dim n{"n"}, hv{"Hv"}, dv{"dv"};
    const std::initializer_list<DType> floats = {DType::kBF16, DType::kF32};
    const std::initializer_list<DType> weights = {DType::kBF16, DType::kF16, DType::kF32};
    check.match("o", args.o, {n, hv, dv}, floats)
        .match("z", args.z, {n, hv, dv}, floats)
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("weight", args.weight, {dv}, weights);
    LR_TRY(check.status());
    Dim columns{"Hv*dv", hv.value() * dv.value()};
    return check.match("y", args.y, {n, columns}, floats)
        .require(args.eps > 0.0f, fmt::format("expected eps > 0, got {}", args.eps))
        .status();
}

Cost cost(const GatedNormArgs& args) {
    return whole_tensor_cost(args, 9 * args.o.shape.count());
}

} // namespace lr::ops
