// SPDX-License-Identifier: Apache-2.0
//
// model/tensor_table.h: every weight of a model, described once.
//
// An entry is a weight as the step graph uses it (q, k, v and z fused into one matrix, all experts
// in one stack) together with the tensors a file stores for it, its shape, and how ranks divide it.
// The loader, `inspect`, sizing, the graph and the synthetic writer ask this table; nobody spells a
// tensor name twice.
//
// Source names are canonical: without `model.language_model.` / `language_model.model.` / `model.`
// ("layers.3.self_attn.q_proj.weight"; `lm_head.` and `mtp.` as they are).
#pragma once

#include "core/shape.h"
#include "model/config.h"
#include "numerics/weight_format.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lr::model {

using numerics::WeightFormat;

// What an entry is for. Attention and GDN projections, the dense FFN, the shared expert and the
// routed experts may be stored quantised; everything else is plain in every release.
enum class TensorKind : std::uint8_t {
    kEmbedding,
    kLmHead,
    kNorm,        // zero-centred norms, q_norm, k_norm, and linear_attn.norm: [width]
    kGdnVector,   // A_log, dt_bias: [Hv]
    kConv,        // [C, 4] (stored [C, 1, 4])
    kPlainLinear, // in_proj_ba, router, shared_expert_gate, mtp.fc
    kMixer,       // attention and GDN projections
    kFfn,         // dense FFN
    kShared,      // shared expert
    kRouted,      // routed expert stack [E, N, K]
};

struct SourceTensor {
    std::string name;
    Shape shape;
};

// How the ranks of a tensor-parallel group divide a run of rows.
enum class RowRule : std::uint8_t {
    kReplicated, // every rank has all rows
    kSplit,      // rank p of tp has rows [p, p+1) * rows / tp
    kKvHeads,    // as kSplit by heads, but at least one head: rank p has head p * heads / tp
};

struct RowBlock {
    std::int32_t source = 0; // index into sources
    std::int64_t first = 0;  // row in that source
    std::int64_t rows = 0;
    RowRule rule = RowRule::kReplicated;
    std::int64_t heads = 1; // kKvHeads
};

struct Entry {
    std::string name; // "layers.3.linear_attn.in_proj_qkvz"
    TensorKind kind = TensorKind::kNorm;
    std::int64_t layer = -1; // -1: not in a decoder layer
    bool mtp = false;        // described and counted; not used by the step yet
    Shape shape;             // all ranks together: [width], [N, K] or [E, N, K]

    // What files store. Sources are stacked along N. A routed stack may instead be stored expert by
    // expert: then `per_expert` lists one expert's tensors, "{}" standing for the expert's number.
    std::vector<SourceTensor> sources = {};
    std::vector<SourceTensor> per_expert = {};
    std::vector<RowBlock> blocks = {}; // the N rows, in order
    bool split_columns = false;        // K is divided among the tensor-parallel ranks

    // How this model stores it: declared by a policy, or found in a checkpoint.
    WeightFormat format = WeightFormat::kPlain;
    DType dtype = DType::kBF16; // of plain data
    bool stored_per_expert = false;
    // Static scale of the activations that meet this weight, a decode multiplier; 0: none, they are
    // quantised by scales of their own or, beside NVFP4 weights, not at all.
    float input_scale = 0.0f;

    bool quantisable() const { return kind >= TensorKind::kMixer; }
    // Where a file quantises it although releases do not: the step multiplies by it as it is, or
    // needs it plain (and it is widened).
    bool runs_quantised() const { return quantisable() || kind == TensorKind::kLmHead; }
    bool widens() const {
        return kind == TensorKind::kEmbedding || kind == TensorKind::kPlainLinear;
    }
    std::int64_t rows() const { return shape[shape.rank() == 3 ? 1 : 0]; }
    std::int64_t columns() const { return shape.rank() == 1 ? 1 : shape[shape.rank() - 1]; }
    std::int64_t bytes() const; // all ranks together, in its format
};

// A rank's place. World size is tp * ep.
struct Shard {
    std::int32_t tp = 1, tp_rank = 0;
    std::int32_t ep = 1, ep_rank = 0;
    friend bool operator==(const Shard&, const Shard&) = default;
};

// Rows [first, first + rows) of source `source` belong to this rank, in stacking order.
struct RowRange {
    std::int32_t source;
    std::int64_t first;
    std::int64_t rows;
};
// Neighbouring ranges of one source are merged: a whole source is one range.
std::vector<RowRange> local_rows(const Entry& entry, const Shard& shard);
// Columns [first, first + count) of every source.
struct ColumnRange {
    std::int64_t first, count;
};
ColumnRange local_columns(const Entry& entry, const Shard& shard);
// The entry's shape on this rank.
Shape local_shape(const Entry& entry, const Shard& shard);

// Which formats a model uses, by kind of module.
struct FormatPolicy {
    WeightFormat mixer = WeightFormat::kPlain;
    WeightFormat ffn = WeightFormat::kPlain;
    WeightFormat shared = WeightFormat::kPlain;
    WeightFormat routed = WeightFormat::kPlain;
};
// "bf16", "fp8-block", "fp8-channel", "fp8-tensor", "nvfp4" (all linears), "nvfp4-experts" (shared
// and routed experts), "nvfp4-mixed" (routed experts; the other linears fp8-channel).
Result<FormatPolicy> format_policy(std::string_view name);
std::vector<std::string_view> format_policy_names();

class Model {
  public:
    // The table of this config with formats as declared by the policy. A tied config has no
    // lm_head.
    static Model declare(const Config& config, const FormatPolicy& policy);

    const Config& config() const { return config_; }
    bool tied() const { return tied_; }
    const std::vector<Entry>& entries() const { return entries_; }
    std::vector<Entry>& entries() { return entries_; }
    // The entry must exist (checked).
    const Entry& entry(std::string_view name) const;
    std::int32_t index(std::string_view name) const; // -1 when absent

    // Number of tensors a plain checkpoint of this model holds: without and with `mtp.*`.
    std::int64_t text_tensor_count(bool experts_fused) const;
    std::int64_t mtp_tensor_count(bool experts_fused) const;
    std::int64_t parameter_count() const; // text, MTP not counted

    // Ok, or why these ranks cannot divide this model.
    Status check_shard(const Shard& shard) const;

  private:
    Config config_;
    bool tied_ = false;
    std::vector<Entry> entries_;
    std::unordered_map<std::string, std::int32_t> by_name_;
};

} // namespace lr::model
