// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/chunk_kkt_solve.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const ChunkKktSolveArgs& args) {
    ShapeCheck check("chunk_kkt_solve");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, chunks{"NC"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    check.match("k", args.k, {n, hk, dk}, act)
        .match("beta", args.beta, {n, hv}, {DType::kF32})
        .match("g_cumsum", args.g_cumsum, {n, hv}, {DType::kF32})
        .match("chunk_row", args.chunk_row, {chunks}, {DType::kI32})
        .match("chunk_len", args.chunk_len, {chunks}, {DType::kI32})
        .match("a_inv", args.a_inv, {n, hv, kGdnChunk}, act);
    LR_TRY(check.status());
    check_gdn_heads(check, hk.value(), hv.value());
    check_gdn_width(check, "dk", dk.value());
    return check.status();
}

Cost cost(const ChunkKktSolveArgs& args) {
    const std::int64_t key_columns = args.k.shape.row_count();
    const std::int64_t hv = args.beta.shape[1];
    Cost cost =
        whole_tensor_cost(args, args.k.shape[0] * kGdnChunk * (key_columns + hv * kGdnChunk / 3));
    cost.read_bytes -= tensor_bytes(args.a_inv); // zeroed before, only written here
    cost.state_bytes = 0;
    return cost;
}

} // namespace lr::ops
