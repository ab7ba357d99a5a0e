// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/splitk_reduce.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const SplitkReduceArgs& args) {
    ShapeCheck check("splitk_reduce");
    Dim n("n"), columns("N"), splits("splits");
    check.match("partial", args.partial, {splits, n, columns}, {DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("y", args.y, {n, columns}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const SplitkReduceArgs& args) {
    Cost cost;
    cost.read_bytes = tensor_bytes(args.partial) + tensor_bytes(args.n_live);
    cost.write_bytes = tensor_bytes(args.y);
    cost.flops = args.partial.shape.count();
    return cost;
}

} // namespace lr::ops
