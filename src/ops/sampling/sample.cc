// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/sample.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const SampleArgs& args) {
    ShapeCheck check("sample");
    Dim m("m"), v("V");
    check.match("logits", args.logits, {m, v}, {DType::kF32});
    check.match("temperature", args.temperature, {m}, {DType::kF32});
    check.match("seed", args.seed, {m}, {DType::kI64});
    check.match("position", args.position, {m}, {DType::kI32});
    check.match_optional("m_live", args.m_live, {1}, {DType::kI32});
    check.match("token", args.token, {m}, {DType::kI32});
    check.match("status", args.status, {m}, {DType::kI32});
    if (!check.status().ok())
        return check.status();
    check.require(args.vocab_limit >= 1 && args.vocab_limit <= v.value(),
                  fmt::format("vocab_limit: expected a number in [1, V={}], got {}", v.value(),
                              args.vocab_limit));
    return check.status();
}

Cost cost(const SampleArgs& args) {
    return whole_tensor_cost(args, 4 * args.logits.shape.count());
}

} // namespace lr::ops
