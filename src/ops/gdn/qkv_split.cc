// SPDX-License-Identifier: Apache-2.0
#include "ops/gdn/qkv_split.h"

#include "core/dims.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const QkvSplitArgs& args) {
    ShapeCheck check("qkv_split");
    Dim n{"n"}, hk{"Hk"}, hv{"Hv"}, dk{"dk"}, dv{"dv"};
    check.match("q", args.q, {n, hk, dk}, {DType::kBF16, DType::kF32})
        .match("k", args.k, {n, hk, dk}, {args.q.dtype})
        .match("v", args.v, {n, hv, dv}, {args.q.dtype})
        .match_optional("n_live", args.n_live, {1}, {DType::kI32});
    LR_TRY(check.status());
    Dim channels{"C", 2 * hk.value() * dk.value() + hv.value() * dv.value()};
    return check.match("x", args.x, {n, channels}, {args.q.dtype}).status();
}

Cost cost(const QkvSplitArgs& args) {
    return whole_tensor_cost(args, 0);
}

} // namespace lr::ops
