// SPDX-License-Identifier: Apache-2.0
#include "ops/experts/experts_down.h"

#include "ops/cost.h"

#include <cmath>

namespace lr::ops {

Status check(const ExpertsDownArgs& args) {
    ShapeCheck check("experts_down");
    Dim rows("rows"), width("I"), local("L"), d("D");
    check_activation(check, "f", args.f, args.f_scale, rows, width);
    check.match("start", args.start, {local}, {DType::kI32});
    check.match("end", args.end, {local}, {DType::kI32});
    check_weight(check, args.w, {local, d, width});
    check_product(check, activation_format(args.f, args.f_scale), args.w.format);
    check.match("z", args.z, {rows, d}, {DType::kBF16, DType::kF32});
    return check.status();
}

Cost cost(const ExpertsDownArgs& args) {
    const std::int64_t local = args.w.shape[0];
    const std::int64_t capacity = args.f.rows();
    const double rows = args.load.live_rows(local, capacity);
    Cost cost;
    cost.weight_bytes = share_of(args.load.live_experts(local), local, weight_bytes(args.w));
    cost.read_bytes = share_of(rows, capacity, tensor_bytes(args.f) + tensor_bytes(args.f_scale)) +
                      tensor_bytes(args.start) + tensor_bytes(args.end) + cost.weight_bytes;
    cost.write_bytes = share_of(rows, capacity, tensor_bytes(args.z));
    cost.flops = std::llround(rows) * 2 * args.w.rows() * args.w.columns();
    return cost;
}

} // namespace lr::ops
