// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/silu_mul.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const SiluMulArgs& args) {
    ShapeCheck check("silu_mul");
    Dim n("n"), width("I");
    check.match("y", args.y, {n, width}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    if (check.status().ok())
        check.match("gate_up", args.gate_up, {n, 2 * width.value()}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const SiluMulArgs& args) {
    Cost cost;
    cost.read_bytes = tensor_bytes(args.gate_up) + tensor_bytes(args.n_live);
    cost.write_bytes = tensor_bytes(args.y);
    cost.flops = 5 * args.y.shape.count();
    return cost;
}

} // namespace lr::ops
