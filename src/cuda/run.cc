// SPDX-License-Identifier: Apache-2.0
#include "cuda/run.h"

#include "cuda/attention/attention.h"
#include "cuda/experts/experts.h"
#include "cuda/gdn/gdn.h"
#include "cuda/gemm/gemm.h"
#include "cuda/norm/norm.h"
#include "cuda/quant/quant.h"
#include "cuda/sampling/sampling.h"

namespace lr::cuda {
namespace {

// One launcher for each op: the whole table of the CUDA backend.
struct Launcher {
    const Lane& lane;

#define LR_CUDA_OP(Args, function)                                                                 \
    Status operator()(const ops::Args& args) const {                                               \
        return function(args, lane);                                                               \
    }
    LR_CUDA_OP(EmbeddingLookupArgs, embedding_lookup)
    LR_CUDA_OP(AddRmsnormArgs, add_rmsnorm)
    LR_CUDA_OP(ZeroFillArgs, zero_fill)
    LR_CUDA_OP(Fp8QuantArgs, fp8_quant)
    LR_CUDA_OP(Nvfp4QuantArgs, nvfp4_quant)
    LR_CUDA_OP(LinearArgs, linear)
    LR_CUDA_OP(LinearSplitkArgs, linear_splitk)
    LR_CUDA_OP(SplitkReduceArgs, splitk_reduce)
    LR_CUDA_OP(GatherRowsArgs, gather_rows)
    LR_CUDA_OP(UnpackConvArgs, unpack_conv)
    LR_CUDA_OP(RecurrentUpdateArgs, recurrent_update)
    LR_CUDA_OP(GatedNormArgs, gated_norm)
    LR_CUDA_OP(InitialStateMaskArgs, initial_state_mask)
    LR_CUDA_OP(CausalConvArgs, causal_conv)
    LR_CUDA_OP(QkvSplitArgs, qkv_split)
    LR_CUDA_OP(GatingArgs, gating)
    LR_CUDA_OP(L2normArgs, l2norm)
    LR_CUDA_OP(ChunkCumsumArgs, chunk_cumsum)
    LR_CUDA_OP(ChunkKktSolveArgs, chunk_kkt_solve)
    LR_CUDA_OP(ChunkRecomputeWuArgs, chunk_recompute_wu)
    LR_CUDA_OP(ChunkStateArgs, chunk_state)
    LR_CUDA_OP(ChunkOutputArgs, chunk_output)
    LR_CUDA_OP(QkNormRopeGateArgs, qk_norm_rope_gate)
    LR_CUDA_OP(KvStoreArgs, kv_store)
    LR_CUDA_OP(AttentionArgs, attention)
    LR_CUDA_OP(SigmoidGateArgs, sigmoid_gate)
    LR_CUDA_OP(RoutingScoresArgs, routing_scores)
    LR_CUDA_OP(RoutingIndicesArgs, routing_indices)
    LR_CUDA_OP(ExpertsGateUpArgs, experts_gate_up)
    LR_CUDA_OP(ExpertsDownArgs, experts_down)
    LR_CUDA_OP(FinalizeArgs, finalize)
    LR_CUDA_OP(SiluMulArgs, silu_mul)
    LR_CUDA_OP(SharedGateMergeArgs, shared_gate_merge)
    LR_CUDA_OP(CountTokensArgs, count_tokens)
    LR_CUDA_OP(SampleArgs, sample)
    LR_CUDA_OP(TokenLogprobsArgs, token_logprobs)
#undef LR_CUDA_OP

    Status operator()(const ops::AllReduceArgs&) const {
        return no_ranks("all_reduce");
    }
    Status operator()(const ops::AllGatherArgs&) const {
        return no_ranks("all_gather");
    }
    static Status no_ranks(const char* op) {
        return fail(Code::kUnsupported, "cuda: {}: expected one rank, several are not built yet",
                    op);
    }
};

struct ScratchVisitor {
    template <typename Args> std::int64_t operator()(const Args&) const { return 0; }
    std::int64_t operator()(const ops::LinearArgs& args) const {
        return linear_scratch_bytes(args);
    }
    std::int64_t operator()(const ops::AttentionArgs& args) const {
        return attention_scratch_bytes(args);
    }
    std::int64_t operator()(const ops::ExpertsGateUpArgs& args) const {
        return experts_gate_up_scratch_bytes(args);
    }
    std::int64_t operator()(const ops::SampleArgs& args) const {
        return sample_scratch_bytes(args);
    }
};

} // namespace

Status run(const ops::AnyArgs& args, const Lane& lane) {
    return std::visit(Launcher{lane}, args);
}

std::int64_t scratch_bytes(const ops::AnyArgs& args) {
    return std::visit(ScratchVisitor{}, args);
}

} // namespace lr::cuda
