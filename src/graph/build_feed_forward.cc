// SPDX-License-Identifier: Apache-2.0
//
// The feed-forward half of a layer: shared and routed experts, or a dense FFN (graph/step.h).
#include "experts/endpoints.h"
#include "graph/step_builder.h"

namespace lr::graph {
namespace {

// Node numbers of the expert half, counted from the second norm's.
struct MoeNumbers {
    std::int32_t router, scores, indices;
    std::int32_t shared_quant, shared_gate_up, shared_silu, shared_down_quant, shared_down;
    std::int32_t routed_quant, gate_up, down, finalize, merge, reduce;
};

constexpr MoeNumbers kPrefill = {.router = 6,
                                 .scores = 8,
                                 .indices = 9,
                                 .shared_quant = 1,
                                 .shared_gate_up = 2,
                                 .shared_silu = 3,
                                 .shared_down_quant = 4,
                                 .shared_down = 5,
                                 .routed_quant = 7,
                                 .gate_up = 10,
                                 .down = 11,
                                 .finalize = 12,
                                 .merge = 13,
                                 .reduce = 14};
// Decode leaves the sum over ranks to the next layer's first node.
constexpr MoeNumbers kDecode = {.router = 1,
                                .scores = 5,
                                .indices = 7,
                                .shared_quant = 2,
                                .shared_gate_up = 3,
                                .shared_silu = 6,
                                .shared_down_quant = 8,
                                .shared_down = 9,
                                .routed_quant = 4,
                                .gate_up = 10,
                                .down = 11,
                                .finalize = 12,
                                .merge = 13,
                                .reduce = 0};

class MoeBuilder {
  public:
    MoeBuilder(StepBuilder& builder, ConstView m, std::int32_t norm_number)
        : b_(builder), m_(m), base_(norm_number),
          numbers_(builder.shape().phase == Phase::kPrefill ? kPrefill : kDecode),
          n_live_(builder.input(Input::kLiveRows)), n_(builder.shape().rows),
          per_token_(builder.config().experts_per_token) {}

    View build() {
        const View shared = shared_expert();
        const View routed = routed_experts();
        const View u = b_.activation("U", b_.act(), {n_, b_.config().hidden});
        b_.node(base_ + numbers_.merge, "shared_gate_sigmoid_mul_add",
                ops::SharedGateMergeArgs{.m = m_,
                                         .shared = shared,
                                         .routed = routed,
                                         .n_live = n_live_,
                                         .gate_weight = b_.vector("mlp.shared_expert_gate"),
                                         .y = u});
        return u;
    }

  private:
    View shared_expert() {
        const ops::Weight w = b_.weight("mlp.shared_expert.gate_up_proj");
        const Operand x = b_.quantise(base_ + numbers_.shared_quant, "shared_gate_up_input", m_, w,
                                      Lane::kShared);
        const View gate_up = b_.linear(base_ + numbers_.shared_gate_up, "shared_gate_up", x, w,
                                       "shared_gate_up", Lane::kShared);
        const View f = b_.activation("F_s", b_.act(), {n_, w.rows() / 2});
        b_.node(base_ + numbers_.shared_silu, "shared_silu_mul",
                ops::SiluMulArgs{.gate_up = gate_up, .n_live = n_live_, .y = f}, Lane::kShared);
        const ops::Weight w_down = b_.weight("mlp.shared_expert.down_proj");
        const Operand fq = b_.quantise(base_ + numbers_.shared_down_quant, "shared_down_input", f,
                                       w_down, Lane::kShared);
        return b_.linear(base_ + numbers_.shared_down, "shared_down", fq, w_down, "Y_s",
                         Lane::kShared);
    }

    View routed_experts() {
        route();
        const ops::Weight w13 = b_.weight("mlp.experts.gate_up_proj");
        const ops::Weight w2 = b_.weight("mlp.experts.down_proj");
        const ops::ExpertLoad load{.tokens = n_,
                                   .per_token = static_cast<std::int32_t>(per_token_),
                                   .experts = static_cast<std::int32_t>(b_.config().experts)};
        const Operand x = b_.quantise(base_ + numbers_.routed_quant, "routed_input", m_, w13);
        const StepBuilder::Codes f = b_.codes("F", rows_, w2.columns(), w2);
        b_.node(base_ + numbers_.gate_up,
                fmt::format("routed_gate_up_swiglu_{}", b_.gemm_suffix(w13)),
                ops::ExpertsGateUpArgs{.x = x.x,
                                       .x_scale = x.scale,
                                       .start = start_,
                                       .end = end_,
                                       .row_map = row_map_,
                                       .w = w13,
                                       .f = f.x,
                                       .f_scale = f.scale,
                                       .per_token = static_cast<std::int32_t>(per_token_),
                                       .x_global = x.global,
                                       .f_global = encoder_of(w2, f),
                                       .precision = b_.options().precision,
                                       .load = load});
        const View z = b_.activation("Z", b_.act(), {rows_, b_.config().hidden});
        b_.node(base_ + numbers_.down, fmt::format("routed_down_{}", b_.gemm_suffix(w2)),
                ops::ExpertsDownArgs{.f = f.x,
                                     .f_scale = f.scale,
                                     .start = start_,
                                     .end = end_,
                                     .w = w2,
                                     .z = z,
                                     .f_global = f.decode,
                                     .precision = b_.options().precision,
                                     .load = load});
        const View y = b_.activation("Y_r", b_.act(), {n_, b_.config().hidden});
        b_.node(base_ + numbers_.finalize, "routed_finalize",
                ops::FinalizeArgs{
                    .z = z, .weights = weights_, .row_of = row_of_, .n_live = n_live_, .y = y});
        return y;
    }

