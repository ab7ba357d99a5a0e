// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/fp8_quant.h"

#include "numerics/quantize.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const Fp8QuantArgs& args) {
    ShapeCheck check("fp8_quant");
    Dim n("n"), k("K");
    check.match("x", args.x, {n, k}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("q", args.q, {n, k}, {DType::kE4M3});
    check.require(args.group == 0 || args.group == numerics::kFp8Group,
                  fmt::format("group: expected 0 or 128, got {}", args.group));
    if (!check.status().ok())
        return check.status();
    if (args.scale.shape.rank() == 0) {
        check.require(args.group == 0 && args.static_scale > 0,
                      fmt::format("scale is absent: expected group 0 and static_scale > 0, got "
                                  "group {} and static_scale {}",
                                  args.group, args.static_scale));
    } else if (args.group == 0) {
        check.match("scale", args.scale, {n}, {DType::kF32});
    } else {
        const std::int64_t groups = (k.value() + args.group - 1) / args.group;
        check.match("scale", args.scale, {n, groups}, {DType::kF32});
    }
    return check.status();
}

Cost cost(const Fp8QuantArgs& args) {
    return whole_tensor_cost(args, 3 * args.x.shape.count());
}

} // namespace lr::ops
