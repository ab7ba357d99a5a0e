// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/linear_splitk.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const LinearSplitkArgs& args) {
    ShapeCheck check("linear_splitk");
    Dim n("n"), k("K"), columns("N"), splits("splits");
    check.match("x", args.x, {n, k}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.require(
        args.w.format == WeightFormat::kPlain,
        fmt::format("w: expected a plain weight, got {}", weight_format_name(args.w.format)));
    check_weight(check, args.w, {columns, k});
    check.match("partial", args.partial, {splits, n, columns}, {DType::kF32});
    return check.status();
}

Cost cost(const LinearSplitkArgs& args) {
    Cost cost;
    cost.weight_bytes = weight_bytes(args.w);
    cost.read_bytes = tensor_bytes(args.x) + tensor_bytes(args.n_live) + cost.weight_bytes;
    cost.write_bytes = tensor_bytes(args.partial);
    cost.flops = 2 * args.x.rows() * args.w.rows() * args.w.columns();
    return cost;
}

} // namespace lr::ops
