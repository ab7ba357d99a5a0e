// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/token_logprobs.h"

#include "ops/cost.h"

namespace lr::ops {

Status check(const TokenLogprobsArgs& args) {
    ShapeCheck check("token_logprobs");
    Dim m("m"), v("V");
    check.match("logits", args.logits, {m, v}, {DType::kF32});
    check.match("wanted", args.wanted, {m}, {DType::kI32});
    check.match("target", args.target, {m}, {DType::kI32});
    check.match("token", args.token, {m}, {DType::kI32});
    check.match("status", args.status, {m}, {DType::kI32});
    check.match_optional("m_live", args.m_live, {1}, {DType::kI32});
    check.match("id", args.id, {m}, {DType::kI32});
    check.match("rank", args.rank, {m}, {DType::kI32});
    check.match("logprob", args.logprob, {m}, {DType::kF64});
    check.match("top_id", args.top_id, {m, kMaxTopLogprobs}, {DType::kI32});
    check.match("top_logprob", args.top_logprob, {m, kMaxTopLogprobs}, {DType::kF64});
    if (check.status().ok())
        check.require(args.vocab_limit >= 1 && args.vocab_limit <= v.value(),
                      fmt::format("vocab_limit: expected a number in [1, V={}], got {}", v.value(),
                                  args.vocab_limit));
    return check.status();
}

Cost cost(const TokenLogprobsArgs& args) {
    TokenLogprobsArgs unwanted = args;
    unwanted.logits = {};
    return whole_tensor_cost(unwanted, 0);
}

} // namespace lr::ops
