// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_table.h"

#include "core/check.h"

#include <array>

namespace lr::model {
namespace {

// Builds the entries of one model, in file order: embeddings, layers, final norm, head, MTP.
class TableBuilder {
  public:
    TableBuilder(const Config& config, bool tied) : c_(config), tied_(tied) {}

    std::vector<Entry> build() {
        add({.name = "embed_tokens",
             .kind = TensorKind::kEmbedding,
             .shape = {c_.vocab_size, c_.hidden},
             .sources = {{"embed_tokens.weight", {c_.vocab_size, c_.hidden}}},
             .blocks = {{.rows = c_.vocab_size, .rule = RowRule::kSplit}}});
        for (std::int64_t i = 0; i < c_.layer_count(); ++i) {
            scope_ = fmt::format("layers.{}.", i);
            layer_ = i;
            decoder_layer(c_.layers[static_cast<std::size_t>(i)]);
        }
        layer_ = -1;
        scope_.clear();
        norm("norm", "norm.weight", c_.hidden);
        if (!tied_)
            add({.name = "lm_head",
                 .kind = TensorKind::kLmHead,
                 .shape = {c_.vocab_size, c_.hidden},
                 .sources = {{"lm_head.weight", {c_.vocab_size, c_.hidden}}},
                 .blocks = {{.rows = c_.vocab_size, .rule = RowRule::kSplit}}});
        if (c_.mtp_layers > 0)
            mtp();
        return std::move(entries_);
    }

  private:
    void add(Entry entry) {
        entry.name = scope_ + entry.name;
        entry.layer = layer_;
        entry.mtp = mtp_;
        for (SourceTensor& source : entry.sources)
            source.name = scope_ + source.name;
        for (SourceTensor& source : entry.per_expert)
            source.name = scope_ + source.name;
        if (entry.blocks.empty())
            entry.blocks = {{.rows = entry.rows()}};
        entries_.push_back(std::move(entry));
    }

    void norm(std::string name, std::string source, std::int64_t width,
              DType dtype = DType::kBF16) {
        add({.name = std::move(name),
             .kind = TensorKind::kNorm,
             .shape = {width},
             .sources = {{std::move(source), {width}}},
             .dtype = dtype});
    }

    // One source tensor, all rows under one rule.
    void linear(std::string name, TensorKind kind, std::int64_t rows, std::int64_t columns,
                RowRule rule, bool split_columns) {
        const std::string source = name + ".weight";
        add({.name = std::move(name),
             .kind = kind,
             .shape = {rows, columns},
             .sources = {{source, {rows, columns}}},
             .blocks = {{.rows = rows, .rule = rule}},
             .split_columns = split_columns});
    }

    void decoder_layer(LayerKind kind) {
        norm("input_layernorm", "input_layernorm.weight", c_.hidden);
        if (kind == LayerKind::kGdn)
            gdn();
        else
            attention();
        norm("post_attention_layernorm", "post_attention_layernorm.weight", c_.hidden);
        if (c_.moe())
            experts();
        else
            dense_ffn();
    }

    void gdn() {
        const std::int64_t key = c_.k_heads * c_.k_dim;
        const std::int64_t value = c_.value_dim();
        const std::int64_t conv = c_.conv_dim();
        const std::vector<RowBlock> qkv = {
            {.rows = key, .rule = RowRule::kSplit},
            {.first = key, .rows = key, .rule = RowRule::kSplit},
            {.first = 2 * key, .rows = value, .rule = RowRule::kSplit}};
        std::vector<RowBlock> qkvz = qkv;
        qkvz.push_back({.source = 1, .rows = value, .rule = RowRule::kSplit});
        add({.name = "linear_attn.in_proj_qkvz",
             .kind = TensorKind::kMixer,
             .shape = {conv + value, c_.hidden},
             .sources = {{"linear_attn.in_proj_qkv.weight", {conv, c_.hidden}},
                         {"linear_attn.in_proj_z.weight", {value, c_.hidden}}},
             .blocks = std::move(qkvz)});
        add({.name = "linear_attn.in_proj_ba",
             .kind = TensorKind::kPlainLinear,
             .shape = {2 * c_.v_heads, c_.hidden},
             .sources = {{"linear_attn.in_proj_b.weight", {c_.v_heads, c_.hidden}},
                         {"linear_attn.in_proj_a.weight", {c_.v_heads, c_.hidden}}},
             .blocks = {{.rows = c_.v_heads, .rule = RowRule::kSplit},
                        {.source = 1, .rows = c_.v_heads, .rule = RowRule::kSplit}}});
        add({.name = "linear_attn.conv1d",
             .kind = TensorKind::kConv,
             .shape = {conv, c_.conv_kernel},
             .sources = {{"linear_attn.conv1d.weight", {conv, 1, c_.conv_kernel}}},
             .blocks = qkv});
        // Qwen3.5 files hold A_log and this norm in F32, Qwen3.6 files in BF16.
        for (const auto& [name, dtype] :
             {std::pair{"linear_attn.A_log", DType::kF32}, {"linear_attn.dt_bias", DType::kBF16}})
            add({.name = name,
                 .kind = TensorKind::kGdnVector,
                 .shape = {c_.v_heads},
                 .sources = {{name, {c_.v_heads}}},
                 .blocks = {{.rows = c_.v_heads, .rule = RowRule::kSplit}},
                 .dtype = dtype});
        norm("linear_attn.norm", "linear_attn.norm.weight", c_.v_dim, DType::kF32);
        linear("linear_attn.out_proj", TensorKind::kMixer, c_.hidden, value, RowRule::kReplicated,
               true);
    }

