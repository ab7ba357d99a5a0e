// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/sample.h"

#include "numerics/softmax_weight.h"
#include "ops/cost.h"

namespace lr::ops {

Status check(const SampleArgs& args) {
    ShapeCheck check("sample");
    Dim m("m"), v("V"), s("S"), nb("NB");
    check.match("logits", args.logits, {m, v}, {DType::kF32});
    check.match("temperature", args.temperature, {m}, {DType::kF32});
    check.match("top_k", args.top_k, {m}, {DType::kI32});
    check.match("top_p", args.top_p, {m}, {DType::kF32});
    check.match("min_p", args.min_p, {m}, {DType::kF32});
    check.match("repetition", args.repetition, {m}, {DType::kF32});
    check.match("frequency", args.frequency, {m}, {DType::kF32});
    check.match("presence", args.presence, {m}, {DType::kF32});
    check.match("count_slot", args.count_slot, {m}, {DType::kI32});
    check.match("counts", args.counts, {s, v}, {DType::kU16});
    check.match("bias_range", args.bias_range, {m, 2}, {DType::kI32});
    check.match("bias_id", args.bias_id, {nb}, {DType::kI32});
    check.match("bias_value", args.bias_value, {nb}, {DType::kF32});
    check.match("seed", args.seed, {m}, {DType::kI64});
    check.match("stream", args.stream, {m}, {DType::kI32});
    check.match("position", args.position, {m}, {DType::kI32});
    check.match_optional("m_live", args.m_live, {1}, {DType::kI32});
    check.match("token", args.token, {m}, {DType::kI32});
    check.match("status", args.status, {m}, {DType::kI32});
    if (!check.status().ok())
        return check.status();
    check.require(v.value() <= numerics::kMaxWeights,
                  fmt::format("V: expected at most {}, got {}", numerics::kMaxWeights, v.value()));
    check.require(args.vocab_limit >= 1 && args.vocab_limit <= v.value(),
                  fmt::format("vocab_limit: expected a number in [1, V={}], got {}", v.value(),
                              args.vocab_limit));
    return check.status();
}

Cost cost(const SampleArgs& args) {
    SampleArgs always = args;
    always.counts = {};
    always.bias_id = {};
    always.bias_value = {};
    return whole_tensor_cost(always, 4 * args.logits.shape.count());
}

} // namespace lr::ops
