// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/chunk_state.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const ChunkStateArgs& args) {
    ShapeCheck check("chunk_state");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, dv{"dv"}, slots{"S"};
    Dim chunks{"NC"}, sequences{"B"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    check.match("k", args.k, {n, hk, dk}, act)
        .match("w", args.w, {n, hv, dk}, act)
        .match("u", args.u, {n, hv, dv}, act)
        .match("g_cumsum", args.g_cumsum, {n, hv}, {DType::kF32})
        .match("chunk_row", args.chunk_row, {chunks}, {DType::kI32})
        .match("chunk_len", args.chunk_len, {chunks}, {DType::kI32})
        .match("slot", args.slot, {sequences}, {DType::kI32})
        .match_optional("mask", args.mask, {sequences}, {DType::kI32})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("ssm_state", args.ssm_state, {slots, hv, dv, dk}, act)
        .match("h", args.h, {chunks, hv, dv, dk}, act)
        .match("v_new", args.v_new, {n, hv, dv}, act);
    LR_TRY(check.status());
    Dim offsets{"B+1", sequences.value() + 1};
    check.match("seq_chunk", args.seq_chunk, {offsets}, {DType::kI32});
    check_gdn_heads(check, hk.value(), hv.value());
    check_gdn_width(check, "dk", dk.value());
    check_gdn_width(check, "dv", dv.value());
    return check.status();
}

Cost cost(const ChunkStateArgs& args) {
    ChunkStateArgs touched = args; // one slot for each sequence
    touched.ssm_state.shape[0] = args.slot.shape[0];
    return whole_tensor_cost(touched, 4 * args.u.shape[0] * args.ssm_state.shape.row_count());
}

} // namespace lr::ops
