// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/l2norm.h"

#include "core/dims.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const L2normArgs& args) {
    ShapeCheck check("l2norm");
    Dim n{"n"}, heads{"H"}, width{"d"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    return check.match("x", args.x, {n, heads, width}, act)
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("y", args.y, {n, heads, width}, act)
        .status();
}

Cost cost(const L2normArgs& args) {
    return whole_tensor_cost(args, 3 * args.x.shape.count());
}

} // namespace lr::ops
