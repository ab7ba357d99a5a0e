// SPDX-License-Identifier: Apache-2.0
//
// The token-mixing half of a layer, for the four paths (graph/step.h). Each function reads like its
// flowchart: one statement per node, numbers as in the chart.
#include "graph/step_builder.h"

#include <algorithm>
#include <cmath>

namespace lr::graph {
namespace {

struct Dims {
    std::int64_t n, hk, hv, dk, dv; // rows; local GDN heads
    std::int64_t key, value, conv;  // local widths
    std::int64_t hq, hkv, dh;       // local attention heads

    explicit Dims(const StepBuilder& b)
        : n(b.shape().rows), hk(b.config().k_heads / b.shard().tp),
          hv(b.config().v_heads / b.shard().tp), dk(b.config().k_dim), dv(b.config().v_dim),
          key(hk * dk), value(hv * dv), conv(2 * key + value),
          hq(b.config().q_heads / b.shard().tp),
          hkv(std::max<std::int64_t>(1, b.config().kv_heads / b.shard().tp)),
          dh(b.config().head_dim) {}
};

// Columns [first, first + heads * width) of a matrix as [n, heads, width].
ConstView heads_of(View matrix, std::int64_t first, std::int64_t heads, std::int64_t width) {
    const View part = matrix.slice_columns(first, heads * width);
    return {part.data, part.dtype, {part.shape[0], heads, width}, part.row_stride};
}

struct Norm {
    ConstView residual, y;
};

Norm add_norm(StepBuilder& b, std::int32_t number, const char* name, const LayerIo& in,
              const char* weight, const char* residual_name, const char* y_name) {
    const Shape rows = {b.shape().rows, b.config().hidden};
    const View residual = b.activation(residual_name, b.act(), rows);
    const View y = b.activation(y_name, b.act(), rows);
    b.node(number, name,
           ops::AddRmsnormArgs{.x = in.x,
                               .residual = in.residual,
                               .n_live = b.input(Input::kLiveRows),
                               .weight = b.vector(weight),
                               .residual_out = residual,
                               .y = y,
                               .eps = b.config().rms_eps,
                               .numerics = b.options().numerics,
                               .ranks = b.ranks(in.sum),
                               .group = in.sum.value_or(RankGroup::kTensor),
                               .precision = b.options().precision});
    return {residual, y};
}

Norm input_norm(StepBuilder& b, const LayerIo& in) {
    const bool decode = b.shape().phase == Phase::kDecode;
    return add_norm(b, 1, decode ? "input_allreduce_add_rmsnorm" : "input_add_rmsnorm", in,
                    "input_layernorm", "R1", "H");
}

// Decode: the second norm adds up the ranks itself. Prefill: node `number - 1` did.
Norm post_norm(StepBuilder& b, std::int32_t number, View a, ConstView residual) {
    const bool decode = b.shape().phase == Phase::kDecode;
    if (!decode)
        b.all_reduce(number - 1, "attention_tp_allreduce", a, RankGroup::kTensor);
    LayerIo io{.x = a, .residual = residual};
    if (decode)
        io.sum = RankGroup::kTensor;
    return add_norm(b, number,
                    decode ? "attention_allreduce_add_rmsnorm" : "post_attention_add_rmsnorm", io,
                    "post_attention_layernorm", "R2", "M");
}

// Runs of K whose partial sums a split-K product keeps apart: a function of K alone.
std::int64_t splitk_runs(std::int64_t k) {
    return std::clamp<std::int64_t>(k / 1024, 1, 16);
}

void zero_fill(StepBuilder& b, std::int32_t number, const char* name, View y) {
    b.node(number, name, ops::ZeroFillArgs{.y = y});
}

View gated_norm(StepBuilder& b, std::int32_t number, ConstView o, ConstView z, const Dims& d) {
    const View y = b.activation("y", b.act(), {d.n, d.value});
    b.node(number, "output_rmsnorm_silu_gate",
           ops::GatedNormArgs{.o = o,
                              .z = z,
                              .n_live = b.input(Input::kLiveRows),
                              .weight = b.vector("linear_attn.norm"),
                              .y = y,
                              .eps = b.config().rms_eps});
    return y;
}

View conv_state(StepBuilder& b, const Dims& d) {
    return b.state(StateKind::kConv, b.act(),
                   {b.shape().slots, d.conv, b.config().conv_kernel - 1});
}

View ssm_state(StepBuilder& b, const Dims& d) {
    return b.state(StateKind::kSsm, b.options().state_dtype, {b.shape().slots, d.hv, d.dv, d.dk});
}

LayerIo gdn_decode(StepBuilder& b, const LayerIo& in) {
    const Dims d(b);
    const ConstView n_live = b.input(Input::kLiveRows);
    const Norm norm = input_norm(b, in);

    const ops::Weight w_ba = b.weight("linear_attn.in_proj_ba");
    const View partial =
        b.activation("ba_partial", DType::kF32, {splitk_runs(b.config().hidden), d.n, w_ba.rows()});
    b.node(2, "in_proj_ba_bf16_splitk_gemm",
           ops::LinearSplitkArgs{.x = norm.y, .n_live = n_live, .w = w_ba, .partial = partial});
    const View ba = b.activation("BA", b.act(), {d.n, w_ba.rows()});
    b.node(4, "in_proj_ba_splitk_reduce",
           ops::SplitkReduceArgs{.partial = partial, .n_live = n_live, .y = ba});

    const ops::Weight w_qkvz = b.weight("linear_attn.in_proj_qkvz");
    const Operand h = b.quantise(3, "in_proj_qkvz_input", norm.y, w_qkvz);
    const View qkvz = b.linear(5, "in_proj_qkvz", h, w_qkvz, "C");

    const View q = b.activation("q", b.act(), {d.n, d.hk, d.dk});
    const View k = b.activation("k", b.act(), {d.n, d.hk, d.dk});
    const View v = b.activation("v", b.act(), {d.n, d.hv, d.dv});
    const View z = b.activation("z", b.act(), {d.n, d.hv, d.dv});
    const View beta_in = b.activation("b", b.act(), {d.n, d.hv});
    const View alpha_in = b.activation("a", b.act(), {d.n, d.hv});
    b.node(6, "qkvzba_unpack_causal_conv1d_silu",
           ops::UnpackConvArgs{.qkvz = qkvz,
                               .ba = ba,
                               .slot = b.input(Input::kSlot),
                               .n_live = n_live,
                               .conv = b.weight("linear_attn.conv1d"),
                               .conv_state = conv_state(b, d),
                               .q = q,
                               .k = k,
                               .v = v,
                               .z = z,
                               .b = beta_in,
                               .a = alpha_in});
    const View o = b.activation("o", b.act(), {d.n, d.hv, d.dv});
    b.node(7, "gdn_packed_recurrent_qk_norm_gating_state_update",
           ops::RecurrentUpdateArgs{.q = q,
                                    .k = k,
                                    .v = v,
                                    .b = beta_in,
                                    .a = alpha_in,
                                    .a_log = b.vector("linear_attn.A_log"),
                                    .dt_bias = b.vector("linear_attn.dt_bias"),
                                    .slot = b.input(Input::kSlot),
                                    .n_live = n_live,
                                    .ssm_state = ssm_state(b, d),
                                    .o = o,
                                    .precision = b.options().precision});
    const View y = gated_norm(b, 8, o, z, d);
    const ops::Weight w_out = b.weight("linear_attn.out_proj");
    const Operand yq = b.quantise(9, "out_proj_input", y, w_out);
    const View a = b.linear(10, "out_proj", yq, w_out, "A");
    const Norm post = post_norm(b, 11, a, norm.residual);
    return build_feed_forward(b, post.y, post.residual, 11);
}

// Chunk tables that most prefill nodes read.
struct Chunks {
    ConstView row, len;
    explicit Chunks(StepBuilder& b)
        : row(b.input(Input::kChunkRow)), len(b.input(Input::kChunkLen)) {}
};

// Nodes 9-17: the chunked gated delta rule, from split q, k, v and gates to o [n,Hv,dv].
View chunked_delta_rule(StepBuilder& b, const Dims& d, View q, View k, View v, View g, View beta) {
    const ConstView n_live = b.input(Input::kLiveRows);
    const Chunks chunks(b);
    const ops::Precision precision = b.options().precision;
    const View qn = b.activation("qn", b.act(), {d.n, d.hk, d.dk});
    b.node(9, "q_l2norm", ops::L2normArgs{.x = q, .n_live = n_live, .y = qn});
    const View kn = b.activation("kn", b.act(), {d.n, d.hk, d.dk});
    b.node(10, "k_l2norm", ops::L2normArgs{.x = k, .n_live = n_live, .y = kn});
    const View sum = b.activation("g_cumsum", DType::kF32, {d.n, d.hv});
    b.node(11, "chunk_gate_cumsum",
           ops::ChunkCumsumArgs{.g = g,
                                .chunk_row = chunks.row,
                                .chunk_len = chunks.len,
                                .n_live = n_live,
                                .g_cumsum = sum});
    const View a_inv = b.activation("A_inv", b.act(), {d.n, d.hv, ops::kGdnChunk});
    zero_fill(b, 12, "chunk_A_zero_init", a_inv);
    b.node(13, "chunk_kkt_solve",
           ops::ChunkKktSolveArgs{.k = kn,
                                  .beta = beta,
                                  .g_cumsum = sum,
                                  .chunk_row = chunks.row,
                                  .chunk_len = chunks.len,
                                  .a_inv = a_inv,
                                  .precision = precision});
    const View w = b.activation("w", b.act(), {d.n, d.hv, d.dk});
    const View u = b.activation("u", b.act(), {d.n, d.hv, d.dv});
    b.node(14, "chunk_recompute_w_u",
           ops::ChunkRecomputeWuArgs{.k = kn,
                                     .v = v,
                                     .beta = beta,
                                     .g_cumsum = sum,
                                     .a_inv = a_inv,
                                     .chunk_row = chunks.row,
                                     .chunk_len = chunks.len,
                                     .n_live = n_live,
                                     .w = w,
                                     .u = u,
                                     .precision = precision});
    const View h = b.activation("h", b.act(), {b.shape().chunks(), d.hv, d.dv, d.dk});
    const View v_new = b.activation("v_new", b.act(), {d.n, d.hv, d.dv});
    b.node(15, "chunk_state_h",
           ops::ChunkStateArgs{.k = kn,
                               .w = w,
                               .u = u,
                               .g_cumsum = sum,
                               .chunk_row = chunks.row,
                               .chunk_len = chunks.len,
                               .seq_chunk = b.input(Input::kSeqChunk),
                               .slot = b.input(Input::kSlot),
                               .n_live = n_live,
                               .ssm_state = ssm_state(b, d),
                               .h = h,
                               .v_new = v_new,
                               .precision = precision});
    const View o = b.activation("o", b.act(), {d.n, d.hv, d.dv});
    zero_fill(b, 16, "chunk_output_zero_init", o);
    b.node(17, "chunk_output_o",
           ops::ChunkOutputArgs{.q = qn,
                                .k = kn,
                                .v_new = v_new,
                                .h = h,
                                .g_cumsum = sum,
                                .chunk_row = chunks.row,
                                .chunk_len = chunks.len,
                                .o = o,
                                .precision = precision});
    return o;
}

LayerIo gdn_prefill(StepBuilder& b, const LayerIo& in) {
    const Dims d(b);
    const ConstView n_live = b.input(Input::kLiveRows);
    const Norm norm = input_norm(b, in);
    const ops::Weight w_qkvz = b.weight("linear_attn.in_proj_qkvz");
    const Operand x = b.quantise(2, "in_proj_qkvz_input", norm.y, w_qkvz);
    const View qkvz = b.linear(3, "in_proj_qkvz", x, w_qkvz, "C");
    const View ba =
        b.linear(4, "in_proj_ba", {norm.y, {}}, b.weight("linear_attn.in_proj_ba"), "BA");

    const View mask = b.activation("state_mask", DType::kI32, {b.shape().sequences});
    b.node(5, "initial_state_mask",
           ops::InitialStateMaskArgs{.prefix_len = b.input(Input::kPrefixLen), .mask = mask});
    const View convolved = b.activation("qkv", b.act(), {d.n, d.conv});
    b.node(6, "causal_conv1d_silu",
           ops::CausalConvArgs{.qkv = qkvz.slice_columns(0, d.conv),
                               .cu_seqlens = b.input(Input::kCuSeqlens),
                               .slot = b.input(Input::kSlot),
                               .mask = mask,
                               .n_live = n_live,
                               .conv = b.weight("linear_attn.conv1d"),
                               .conv_state = conv_state(b, d),
                               .y = convolved});
    const View q = b.activation("q", b.act(), {d.n, d.hk, d.dk});
    const View k = b.activation("k", b.act(), {d.n, d.hk, d.dk});
    const View v = b.activation("v", b.act(), {d.n, d.hv, d.dv});
    b.node(7, "qkv_split_layout",
           ops::QkvSplitArgs{.x = convolved, .n_live = n_live, .q = q, .k = k, .v = v});
    const View g = b.activation("g", DType::kF32, {d.n, d.hv});
    const View beta = b.activation("beta", DType::kF32, {d.n, d.hv});
    b.node(8, "gdn_gating",
           ops::GatingArgs{.ba = ba,
                           .a_log = b.vector("linear_attn.A_log"),
                           .dt_bias = b.vector("linear_attn.dt_bias"),
                           .n_live = n_live,
                           .g = g,
                           .beta = beta,
                           .precision = b.options().precision});
    const View o = chunked_delta_rule(b, d, q, k, v, g, beta);
    const View y = gated_norm(b, 18, o, heads_of(qkvz, d.conv, d.hv, d.dv), d);
    const ops::Weight w_out = b.weight("linear_attn.out_proj");
    const Operand yq = b.quantise(19, "out_proj_input", y, w_out);
    const View a = b.linear(20, "out_proj", yq, w_out, "A");
    const Norm post = post_norm(b, 22, a, norm.residual);
    return build_feed_forward(b, post.y, post.residual, 22);
}

// Prefill has a workspace node (6) that decode lacks; from there on its numbers are one higher.
LayerIo attention_layer(StepBuilder& b, const LayerIo& in) {
    const Dims d(b);
    const bool prefill = b.shape().phase == Phase::kPrefill;
    const std::int32_t after = prefill ? 1 : 0;
    const ConstView n_live = b.input(Input::kLiveRows);
    const Norm norm = input_norm(b, in);
    const ops::Weight w_qkv = b.weight("self_attn.qkv_proj");
    const Operand x = b.quantise(2, "qkv_proj_input", norm.y, w_qkv);
    const View qkv = b.linear(3, "qkv_proj", x, w_qkv, "QKV");

    const std::int64_t k_first = 2 * d.hq * d.dh;
    const View q = b.activation("q", b.act(), {d.n, d.hq, d.dh});
    const View gate = b.activation("gate", b.act(), {d.n, d.hq * d.dh});
    const View k = b.activation("k", b.act(), {d.n, d.hkv, d.dh});
    b.node(4, "qk_rmsnorm_rope_gate_split",
           ops::QkNormRopeGateArgs{.qg = heads_of(qkv, 0, d.hq, 2 * d.dh),
                                   .k = heads_of(qkv, k_first, d.hkv, d.dh),
                                   .positions = b.input(Input::kPositions),
                                   .n_live = n_live,
                                   .q_norm = b.vector("self_attn.q_norm"),
                                   .k_norm = b.vector("self_attn.k_norm"),
                                   .q = q,
                                   .gate = gate,
                                   .k_out = k,
                                   .eps = b.config().rms_eps,
                                   .rope_theta = b.config().rope_theta,
                                   .rotary_dim = static_cast<std::int32_t>(b.config().rotary_dim),
                                   .precision = b.options().precision});
    const Shape cache = {b.shape().kv_pages, ops::kKvPage, d.hkv, d.dh};
    const View k_cache = b.state(StateKind::kKeys, b.act(), cache);
    const View v_cache = b.state(StateKind::kValues, b.act(), cache);
    b.node(5, "store_kv_cache",
           ops::KvStoreArgs{.k = k,
                            .v = heads_of(qkv, k_first + d.hkv * d.dh, d.hkv, d.dh),
                            .kv_slot = b.input(Input::kKvSlot),
                            .n_live = n_live,
                            .k_cache = k_cache,
                            .v_cache = v_cache});
    View workspace;
    if (prefill) {
        workspace = b.activation("attention_workspace", DType::kI32, {64});
        zero_fill(b, 6, "attention_workspace_init", workspace);
    }
    const View o = b.activation("o", b.act(), {d.n, d.hq * d.dh});
    b.node(6 + after, prefill ? "trtllm_full_attention" : "trtllm_full_attention_decode",
           ops::AttentionArgs{.q = q,
                              .k_cache = k_cache,
                              .v_cache = v_cache,
                              .page_table = b.input(Input::kPageTable),
                              .row_seq = b.input(Input::kRowSequence),
                              .positions = b.input(Input::kPositions),
                              .n_live = n_live,
                              .workspace = workspace,
                              .o = o,
                              .scale = 1.0f / std::sqrt(static_cast<float>(d.dh)),
                              .precision = b.options().precision});
    const View gated = b.activation("gated", b.act(), {d.n, d.hq * d.dh});
    b.node(7 + after, "output_sigmoid_gate",
           ops::SigmoidGateArgs{.o = o, .gate = gate, .n_live = n_live, .y = gated});
    const ops::Weight w_out = b.weight("self_attn.o_proj");
    const Operand oq = b.quantise(8 + after, "o_proj_input", gated, w_out);
    const View a = b.linear(9 + after, "o_proj", oq, w_out, "A");
    const std::int32_t norm_number = prefill ? 12 : 10;
    const Norm post = post_norm(b, norm_number, a, norm.residual);
    return build_feed_forward(b, post.y, post.residual, norm_number);
}

} // namespace

LayerIo build_layer(StepBuilder& b, std::int32_t layer, const LayerIo& in) {
    b.open_scope(fmt::format("L{}", layer), layer);
    const auto build = [&] {
        if (b.config().layers[static_cast<std::size_t>(layer)] == model::LayerKind::kAttention)
            return attention_layer(b, in);
        return b.shape().phase == Phase::kPrefill ? gdn_prefill(b, in) : gdn_decode(b, in);
    };
    const LayerIo out = build();
    b.close_scope();
    return out;
}

} // namespace lr::graph
