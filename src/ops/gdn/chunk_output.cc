// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/chunk_output.h"

#include "core/dims.h"
#include "ops/cost.h"
#include "ops/gdn_shapes.h"

namespace lr::ops {

Status check(const ChunkOutputArgs& args) {
    ShapeCheck check("chunk_output");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, dv{"dv"}, chunks{"NC"};
    const std::initializer_list<DType> act = {DType::kBF16, DType::kF32};
    check.match("q", args.q, {n, hk, dk}, act)
        .match("k", args.k, {n, hk, dk}, act)
        .match("v_new", args.v_new, {n, hv, dv}, act)
        .match("h", args.h, {chunks, hv, dv, dk}, act)
        .match("g_cumsum", args.g_cumsum, {n, hv}, {DType::kF32})
        .match("chunk_row", args.chunk_row, {chunks}, {DType::kI32})
        .match("chunk_len", args.chunk_len, {chunks}, {DType::kI32})
        .match("o", args.o, {n, hv, dv}, act);
    LR_TRY(check.status());
    check_gdn_heads(check, hk.value(), hv.value());
    check_gdn_width(check, "dk", dk.value());
    check_gdn_width(check, "dv", dv.value());
    return check.status();
}

Cost cost(const ChunkOutputArgs& args) {
    const std::int64_t n = args.q.shape[0];
    const std::int64_t state = args.h.shape.row_count();
    const std::int64_t scores = args.q.shape.row_count() + args.v_new.shape.row_count();
    Cost cost = whole_tensor_cost(args, n * (2 * state + kGdnChunk * scores));
    cost.read_bytes -= tensor_bytes(args.o); // zeroed before, only written here
    cost.state_bytes = 0;
    return cost;
}

} // namespace lr::ops