    // What ops/experts/experts_gate_up.h wants beside its codes: NVFP4 G, else the decode
    // multiplier.
    static float encoder_of(const ops::Weight& w, const StepBuilder::Codes& f) {
        return w.format == ops::WeightFormat::kNvfp4 ? 1.0f / f.decode : f.decode;
    }

    // Router, top-K and the rows of each local expert. The two phases name the kernels apart, and
    // in decode the second routing node hands the weights on (the chart has no edge 16 -> 23).
    void route() {
        const bool decode = b_.shape().phase == Phase::kDecode;
        const View logits = b_.activation("L", b_.act(), {n_, b_.config().experts});
        b_.node(base_ + numbers_.router, "router_bf16_gemm",
                ops::LinearArgs{.x = m_,
                                .x_scale = {},
                                .n_live = n_live_,
                                .w = b_.weight("mlp.gate"),
                                .y = logits,
                                .precision = b_.options().precision});
        const View ids = b_.activation("topk_ids", DType::kI32, {n_, per_token_});
        const View chosen = b_.activation("topk_weights", b_.act(), {n_, per_token_});
        b_.node(base_ + numbers_.scores,
                decode ? "routing_block_scores" : "routing_histogram_scores",
                ops::RoutingScoresArgs{.logits = logits,
                                       .n_live = n_live_,
                                       .ids = ids,
                                       .weights = chosen,
                                       .precision = b_.options().precision});
        const std::int64_t local = b_.config().experts / b_.shard().ep;
        rows_ = experts::rows_capacity(n_, per_token_, local, b_.options().expert_align);
        start_ = b_.activation("start", DType::kI32, {local});
        end_ = b_.activation("end", DType::kI32, {local});
        row_map_ = b_.activation("row_map", DType::kI32, {rows_});
        row_of_ = b_.activation("row_of", DType::kI32, {n_ * per_token_});
        weights_ = decode ? b_.activation("pi", b_.act(), {n_, per_token_}) : chosen;
        b_.node(base_ + numbers_.indices, decode ? "routing_cluster_indices" : "routing_indices",
                ops::RoutingIndicesArgs{.ids = ids,
                                        .weights = decode ? ConstView(chosen) : ConstView(),
                                        .n_live = n_live_,
                                        .counts = b_.activation("counts", DType::kI32, {local}),
                                        .start = start_,
                                        .end = end_,
                                        .row_map = row_map_,
                                        .row_of = row_of_,
                                        .weights_out = decode ? weights_ : View(),
                                        .first_expert =
                                            static_cast<std::int32_t>(b_.shard().ep_rank * local),
                                        .align = b_.options().expert_align});
    }

    StepBuilder& b_;
    ConstView m_;
    std::int32_t base_;
    MoeNumbers numbers_;
    ConstView n_live_;
    std::int64_t n_, per_token_;
    std::int64_t rows_ = 0;
    View start_, end_, row_map_, row_of_, weights_;
};

View dense_ffn(StepBuilder& b, ConstView m, std::int32_t base) {
    const ops::Weight w = b.weight("mlp.gate_up_proj");
    const Operand x = b.quantise(base + 1, "ffn_gate_up_input", m, w);
    const View gate_up = b.linear(base + 2, "ffn_gate_up", x, w, "ffn_gate_up");
    const View f = b.activation("F", b.act(), {b.shape().rows, w.rows() / 2});
    b.node(base + 3, "ffn_silu_mul",
           ops::SiluMulArgs{.gate_up = gate_up, .n_live = b.input(Input::kLiveRows), .y = f});
    const ops::Weight w_down = b.weight("mlp.down_proj");
    const Operand fq = b.quantise(base + 4, "ffn_down_input", f, w_down);
    return b.linear(base + 5, "ffn_down", fq, w_down, "U");
}

} // namespace

LayerIo build_feed_forward(StepBuilder& b, ConstView m, ConstView residual,
                           std::int32_t norm_number) {
    const bool moe = b.config().moe();
    const RankGroup group = moe ? RankGroup::kWorld : RankGroup::kTensor;
    const View u = moe ? MoeBuilder(b, m, norm_number).build() : dense_ffn(b, m, norm_number);
    if (b.shape().phase == Phase::kDecode)
        return {.x = u, .residual = residual, .sum = group};
    b.all_reduce(norm_number + (moe ? kPrefill.reduce : 6),
                 moe ? "moe_tp_allreduce" : "ffn_tp_allreduce", u, group);
    return {.x = u, .residual = residual};
}

} // namespace lr::graph
