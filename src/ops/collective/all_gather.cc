// SPDX-License-Identifier: Apache-2.0
#include "ops/collective/all_gather.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const AllGatherArgs& args) {
    ShapeCheck check("all_gather");
    Dim n("n"), columns("N");
    check.match("x", args.x, {n, columns}, {DType::kBF16, DType::kF32});
    check.require(args.ranks >= 1 && args.ranks <= kMaxRanks,
                  fmt::format("ranks: expected 1..{}, got {}", kMaxRanks, args.ranks));
    if (check.status().ok())
        check.match("y", args.y, {n, args.ranks * columns.value()}, {args.x.dtype});
    return check.status();
}

Cost cost(const AllGatherArgs& args) {
    return args.ranks == 1 ? Cost{} : whole_tensor_cost(args, 0);
}

} // namespace lr::ops
