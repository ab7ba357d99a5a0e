// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/qk_norm_rope_gate.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const QkNormRopeGateArgs& args) {
    ShapeCheck check("qk_norm_rope_gate");
    Dim n("n"), hq("Hq"), hkv("Hkv"), dh("dh"), dh2("2dh");
    check.match("qg", args.qg, {n, hq, dh2}, {DType::kBF16, DType::kF32});
    check.match("k", args.k, {n, hkv, dh}, {DType::kBF16, DType::kF32});
    check.match("positions", args.positions, {n}, {DType::kI32});
    check.match_optional("n_live", args.n_live, {1}, {DType::kI32});
    check.match("q_norm", args.q_norm, {dh}, {DType::kBF16, DType::kF16, DType::kF32});
    check.match("k_norm", args.k_norm, {dh}, {DType::kBF16, DType::kF16, DType::kF32});
    check.match("q", args.q, {n, hq, dh}, {DType::kBF16, DType::kF32});
    check.match("k_out", args.k_out, {n, hkv, dh}, {DType::kBF16, DType::kF32});
    if (!check.status().ok())
        return check.status();
    check.require(dh2.value() == 2 * dh.value(),
                  fmt::format("qg dim 2: expected 2dh={}, got {}", 2 * dh.value(), dh2.value()));
    check.match("gate", args.gate, {n, hq.value() * dh.value()}, {DType::kBF16, DType::kF32});
    check.require(args.rotary_dim > 0 && args.rotary_dim % 2 == 0 && args.rotary_dim <= dh.value(),
                  fmt::format("rotary_dim: expected an even number in [2, dh={}], got {}",
                              dh.value(), args.rotary_dim));
    check.require(args.rope_theta > 0,
                  fmt::format("rope_theta: expected a positive number, got {}", args.rope_theta));
    check.require(args.eps > 0, fmt::format("eps: expected a positive number, got {}", args.eps));
    return check.status();
}

Cost cost(const QkNormRopeGateArgs& args) {
    const std::int64_t heads = args.q.shape[0] * (args.q.shape[1] + args.k.shape[1]); // of all rows
    return whole_tensor_cost(args, heads * (5 * args.q.shape[2] + 3 * args.rotary_dim));
}

} // namespace lr::ops
