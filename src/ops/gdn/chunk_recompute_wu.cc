// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/chunk_recompute_wu.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const ChunkRecomputeWuArgs& args) {
    ShapeCheck check("chunk_recompute_wu");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, dv{"dv"}, chunks{"NC"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    check.match("k", args.k, {n, hk, dk}, act)
        .match("v", args.v, {n, hv, dv}, act)
        .match("beta", args.beta, {n, hv}, {DType::kF32})
        .match("g_cumsum", args.g_cumsum, {n, hv}, {DType::kF32})
        .match("a_inv", args.a_inv, {n, hv, kGdnChunk}, act)
        .match("chunk_row", args.chunk_row, {chunks}, {DType::kI32})
        .match("chunk_len", args.chunk_len, {chunks}, {DType::kI32})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("w", args.w, {n, hv, dk}, act)
        .match("u", args.u, {n, hv, dv}, act);
    LR_TRY(check.status());
    check_gdn_heads(check, hk.value(), hv.value());
    check_gdn_width(check, "dk", dk.value());
    check_gdn_width(check, "dv", dv.value());
    return check.status();
}

Cost cost(const ChunkRecomputeWuArgs& args) {
    return whole_tensor_cost(args, kGdnChunk * (args.w.shape.count() + args.u.shape.count()));
}

} // namespace lr::ops
