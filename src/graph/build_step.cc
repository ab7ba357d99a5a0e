// SPDX-License-Identifier: Apache-2.0
//
// The frame of a step: prologue, layers, epilogue (graph/step.h).
#include "graph/step_builder.h"

namespace lr::graph {

std::string_view input_name(Input input) {
    static constexpr std::array kNames = {
        "token_ids",   "generated",     "positions",      "n_live",         "slot",
        "kv_slot",     "page_table",    "row_seq",        "logit_rows",     "m_live",
        "temperature", "top_k",         "top_p",          "min_p",          "repetition",
        "frequency",   "presence",      "count_slot",     "bias_range",     "seed",
        "stream",      "draw_position", "logprob_wanted", "logprob_target", "bias_id",
        "bias_value",  "cu_seqlens",    "prefix_len",     "chunk_row",      "chunk_len",
        "seq_chunk",
    };
    static_assert(kNames.size() == static_cast<std::size_t>(Input::kCount));
    return kNames[static_cast<std::size_t>(input)];
}

ops::Cost Step::total_cost() const {
    ops::Cost total;
    for (const Node& node : nodes)
        total += node.cost;
    return total;
}

ConstView build_prologue(StepBuilder& b) {
    b.open_scope("pro", -1);
    const View x = b.activation("x", b.act(), {b.shape().rows, b.config().hidden});
    b.node(1, "embed_tokens",
           ops::EmbeddingLookupArgs{.ids = b.input(Input::kTokenIds),
                                    .n_live = b.input(Input::kLiveRows),
                                    .table = b.weight("embed_tokens"),
                                    .y = x,
                                    .first_row =
                                        b.shard().tp_rank * b.config().vocab_size / b.shard().tp,
                                    .vocabulary = b.config().vocab_size});
    b.all_reduce(2, "embed_allreduce", x, RankGroup::kTensor);
    b.node(3, "count_tokens",
           ops::CountTokensArgs{.ids = b.input(Input::kTokenIds),
                                .generated = b.input(Input::kGenerated),
                                .sequence = b.input(Input::kRowSequence),
                                .slot = b.input(Input::kSlot),
                                .n_live = b.input(Input::kLiveRows),
                                .counts = b.token_counts()});
    b.close_scope();
    return x;
}

namespace {

void build_sampling(StepBuilder& b, ConstView logits) {
    const std::int64_t m = b.shape().logit_rows;
    const std::int32_t vocab_limit = b.options().vocab_limit > 0
                                         ? b.options().vocab_limit
                                         : static_cast<std::int32_t>(b.config().vocab_size);
    Outputs& out = b.outputs();
    const View token = b.output("tokens", DType::kI32, {m}, out.tokens);
    const View status = b.output("sample_status", DType::kI32, {m}, out.sample_status);
    b.node(5, "sample",
           ops::SampleArgs{.logits = logits,
                           .temperature = b.input(Input::kTemperature),
                           .top_k = b.input(Input::kTopK),
                           .top_p = b.input(Input::kTopP),
                           .min_p = b.input(Input::kMinP),
                           .repetition = b.input(Input::kRepetition),
                           .frequency = b.input(Input::kFrequency),
                           .presence = b.input(Input::kPresence),
                           .count_slot = b.input(Input::kCountSlot),
                           .counts = b.token_counts(),
                           .bias_range = b.input(Input::kBiasRange),
                           .bias_id = b.input(Input::kBiasId),
                           .bias_value = b.input(Input::kBiasValue),
                           .seed = b.input(Input::kSeed),
                           .stream = b.input(Input::kStream),
                           .position = b.input(Input::kDrawPosition),
                           .m_live = b.input(Input::kLiveLogits),
                           .token = token,
                           .status = status,
                           .vocab_limit = vocab_limit});
    const Shape top = {m, ops::kMaxTopLogprobs};
    b.node(6, "token_logprobs",
           ops::TokenLogprobsArgs{.logits = logits,
                                  .wanted = b.input(Input::kLogprobWanted),
                                  .target = b.input(Input::kLogprobTarget),
                                  .token = token,
                                  .status = status,
                                  .m_live = b.input(Input::kLiveLogits),
                                  .id = b.output("scored_id", DType::kI32, {m}, out.scored_id),
                                  .rank = b.output("rank", DType::kI32, {m}, out.rank),
                                  .logprob = b.output("logprob", DType::kF64, {m}, out.logprob),
                                  .top_id = b.output("top_id", DType::kI32, top, out.top_id),
                                  .top_logprob =
                                      b.output("top_logprob", DType::kF64, top, out.top_logprob),
                                  .vocab_limit = vocab_limit});
}

} // namespace

void build_epilogue(StepBuilder& b, const LayerIo& in) {
    const std::int64_t n = b.shape().rows, m = b.shape().logit_rows;
    const std::int64_t hidden = b.config().hidden;
    b.open_scope("epi", -1);
    const View h = b.activation("h", b.act(), {n, hidden});
    b.node(1, in.sum ? "final_allreduce_add_rmsnorm" : "final_add_rmsnorm",
           ops::AddRmsnormArgs{.x = in.x,
                               .residual = in.residual,
                               .n_live = b.input(Input::kLiveRows),
                               .weight = b.vector("norm"),
                               .residual_out = {},
                               .y = h,
                               .eps = b.config().rms_eps,
                               .numerics = b.options().numerics,
                               .ranks = b.ranks(in.sum),
                               .group = in.sum.value_or(RankGroup::kTensor),
                               .precision = b.options().precision});
    const View rows = b.activation("logit_hidden", b.act(), {m, hidden});
    b.node(2, "gather_logit_rows",
           ops::GatherRowsArgs{.x = h, .rows = b.input(Input::kLogitRows), .y = rows});

    // Ranks hold vocabulary rows [rank * V/tp, ...); with one rank the gather is an alias.
    const std::int32_t tp = b.shard().tp;
    const ops::Weight head = b.weight(b.lm_head_name());
    const View logits =
        b.output("logits", DType::kF32, {m, b.config().vocab_size}, b.outputs().logits);
    const View partial =
        tp == 1 ? logits : b.activation("local_logits", DType::kF32, {m, head.rows()});
    b.node(3, "lm_head_gemm",
           ops::LinearArgs{.x = rows,
                           .x_scale = {},
                           .n_live = b.input(Input::kLiveLogits),
                           .w = head,
                           .y = partial,
                           .precision = b.options().precision});
    b.node(4, "logits_allgather", ops::AllGatherArgs{.x = partial, .y = logits, .ranks = tp})
        .alias = tp == 1;

    build_sampling(b, logits);
    b.close_scope();
}

namespace {

Status check_step_shape(const StepShape& s) {
    const auto positive = [](std::int64_t value, const char* what) -> Status {
        if (value >= 1)
            return {};
        return fail(Code::kInvalidArgument, "step shape: {}: expected >= 1, got {}", what, value);
    };
    LR_TRY(positive(s.rows, "rows"));
    LR_TRY(positive(s.sequences, "sequences"));
    LR_TRY(positive(s.logit_rows, "logit_rows"));
    LR_TRY(positive(s.context, "context"));
    LR_TRY(positive(s.slots, "slots"));
    LR_TRY(positive(s.kv_pages, "kv_pages"));
    if (s.phase == Phase::kDecode && s.sequences != s.rows)
        return fail(
            Code::kInvalidArgument,
            "step shape: a decode step has one row a sequence: expected sequences={}, got {}",
            s.rows, s.sequences);
    return {};
}

} // namespace

Result<Step> build_step(const model::Model& model, const model::Shard& shard,
                        const StepShape& shape, const StepOptions& options) {
    LR_TRY(model.check_shard(shard));
    LR_TRY(check_step_shape(shape));
    StepBuilder builder(model, shard, shape, options);
    LayerIo io{.x = build_prologue(builder), .residual = {}};
    for (std::int32_t layer = 0; layer < model.config().layer_count(); ++layer)
        io = build_layer(builder, layer, io);
    build_epilogue(builder, io);
    return builder.finish();
}

} // namespace lr::graph
