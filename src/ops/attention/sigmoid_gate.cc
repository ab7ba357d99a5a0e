// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/sigmoid_gate.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const SigmoidGateArgs& args) {
    ShapeCheck check("sigmoid_gate");
    Dim n("n"), c("C");
    check.match("o", args.o, {n, c}, {DType::kBF16, DType::kF32});
    check.match("gate", args.gate, {n, c}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("y", args.y, {n, c}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const SigmoidGateArgs& args) {
    return whole_tensor_cost(args, 5 * args.y.shape.count());
}

} // namespace lr::ops
