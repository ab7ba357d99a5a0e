// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/gather_rows.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const GatherRowsArgs& args) {
    ShapeCheck check("gather_rows");
    Dim n("n"), d("D"), m("m");
    check.match("x", args.x, {n, d},
                {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kUE8M0, DType::kU8,
                 DType::kI32, DType::kI64});
    check.match("rows", args.rows, {m}, {DType::kI32});
    check.match("y", args.y, {m, d}, {args.x.dtype});
    return check.status();
}

Cost cost(const GatherRowsArgs& args) {
    Cost cost;
    cost.read_bytes = tensor_bytes(args.rows) + tensor_bytes(args.y);
    cost.write_bytes = tensor_bytes(args.y);
    return cost;
}

} // namespace lr::ops
