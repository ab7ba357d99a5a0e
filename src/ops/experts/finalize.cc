// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/finalize.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const FinalizeArgs& args) {
    ShapeCheck check("finalize");
    Dim rows("rows"), d("D"), n("n"), k("K");
    check.match("z", args.z, {rows, d}, {DType::kBF16, DType::kF32});
    check.match("weights", args.weights, {n, k}, {DType::kBF16, DType::kF32});
    if (check.status().ok())
        check.match("row_of", args.row_of, {n.value() * k.value()}, {DType::kI32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("y", args.y, {n, d}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const FinalizeArgs& args) {
    const std::int64_t pairs = args.weights.shape.count();
    const std::int64_t width = args.y.shape[1];
    Cost cost;
    cost.read_bytes = dtype_bytes(args.z.dtype, pairs * width) + tensor_bytes(args.weights) +
                      tensor_bytes(args.row_of) + tensor_bytes(args.n_live);
    cost.write_bytes = tensor_bytes(args.y);
    cost.flops = 2 * pairs * width;
    return cost;
}

} // namespace lr::ops
