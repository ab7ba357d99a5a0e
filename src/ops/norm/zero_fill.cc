// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/zero_fill.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const ZeroFillArgs& args) {
    ShapeCheck check("zero_fill");
    check.require(!args.y.empty() || args.y.shape.count() == 0, "y: expected a tensor, got none");
    return check.status();
}

Cost cost(const ZeroFillArgs& args) {
    return whole_tensor_cost(args, 0);
}

} // namespace lr::ops
