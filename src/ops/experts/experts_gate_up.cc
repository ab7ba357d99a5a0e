// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/experts_gate_up.h"

#include "ops/cost.h"

#include <cmath>

namespace lr::ops {
Status check(const ExpertsGateUpArgs& args) {
    ShapeCheck check("experts_gate_up");
    Dim n("n"), d("D"), local("L"), rows("rows"), width("I");
    check_activation(check, "x", args.x, args.x_scale, n, d);
    check.match("start", args.start, {local}, {DType::kI32});
    check.match("end", args.end, {local}, {DType::kI32});
    check.match("row_map", args.row_map, {rows}, {DType::kI32});
    check_activation(check, "f", args.f, args.f_scale, rows, width);
    if (check.status().ok())
        check_weight(check, args.w, {local, 2 * width.value(), d});
    if (check.status().ok() && args.w.bound()) {
        const auto per_expert = static_cast<std::int64_t>(args.w.parts.size()) / local.value();
        check.require(per_expert == 1 || per_expert == 2,
                      fmt::format("w: expected 1 or 2 parts for each expert, got {}", per_expert));
    }
    check_product(check, activation_format(args.x, args.x_scale), args.w.format);
    check.require(args.per_token >= 1,
                  fmt::format("per_token: expected >= 1, got {}", args.per_token));
    return check.status();
}

Cost cost(const ExpertsGateUpArgs& args) {
    const std::int64_t local = args.w.shape[0];
    const std::int64_t capacity = args.f.rows();
    const double rows = args.load.live_rows(local, capacity);
    Cost cost;
    cost.weight_bytes = share_of(args.load.live_experts(local), local, weight_bytes(args.w));
    cost.read_bytes = tensor_bytes(args.x) + tensor_bytes(args.x_scale) + tensor_bytes(args.start) +
                      tensor_bytes(args.end) +
                      share_of(rows, capacity, tensor_bytes(args.row_map)) + cost.weight_bytes;
    cost.write_bytes = share_of(rows, capacity, tensor_bytes(args.f) + tensor_bytes(args.f_scale));
    cost.flops = std::llround(rows) * 2 * args.w.rows() * args.w.columns();
    return cost;
}

} // namespace lr::ops
