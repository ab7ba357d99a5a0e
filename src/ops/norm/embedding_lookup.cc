// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/embedding_lookup.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const EmbeddingLookupArgs& args) {
    ShapeCheck check("embedding_lookup");
    Dim n("n"), d("D"), v("V");
    check.match("ids", args.ids, {n}, {DType::kI32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.require(args.table.present(), "table: expected a tensor, got none");
    check.require(
        args.table.format == WeightFormat::kPlain,
        fmt::format("table: expected format bf16, got {}", weight_format_name(args.table.format)));
    check.match_optional("table", ConstView(nullptr, args.table.dtype, args.table.shape), {v, d},
                         {DType::kBF16, DType::kF16, DType::kF32});
    check.match("y", args.y, {n, d}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const EmbeddingLookupArgs& args) {
    Cost cost;
    cost.weight_bytes = dtype_bytes(args.table.dtype, args.y.shape.count());
    cost.read_bytes = cost.weight_bytes + tensor_bytes(args.ids) + tensor_bytes(args.n_live);
    cost.write_bytes = tensor_bytes(args.y);
    return cost;
}

} // namespace lr::ops