    void attention() {
        const std::int64_t q_rows = 2 * c_.attention_width(); // q and gate, alternating per head
        const std::int64_t kv_rows = c_.kv_heads * c_.head_dim;
        add({.name = "self_attn.qkv_proj",
             .kind = TensorKind::kMixer,
             .shape = {q_rows + 2 * kv_rows, c_.hidden},
             .sources = {{"self_attn.q_proj.weight", {q_rows, c_.hidden}},
                         {"self_attn.k_proj.weight", {kv_rows, c_.hidden}},
                         {"self_attn.v_proj.weight", {kv_rows, c_.hidden}}},
             .blocks = {
                 {.rows = q_rows, .rule = RowRule::kSplit},
                 {.source = 1, .rows = kv_rows, .rule = RowRule::kKvHeads, .heads = c_.kv_heads},
                 {.source = 2, .rows = kv_rows, .rule = RowRule::kKvHeads, .heads = c_.kv_heads}}});
        norm("self_attn.q_norm", "self_attn.q_norm.weight", c_.head_dim);
        norm("self_attn.k_norm", "self_attn.k_norm.weight", c_.head_dim);
        linear("self_attn.o_proj", TensorKind::kMixer, c_.hidden, c_.attention_width(),
               RowRule::kReplicated, true);
    }

    // gate_proj over up_proj, and down_proj, below `prefix`.
    void gated_mlp(const std::string& prefix, TensorKind kind, std::int64_t width) {
        add({.name = prefix + "gate_up_proj",
             .kind = kind,
             .shape = {2 * width, c_.hidden},
             .sources = {{prefix + "gate_proj.weight", {width, c_.hidden}},
                         {prefix + "up_proj.weight", {width, c_.hidden}}},
             .blocks = {{.rows = width, .rule = RowRule::kSplit},
                        {.source = 1, .rows = width, .rule = RowRule::kSplit}}});
        linear(prefix + "down_proj", kind, c_.hidden, width, RowRule::kReplicated, true);
    }

    void dense_ffn() { gated_mlp("mlp.", TensorKind::kFfn, c_.ffn_width); }

    void experts() {
        const std::int64_t width = c_.expert_width;
        linear("mlp.gate", TensorKind::kPlainLinear, c_.experts, c_.hidden, RowRule::kReplicated,
               false);
        gated_mlp("mlp.shared_expert.", TensorKind::kShared, c_.shared_expert_width);
        linear("mlp.shared_expert_gate", TensorKind::kPlainLinear, 1, c_.hidden,
               RowRule::kReplicated, false);
        add({.name = "mlp.experts.gate_up_proj",
             .kind = TensorKind::kRouted,
             .shape = {c_.experts, 2 * width, c_.hidden},
             .sources = {{"mlp.experts.gate_up_proj", {c_.experts, 2 * width, c_.hidden}}},
             .per_expert = {{"mlp.experts.{}.gate_proj.weight", {width, c_.hidden}},
                            {"mlp.experts.{}.up_proj.weight", {width, c_.hidden}}},
             .blocks = {{.rows = width, .rule = RowRule::kSplit},
                        {.first = width, .rows = width, .rule = RowRule::kSplit}}});
        add({.name = "mlp.experts.down_proj",
             .kind = TensorKind::kRouted,
             .shape = {c_.experts, c_.hidden, width},
             .sources = {{"mlp.experts.down_proj", {c_.experts, c_.hidden, width}}},
             .per_expert = {{"mlp.experts.{}.down_proj.weight", {c_.hidden, width}}},
             .split_columns = true});
    }

