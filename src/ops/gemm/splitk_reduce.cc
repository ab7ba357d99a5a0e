// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/splitk_reduce.h"

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
    cost.read_bytes = bytes_of(args.partial) + bytes_of(args.n_live);
    cost.write_bytes = bytes_of(args.y);
    cost.flops = args.partial.shape.count();
    return cost;
}

} // namespace lr::ops
