// SPDX-License-Identifier: Apache-2.0
//
// graph/step_builder.h: tensors and nodes under construction; what the paths of build_step share.
#pragma once

#include "graph/step.h"

#include <map>
#include <optional>
#include <tuple>

namespace lr::graph {

// An activation ready for a product: plain, or codes with their scale.
struct Operand {
    ConstView x;
    ConstView scale;
    float global = 1.0f; // decode multiplier of static FP8 and NVFP4 codes
};

class StepBuilder {
  public:
    StepBuilder(const model::Model& model, const model::Shard& shard, const StepShape& shape,
                const StepOptions& options);

    const model::Config& config() const { return model_.config(); }
    // The entry whose rows make the logits: the embedding's where they are tied.
    std::string_view lm_head_name() const { return model_.tied() ? "embed_tokens" : "lm_head"; }
    const StepShape& shape() const { return step_.shape; }
    const StepOptions& options() const { return step_.options; }
    const model::Shard& shard() const { return step_.shard; }

    // bf16, or f32 where precision turns roundings off.
    DType act() const { return act_; }

    // Opens "L<layer>" (or "pro", "epi" with layer -1). close_scope sorts its nodes by number.
    void open_scope(std::string name, std::int32_t layer);
    void close_scope();

    ConstView input(Input which);
    View activation(std::string_view name, DType dtype, Shape shape);
    // `id` is where Step::outputs keeps it.
    View output(std::string_view name, DType dtype, Shape shape, TensorId& id);
    View state(StateKind kind, DType dtype, Shape shape);
    // The state kTokenCounts [S,V].
    View token_counts();
    Outputs& outputs() { return step_.outputs; }
    // A weight of the scope's layer ("linear_attn.norm"), or of the model when layer is -1.
    ConstView vector(std::string_view name);
    ops::Weight weight(std::string_view name);

    // Appends a node. `name` may hold one "{}" for the format part.
    Node& node(std::int32_t number, std::string name, ops::AnyArgs args, Lane lane = Lane::kMain);

    // Adds up a group's partial rows in place as node `number`: an alias with one rank.
    void all_reduce(std::int32_t number, std::string name, View rows, RankGroup group);
    // Ranks of a group; 1 for none.
    std::int32_t ranks(std::optional<RankGroup> group) const {
        return !group ? 1 : shard().tp * (*group == RankGroup::kWorld ? shard().ep : 1);
    }

    // Quantises x [n,K] the way this weight wants it (node `number`, "<base>_fp8_quant"), or passes
    // it through. A second quantisation of one tensor to one format and scale reuses the first.
    Operand quantise(std::int32_t number, std::string_view base, ConstView x, const ops::Weight& w,
                     Lane lane = Lane::kMain);
    // y [n,N] = operand W^T as node `number`, "<base>_fp8_gemm"; y in the act dtype.
    View linear(std::int32_t number, std::string_view base, const Operand& x, const ops::Weight& w,
                std::string_view y_name, Lane lane = Lane::kMain);
    // "fp8_gemm", "fp4_gemm", "bf16_gemm", "w8a16_gemm", "w4a16_gemm".
    std::string gemm_suffix(const ops::Weight& w) const;
    // Codes and scale that a producer of [rows, width] writes for this weight.
    struct Codes {
        View x, scale;
        float decode = 1.0f; // static FP8, NVFP4: what a reader multiplies by
    };
    Codes codes(std::string_view name, std::int64_t rows, std::int64_t width, const ops::Weight& w);
    bool quantises(const ops::Weight& w) const;

    // Derives uses, costs and edges, and checks every op's shape contract.
    Result<Step> finish();

  private:
    TensorId add_tensor(Tensor tensor);
    std::string scoped(std::string_view name) const;
    TensorId weight_tensor(std::string_view name);
    Status finish_node(Node& node);
    void add_edges();

    const model::Model& model_;
    DType act_;
    Step step_;
    View token_counts_;
    std::string scope_;
    std::int32_t layer_ = -1;
    std::size_t scope_first_node_ = 0;
    std::map<std::string, TensorId, std::less<>> weights_;
    // (tensor, offset, format, static scale) -> its codes and the node that made them
    using QuantKey = std::tuple<TensorId, std::int64_t, ops::WeightFormat, float>;
    struct QuantEntry {
        Operand operand;
        std::string node_id;
    };
    std::map<QuantKey, QuantEntry> quantised_;
};

// The parts of a step, in order.
ConstView build_prologue(StepBuilder& builder); // -> embedded rows [n,D]
// What a layer hands to the next.
struct LayerIo {
    ConstView x;                       // [n,D]
    ConstView residual;                // [n,D], absent before the first layer
    std::optional<RankGroup> sum = {}; // x is a partial sum, still to be added over this group
};
LayerIo build_layer(StepBuilder& builder, std::int32_t layer, const LayerIo& in);
void build_epilogue(StepBuilder& builder, const LayerIo& in);

// Second norm's output, residual and number -> the layer's feed-forward half.
LayerIo build_feed_forward(StepBuilder& builder, ConstView m, ConstView residual,
                           std::int32_t norm_number);

} // namespace lr::graph
