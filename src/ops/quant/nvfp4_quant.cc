// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/nvfp4_quant.h"

#include "numerics/quantize.h"
#include "ops/cost.h"

#include <cmath>

namespace lr::ops {

Status check(const Nvfp4QuantArgs& args) {
    ShapeCheck check("nvfp4_quant");
    Dim n("n"), k("K");
    check.match("x", args.x, {n, k}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("q", args.q, {n, k}, {DType::kE2M1});
    if (!check.status().ok())
        return check.status();
    check.require(k.value() % numerics::kNvfp4Block == 0,
                  fmt::format("x dim 1: expected K to be a multiple of 16, got {}", k.value()));
    check.match("scale", args.scale, {n, k.value() / numerics::kNvfp4Block}, {DType::kE4M3});
    check.require(
        std::isnormal(args.encode_scale) && args.encode_scale > 0,
        fmt::format("encode_scale: expected a positive normal number, got {}", args.encode_scale));
    return check.status();
}

Cost cost(const Nvfp4QuantArgs& args) {
    return whole_tensor_cost(args, 4 * args.x.shape.count());
}

} // namespace lr::ops
