// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/linear.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const LinearArgs& args) {
    ShapeCheck check("linear");
    Dim n("n"), k("K"), columns("N");
    check_activation(check, "x", args.x, args.x_scale, n, k);
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check_weight(check, args.w, {columns, k});
    check_product(check, activation_format(args.x, args.x_scale), args.w.format);
    check.match("y", args.y, {n, columns}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const LinearArgs& args) {
    Cost cost;
    cost.weight_bytes = weight_bytes(args.w);
    cost.read_bytes = tensor_bytes(args.x) + tensor_bytes(args.x_scale) +
                      tensor_bytes(args.n_live) + cost.weight_bytes;
    cost.write_bytes = tensor_bytes(args.y);
    cost.flops = 2 * args.x.rows() * args.w.rows() * args.w.columns();
    return cost;
}

} // namespace lr::ops
