// SPDX-License-Identifier: Apache-2.0
#include "ops/any_op.h"

#include <array>

namespace lr::ops {
namespace {

// In the order of AnyArgs.
constexpr std::array kStems = {
    "embedding_lookup",
    "add_rmsnorm",
    "all_reduce",
    "all_gather",
    "zero_fill",
    "fp8_quant",
    "nvfp4_quant",
    "linear",
    "linear_splitk",
    "splitk_reduce",
    "gather_rows",
    "unpack_conv",
    "recurrent_update",
    "gated_norm",
    "initial_state_mask",
    "causal_conv",
    "qkv_split",
    "gating",
    "l2norm",
    "chunk_cumsum",
    "chunk_kkt_solve",
    "chunk_recompute_wu",
    "chunk_state",
    "chunk_output",
    "qk_norm_rope_gate",
    "kv_store",
    "attention",
    "sigmoid_gate",
    "routing_scores",
    "routing_indices",
    "experts_gate_up",
    "experts_down",
    "finalize",
    "silu_mul",
    "shared_gate_merge",
    "count_tokens",
    "sample",
    "token_logprobs",
};
static_assert(kStems.size() == std::variant_size_v<AnyArgs>);

} // namespace

std::string_view op_stem(const AnyArgs& args) {
    return kStems[args.index()];
}

Status check(const AnyArgs& args) {
    return std::visit([](const auto& typed) { return check(typed); }, args);
}

Cost cost(const AnyArgs& args) {
    return std::visit([](const auto& typed) { return cost(typed); }, args);
}

} // namespace lr::ops
