// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/initial_state_mask.h"

#include "core/dims.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const InitialStateMaskArgs& args) {
    ShapeCheck check("initial_state_mask");
    Dim sequences{"B"};
    return check.match("prefix_len", args.prefix_len, {sequences}, {DType::kI32})
        .match("mask", args.mask, {sequences}, {DType::kI32})
        .status();
}

Cost cost(const InitialStateMaskArgs& args) {
    return whole_tensor_cost(args, 0);
}

} // namespace lr::ops
