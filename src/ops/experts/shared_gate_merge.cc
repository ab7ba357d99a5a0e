// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/shared_gate_merge.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const SharedGateMergeArgs& args) {
    ShapeCheck check("shared_gate_merge");
    Dim n("n"), d("D");
    check.match("m", args.m, {n, d}, {DType::kBF16, DType::kF32});
    check.match("shared", args.shared, {n, d}, {DType::kBF16, DType::kF32});
    check.match("routed", args.routed, {n, d}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("gate_weight", args.gate_weight, {1, d}, {DType::kBF16, DType::kF16, DType::kF32});
    check.match("y", args.y, {n, d}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const SharedGateMergeArgs& args) {
    Cost cost;
    cost.weight_bytes = tensor_bytes(args.gate_weight);
    cost.read_bytes = tensor_bytes(args.m) + tensor_bytes(args.shared) + tensor_bytes(args.routed) +
                      tensor_bytes(args.n_live) + cost.weight_bytes;
    cost.write_bytes = tensor_bytes(args.y);
    cost.flops = 4 * args.y.shape.count();
    return cost;
}

} // namespace lr::ops
