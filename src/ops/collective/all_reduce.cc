// SPDX-License-Identifier: Apache-2.0
#include "ops/collective/all_reduce.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const AllReduceArgs& args) {
    ShapeCheck check("all_reduce");
    Dim n("n"), d("D");
    check.match("x", args.x, {n, d}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("y", args.y, {n, d}, {args.x.dtype});
    check.require(args.ranks >= 1 && args.ranks <= kMaxRanks,
                  fmt::format("ranks: expected 1..{}, got {}", kMaxRanks, args.ranks));
    return check.status();
}

Cost cost(const AllReduceArgs& args) {
    if (args.ranks == 1 && !args.y.empty() && args.y.data == args.x.data)
        return {};
    return whole_tensor_cost(args, (args.ranks - 1) * args.y.shape.count());
}

} // namespace lr::ops
