// SPDX-License-Identifier: Apache-2.0
//
// ops/any_op.h: the closed list of ops, as one variant. The step graph holds its nodes' arguments
// in it; a backend binds one launcher to each alternative.
#pragma once

#include "ops/attention/attention.h"
#include "ops/attention/kv_store.h"
#include "ops/attention/qk_norm_rope_gate.h"
#include "ops/attention/sigmoid_gate.h"
#include "ops/collective/all_gather.h"
#include "ops/collective/all_reduce.h"
#include "ops/experts/experts_down.h"
#include "ops/experts/experts_gate_up.h"
#include "ops/experts/finalize.h"
#include "ops/experts/routing_indices.h"
#include "ops/experts/routing_scores.h"
#include "ops/experts/shared_gate_merge.h"
#include "ops/experts/silu_mul.h"
#include "ops/gdn/causal_conv.h"
#include "ops/gdn/chunk_cumsum.h"
#include "ops/gdn/chunk_kkt_solve.h"
#include "ops/gdn/chunk_output.h"
#include "ops/gdn/chunk_recompute_wu.h"
#include "ops/gdn/chunk_state.h"
#include "ops/gdn/gated_norm.h"
#include "ops/gdn/gating.h"
#include "ops/gdn/initial_state_mask.h"
#include "ops/gdn/l2norm.h"
#include "ops/gdn/qkv_split.h"
#include "ops/gdn/recurrent_update.h"
#include "ops/gdn/unpack_conv.h"
#include "ops/gemm/gather_rows.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/linear_splitk.h"
#include "ops/gemm/splitk_reduce.h"
#include "ops/norm/add_rmsnorm.h"
#include "ops/norm/embedding_lookup.h"
#include "ops/norm/zero_fill.h"
#include "ops/quant/fp8_quant.h"
#include "ops/quant/nvfp4_quant.h"
#include "ops/sampling/count_tokens.h"
#include "ops/sampling/sample.h"
#include "ops/sampling/token_logprobs.h"

#include <string_view>
#include <variant>

namespace lr::ops {

using AnyArgs = std::variant<
    EmbeddingLookupArgs, AddRmsnormArgs, AllReduceArgs, AllGatherArgs, ZeroFillArgs, Fp8QuantArgs,
    Nvfp4QuantArgs, LinearArgs, LinearSplitkArgs, SplitkReduceArgs, GatherRowsArgs, UnpackConvArgs,
    RecurrentUpdateArgs, GatedNormArgs, InitialStateMaskArgs, CausalConvArgs, QkvSplitArgs,
    GatingArgs, L2normArgs, ChunkCumsumArgs, ChunkKktSolveArgs, ChunkRecomputeWuArgs,
    ChunkStateArgs, ChunkOutputArgs, QkNormRopeGateArgs, KvStoreArgs, AttentionArgs,
    SigmoidGateArgs, RoutingScoresArgs, RoutingIndicesArgs, ExpertsGateUpArgs, ExpertsDownArgs,
    FinalizeArgs, SiluMulArgs, SharedGateMergeArgs, CountTokensArgs, SampleArgs, TokenLogprobsArgs>;

// The op's stem, the name of its files: "recurrent_update".
std::string_view op_stem(const AnyArgs& args);
Status check(const AnyArgs& args);
Cost cost(const AnyArgs& args);

} // namespace lr::ops
