// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/add_rmsnorm.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const AddRmsnormArgs& args) {
    ShapeCheck check("add_rmsnorm");
    Dim n("n"), d("D");
    check.match("x", args.x, {n, d}, {DType::kBF16, DType::kF32});
    check.match_optional("residual", args.residual, {n, d}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("weight", args.weight, {d}, {DType::kBF16, DType::kF16, DType::kF32});
    check.match_optional("residual_out", args.residual_out, {n, d}, {DType::kBF16, DType::kF32});
    check.match("y", args.y, {n, d}, {DType::kBF16, DType::kF32});
    check.require(args.eps > 0, fmt::format("eps: expected a positive number, got {}", args.eps));
    check.require(args.ranks >= 1 && args.ranks <= kMaxRanks,
                  fmt::format("ranks: expected 1..{}, got {}", kMaxRanks, args.ranks));
    check.require(args.ranks == 1 || args.x.empty() ||
                      (args.x.data != args.y.data && args.x.data != args.residual_out.data),
                  "ranks > 1: nothing may alias x");
    check.require(args.y.empty() || args.y.data != args.residual_out.data,
                  "y and residual_out must be different buffers");
    return check.status();
}

Cost cost(const AddRmsnormArgs& args) {
    Cost cost = whole_tensor_cost(args, (6 + args.ranks) * args.y.shape.count());
    cost.read_bytes += (args.ranks - 1) * args.x.bytes();
    return cost;
}

} // namespace lr::ops
