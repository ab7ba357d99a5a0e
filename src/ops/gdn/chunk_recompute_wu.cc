// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/chunk_recompute_wu.h"

#include "core/dims.h"
#include "ops/cost.h"

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
    return check
        .require(
            hv.value() % hk.value() == 0,
            fmt::format("expected Hv a multiple of Hk, got Hv={} Hk={}", hv.value(), hk.value()))
        .require(dk.value() % 16 == 0 && dv.value() % 16 == 0,
                 fmt::format("expected dk and dv multiples of 16, got dk={} dv={}", dk.value(),
                             dv.value()))
        .status();
}

Cost cost(const ChunkRecomputeWuArgs& args) {
    return whole_tensor_cost(args, kGdnChunk * (args.w.shape.count() + args.u.shape.count()));
}

} // namespace lr::ops
