// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/routing_scores.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const RoutingScoresArgs& args) {
    ShapeCheck check("routing_scores");
    Dim n("n"), experts("E"), k("K");
    check.match("logits", args.logits, {n, experts}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("ids", args.ids, {n, k}, {DType::kI32});
    check.match("weights", args.weights, {n, k}, {DType::kBF16, DType::kF32});
    if (check.status().ok())
        check.require(
            k.value() >= 1 && k.value() <= experts.value(),
            fmt::format("ids dim 1: expected K in 1..E={}, got {}", experts.value(), k.value()));
    return check.status();
}

Cost cost(const RoutingScoresArgs& args) {
    Cost cost;
    cost.read_bytes = tensor_bytes(args.logits) + tensor_bytes(args.n_live);
    cost.write_bytes = tensor_bytes(args.ids) + tensor_bytes(args.weights);
    cost.flops = args.logits.shape.count() + 4 * args.ids.shape.count();
    return cost;
}

} // namespace lr::ops