    void mtp() {
        mtp_ = true;
        scope_ = "mtp.";
        linear("fc", TensorKind::kPlainLinear, c_.hidden, 2 * c_.hidden, RowRule::kReplicated,
               false);
        norm("pre_fc_norm_embedding", "pre_fc_norm_embedding.weight", c_.hidden);
        norm("pre_fc_norm_hidden", "pre_fc_norm_hidden.weight", c_.hidden);
        norm("norm", "norm.weight", c_.hidden);
        for (std::int64_t i = 0; i < c_.mtp_layers; ++i) {
            scope_ = fmt::format("mtp.layers.{}.", i);
            decoder_layer(LayerKind::kAttention);
        }
    }

    const Config& c_;
    bool tied_;
    bool mtp_ = false;
    std::int64_t layer_ = -1;
    std::string scope_;
    std::vector<Entry> entries_;
};

WeightFormat policy_format(const FormatPolicy& policy, TensorKind kind) {
    switch (kind) {
    case TensorKind::kMixer:
        return policy.mixer;
    case TensorKind::kFfn:
        return policy.ffn;
    case TensorKind::kShared:
        return policy.shared;
    case TensorKind::kRouted:
        return policy.routed;
    default:
        return WeightFormat::kPlain;
    }
}

struct NamedPolicy {
    std::string_view name;
    FormatPolicy policy;
};

constexpr FormatPolicy all(WeightFormat format) {
    return {format, format, format, format};
}

constexpr std::array<NamedPolicy, 7> kPolicies = {{
    {"bf16", {}},
    {"fp8-block", all(WeightFormat::kFp8Block)},
    {"fp8-channel", all(WeightFormat::kFp8Channel)},
    {"fp8-tensor", all(WeightFormat::kFp8Tensor)},
    {"nvfp4", all(WeightFormat::kNvfp4)},
    {"nvfp4-experts", {.shared = WeightFormat::kNvfp4, .routed = WeightFormat::kNvfp4}},
    {"nvfp4-mixed",
     {WeightFormat::kFp8Channel, WeightFormat::kFp8Channel, WeightFormat::kFp8Channel,
      WeightFormat::kNvfp4}},
}};

std::int64_t stored_tensors(const Entry& entry, bool experts_fused) {
    if (entry.kind != TensorKind::kRouted || experts_fused)
        return static_cast<std::int64_t>(entry.sources.size());
    return entry.shape[0] * static_cast<std::int64_t>(entry.per_expert.size());
}

} // namespace

std::int64_t Entry::bytes() const {
    const std::int64_t stack = shape.rank() == 3 ? shape[0] : 1;
    return stack * numerics::weight_format_bytes(format, dtype, rows(), columns());
}

Result<FormatPolicy> format_policy(std::string_view name) {
    std::string known;
    for (const NamedPolicy& row : kPolicies) {
        if (row.name == name)
            return row.policy;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    }
    return fail(Code::kInvalidArgument, "format: expected one of {}, got \"{}\"", known, name);
}

std::vector<std::string_view> format_policy_names() {
    std::vector<std::string_view> names;
    for (const NamedPolicy& row : kPolicies)
        names.push_back(row.name);
    return names;
}

Model Model::declare(const Config& config, const FormatPolicy& policy) {
    Model model;
    model.config_ = config;
    model.tied_ = config.tied.value_or(false);
    model.entries_ = TableBuilder(config, model.tied_).build();
    for (std::size_t i = 0; i < model.entries_.size(); ++i) {
        Entry& entry = model.entries_[i];
        if (!entry.mtp)
            entry.format = policy_format(policy, entry.kind);
        if (entry.format == WeightFormat::kNvfp4)
            entry.input_scale = 1.0f; // nothing has calibrated a model that is only declared
        entry.stored_per_expert = entry.kind == TensorKind::kRouted &&
                                  (entry.mtp || entry.format != WeightFormat::kPlain);
        model.by_name_.emplace(entry.name, static_cast<std::int32_t>(i));
    }
    return model;
}

std::int32_t Model::index(std::string_view name) const {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? -1 : found->second;
}

const Entry& Model::entry(std::string_view name) const {
    const std::int32_t found = index(name);
    LR_CHECK_GE(found, 0);
    return entries_[static_cast<std::size_t>(found)];
}

std::int64_t Model::text_tensor_count(bool experts_fused) const {
    std::int64_t count = 0;
    for (const Entry& entry : entries_)
        if (!entry.mtp)
            count += stored_tensors(entry, experts_fused);
    return count;
}

std::int64_t Model::mtp_tensor_count(bool experts_fused) const {
    std::int64_t count = 0;
    for (const Entry& entry : entries_)
        if (entry.mtp)
            count += stored_tensors(entry, experts_fused);
    return count;
}

std::int64_t Model::parameter_count() const {
    std::int64_t count = 0;
    for (const Entry& entry : entries_)
        if (!entry.mtp)
            count += entry.shape.count();
    return count;
}

} // namespace lr::model
