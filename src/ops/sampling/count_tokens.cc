// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/count_tokens.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const CountTokensArgs& args) {
    ShapeCheck check("count_tokens");
    Dim n("n"), b("B"), s("S"), v("V");
    check.match("ids", args.ids, {n}, {DType::kI32});
    check.match("generated", args.generated, {n}, {DType::kI32});
    check.match("sequence", args.sequence, {n}, {DType::kI32});
    check.match("slot", args.slot, {b}, {DType::kI32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("counts", args.counts, {s, v}, {DType::kU16});
    return check.status();
}

Cost cost(const CountTokensArgs& args) {
    CountTokensArgs indices = args;
    indices.counts = {};
    Cost cost = whole_tensor_cost(indices, 0);
    cost.state_bytes = dtype_bytes(args.counts.dtype, args.ids.shape.count());
    cost.read_bytes += cost.state_bytes;
    cost.write_bytes += cost.state_bytes;
    return cost;
}

} // namespace lr::ops
