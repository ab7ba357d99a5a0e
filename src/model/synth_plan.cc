// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"
#include "model/synth.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace lr::model {
namespace {

constexpr double kLogitStd = 3.0;
constexpr double kRouterLogitStd = 2.0;
// Per layer two outputs of this size enter the residual: after 60 layers it is about 3.
constexpr double kResidualGain = 0.5;

std::string file_name(std::string_view canonical) {
    const bool top_level = canonical.starts_with("lm_head.") || canonical.starts_with("mtp.");
    return fmt::format("{}{}", top_level ? "" : "model.language_model.", canonical);
}

Distribution normal(double mean, double std_deviation) {
    return {Distribution::Kind::kNormal, mean, std_deviation};
}

// Norms are zero-centred, all but the one inside a GDN layer.
bool is_gdn_norm(const Entry& entry) {
    return entry.kind == TensorKind::kNorm && entry.name.ends_with("linear_attn.norm");
}

bool is_a_log(const Entry& entry) {
    return entry.kind == TensorKind::kGdnVector && entry.name.ends_with("A_log");
}

Distribution distribution_of(const Entry& entry, bool tied) {
    const double per_column = 1.0 / std::sqrt(static_cast<double>(entry.columns()));
    switch (entry.kind) {
    case TensorKind::kEmbedding:
        return normal(0.0, tied ? kLogitStd * per_column : 1.0);
    case TensorKind::kLmHead:
        return normal(0.0, kLogitStd * per_column);
    case TensorKind::kNorm:
        return normal(is_gdn_norm(entry) ? 1.0 : 0.0, 0.1);
    case TensorKind::kGdnVector:
        return is_a_log(entry) ? Distribution{Distribution::Kind::kUniform, 0.0, 2.7}
                               : Distribution{Distribution::Kind::kUniform, -6.0, -2.0};
    case TensorKind::kConv:
        return normal(0.0, 0.4);
    case TensorKind::kPlainLinear:
        return normal(0.0,
                      entry.name.ends_with("mlp.gate") ? kRouterLogitStd * per_column : per_column);
    case TensorKind::kMixer:
    case TensorKind::kFfn:
    case TensorKind::kShared:
    case TensorKind::kRouted:
        break;
    }
    // What ranks divide by columns is exactly what writes to the residual.
    return normal(0.0, entry.split_columns ? kResidualGain * per_column : per_column);
}

class PlanBuilder {
  public:
    explicit PlanBuilder(const Model& model) : model_(model) {}

    std::vector<SynthTensor> build() {
        for (const Entry& entry : model_.entries())
            if (entry.stored_per_expert)
                add_experts(entry);
            else
                for (const SourceTensor& source : entry.sources)
                    add(entry, file_name(source.name), source.shape, file_name(source.name), 0);
        std::stable_partition(plan_.begin(), plan_.end(), [](const SynthTensor& tensor) {
            return tensor.spec.dtype == DType::kF32;
        });
        return std::move(plan_);
    }

  private:
    // Expert e's tensors lie one after another at e * N * K of the fused stack.
    void add_experts(const Entry& entry) {
        LR_CHECK_EQ(entry.sources.size(), 1u);
        const std::string stream = file_name(entry.sources[0].name);
        std::int64_t first = 0;
        for (std::int64_t e = 0; e < entry.shape[0]; ++e)
            for (const SourceTensor& source : entry.per_expert) {
                std::string name = file_name(source.name);
                name.replace(name.find("{}"), 2, std::to_string(e));
                add(entry, std::move(name), source.shape, stream, first);
                first += source.shape.count();
            }
        LR_CHECK_EQ(first, entry.shape.count());
    }

    void add(const Entry& entry, std::string name, const Shape& shape, std::string stream,
             std::int64_t first) {
        SynthTensor tensor;
        tensor.stream = std::move(stream);
        tensor.first = first;
        tensor.distribution = distribution_of(entry, model_.tied());
        DType dtype = entry.dtype;
        if (entry.format != WeightFormat::kPlain) {
            LR_CHECK(entry.format == WeightFormat::kFp8Block);
            LR_CHECK_EQ(shape.rank(), 2);
            dtype = DType::kE4M3;
            const Shape blocks = {(shape[0] + 127) / 128, (shape[1] + 127) / 128};
            tensor.scale = checkpoint::TensorSpec{name + "_scale_inv", DType::kBF16, blocks};
        }
        tensor.spec = {std::move(name), dtype, shape};
        plan_.push_back(std::move(tensor));
    }

    const Model& model_;
    std::vector<SynthTensor> plan_;
};

Json shape_to_json(const Shape& shape) {
    JsonArray dims;
    for (std::int64_t dim : shape)
        dims.emplace_back(dim);
    return Json(std::move(dims));
}

} // namespace

std::vector<SynthTensor> synth_plan(const Model& model) {
    return PlanBuilder(model).build();
}

std::int64_t synth_bytes(const std::vector<SynthTensor>& plan) {
    std::int64_t bytes = 0;
    for (const SynthTensor& tensor : plan)
        bytes += tensor.spec.bytes() + (tensor.scale ? tensor.scale->bytes() : 0);
    return bytes;
}

Json synth_plan_to_json(const std::vector<SynthTensor>& plan, std::uint64_t seed) {
    JsonArray tensors;
    for (const SynthTensor& tensor : plan) {
        const Distribution& d = tensor.distribution;
        std::vector<JsonMember> members = {
            {"name", Json(tensor.spec.name)},
            {"dtype", Json(dtype_name(tensor.spec.dtype))},
            {"shape", shape_to_json(tensor.spec.shape)},
            {"stream", Json(tensor.stream)},
            {"first", Json(tensor.first)},
            {"distribution", Json(d.kind == Distribution::Kind::kNormal ? "normal" : "uniform")},
            {"a", Json(d.a)},
            {"b", Json(d.b)},
        };
        if (tensor.scale)
            members.push_back(
                {"scale", Json::object({{"name", Json(tensor.scale->name)},
                                        {"shape", shape_to_json(tensor.scale->shape)}})});
        tensors.push_back(Json::object(std::move(members)));
    }
    return Json::object({{"seed", Json(seed)}, {"tensors", Json(std::move(tensors))}});
}

Config with_layers(const Config& config, std::int64_t layers) {
    LR_CHECK_GE(layers, 1);
    Config changed = config;
    changed.layers.clear();
    for (std::int64_t i = 0; i < layers; ++i)
        changed.layers.push_back(config.layers[static_cast<std::size_t>(i % config.layer_count())]);
    return changed;
}

} // namespace lr::model
