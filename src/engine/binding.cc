// SPDX-License-Identifier: Apache-2.0
#include "engine/binding.h"

#include "cpu/attention/attention.h"
#include "cpu/collective/collective.h"
#include "cpu/experts/experts.h"
#include "cpu/gdn/gdn.h"
#include "cpu/gemm/gemm.h"
#include "cpu/norm/norm.h"
#include "cpu/quant/quant.h"
#include "cpu/sampling/sampling.h"

namespace lr::engine {
namespace {

struct BindVisitor {
    const graph::Step& step;
    const TensorAddress& address;
    const WeightParts& parts;

    template <typename V> void place(V& view) const {
        const graph::Symbol symbol = graph::to_symbol(view.data);
        if (symbol.tensor >= 0)
            view.data = address(symbol.tensor) + symbol.offset;
    }
    void in(const char*, ConstView& view) const { place(view); }
    void state(const char*, View& view) const { place(view); }
    void out(const char*, View& view) const { place(view); }
    void weight(const char*, ops::Weight& w) const {
        if (w.id < 0)
            return;
        const graph::Tensor& tensor = step.tensors[static_cast<std::size_t>(w.id)];
        w.parts = parts(tensor.entry);
    }
};

// One launcher for each op: the whole table of the CPU backend.
struct CpuLauncher {
    ThreadPool& pool;

#define LR_CPU_OP(Args, function)                                                                  \
    void operator()(const ops::Args& args) const {                                                 \
        cpu::function(args, pool);                                                                 \
    }
    LR_CPU_OP(EmbeddingLookupArgs, embedding_lookup)
    LR_CPU_OP(AddRmsnormArgs, add_rmsnorm)
    LR_CPU_OP(AllReduceArgs, all_reduce)
    LR_CPU_OP(AllGatherArgs, all_gather)
    LR_CPU_OP(ZeroFillArgs, zero_fill)
    LR_CPU_OP(Fp8QuantArgs, fp8_quant)
    LR_CPU_OP(Nvfp4QuantArgs, nvfp4_quant)
    LR_CPU_OP(LinearArgs, linear)
    LR_CPU_OP(LinearSplitkArgs, linear_splitk)
    LR_CPU_OP(SplitkReduceArgs, splitk_reduce)
    LR_CPU_OP(GatherRowsArgs, gather_rows)
    LR_CPU_OP(UnpackConvArgs, unpack_conv)
    LR_CPU_OP(RecurrentUpdateArgs, recurrent_update)
    LR_CPU_OP(GatedNormArgs, gated_norm)
    LR_CPU_OP(InitialStateMaskArgs, initial_state_mask)
    LR_CPU_OP(CausalConvArgs, causal_conv)
    LR_CPU_OP(QkvSplitArgs, qkv_split)
    LR_CPU_OP(GatingArgs, gating)
    LR_CPU_OP(L2normArgs, l2norm)
    LR_CPU_OP(ChunkCumsumArgs, chunk_cumsum)
    LR_CPU_OP(ChunkKktSolveArgs, chunk_kkt_solve)
    LR_CPU_OP(ChunkRecomputeWuArgs, chunk_recompute_wu)
    LR_CPU_OP(ChunkStateArgs, chunk_state)
    LR_CPU_OP(ChunkOutputArgs, chunk_output)
    LR_CPU_OP(QkNormRopeGateArgs, qk_norm_rope_gate)
    LR_CPU_OP(KvStoreArgs, kv_store)
    LR_CPU_OP(AttentionArgs, attention)
    LR_CPU_OP(SigmoidGateArgs, sigmoid_gate)
    LR_CPU_OP(RoutingScoresArgs, routing_scores)
    LR_CPU_OP(RoutingIndicesArgs, routing_indices)
    LR_CPU_OP(ExpertsGateUpArgs, experts_gate_up)
    LR_CPU_OP(ExpertsDownArgs, experts_down)
    LR_CPU_OP(FinalizeArgs, finalize)
    LR_CPU_OP(SiluMulArgs, silu_mul)
    LR_CPU_OP(SharedGateMergeArgs, shared_gate_merge)
    LR_CPU_OP(CountTokensArgs, count_tokens)
    LR_CPU_OP(SampleArgs, sample)
    LR_CPU_OP(TokenLogprobsArgs, token_logprobs)
#undef LR_CPU_OP
};

} // namespace

ops::AnyArgs bind_args(const graph::Step& step, const graph::Node& node,
                       const TensorAddress& address, const WeightParts& parts) {
    ops::AnyArgs args = node.args;
    BindVisitor visitor{step, address, parts};
    std::visit([&](auto& typed) { typed.visit(visitor); }, args);
    return args;
}

ops::AnyArgs bind_args(const graph::Step& step, const graph::Node& node,
                       const TensorAddress& address, const Weights& weights) {
    return bind_args(step, node, address,
                     [&weights](std::int32_t entry) { return weights.parts(entry); });
}

void run_on_cpu(const ops::AnyArgs& args, ThreadPool& pool) {
    std::visit(CpuLauncher{pool}, args);
}

} // namespace lr::engine
