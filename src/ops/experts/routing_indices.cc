// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/routing_indices.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const RoutingIndicesArgs& args) {
    ShapeCheck check("routing_indices");
    Dim n("n"), k("K"), local("L"), rows("rows");
    check.match("ids", args.ids, {n, k}, {DType::kI32});
    check.match_optional("weights", args.weights, {n, k}, {DType::kBF16, DType::kF32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("counts", args.counts, {local}, {DType::kI32});
    check.match("start", args.start, {local}, {DType::kI32});
    check.match("end", args.end, {local}, {DType::kI32});
    check.match("row_map", args.row_map, {rows}, {DType::kI32});
    if (check.status().ok())
        check.match("row_of", args.row_of, {n.value() * k.value()}, {DType::kI32});
    check.match_optional("weights_out", args.weights_out, {n, k}, {args.weights.dtype});
    check.require(args.weights.empty() == args.weights_out.empty(),
                  "weights and weights_out: expected both or neither, got one");
    check.require(args.align >= 1, fmt::format("align: expected >= 1, got {}", args.align));
    check.require(args.first_expert >= 0,
                  fmt::format("first_expert: expected >= 0, got {}", args.first_expert));
    return check.status();
}

Cost cost(const RoutingIndicesArgs& args) {
    Cost cost;
    cost.read_bytes =
        tensor_bytes(args.ids) + tensor_bytes(args.weights) + tensor_bytes(args.n_live);
    cost.write_bytes = tensor_bytes(args.counts) + tensor_bytes(args.start) +
                       tensor_bytes(args.end) + tensor_bytes(args.row_map) +
                       tensor_bytes(args.row_of) + tensor_bytes(args.weights_out);
    return cost;
}

} // namespace lr::ops
