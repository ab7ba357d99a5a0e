// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/chunk_cumsum.h"

#include "core/dims.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const ChunkCumsumArgs& args) {
    ShapeCheck check("chunk_cumsum");
    Dim n{"n"}, hv{"Hv"}, chunks{"NC"};
    return check.match("g", args.g, {n, hv}, {DType::kF32})
        .match("chunk_row", args.chunk_row, {chunks}, {DType::kI32})
        .match("chunk_len", args.chunk_len, {chunks}, {DType::kI32})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32})
        .match("g_cumsum", args.g_cumsum, {n, hv}, {DType::kF32})
        .status();
}

Cost cost(const ChunkCumsumArgs& args) {
    return whole_tensor_cost(args, args.g.shape.count());
}

} // namespace lr::ops
