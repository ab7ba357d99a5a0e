// SPDX-License-Identifier: Apache-2.0
#include "model/resolve.h"

#include "checkpoint/quant_values.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace lr::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::stored_format_name;
using checkpoint::StoredFormat;
using checkpoint::StoredWeight;
using checkpoint::TensorInfo;

constexpr std::array<std::string_view, 3> kTextPrefixes = {"model.language_model.",
                                                           "language_model.model.", "model."};
constexpr std::array<std::string_view, 2> kSkipped = {"model.visual.", "visual."};
constexpr std::size_t kNamedInErrors = 5;

// Tensors of quantisations that do not load. Said before anything else: to a reader of names alone
// such a file just lacks its weights.
struct ForeignTensor {
    std::string_view suffix, method;
};
constexpr std::array kForeign = {
    ForeignTensor{".qweight", "GPTQ or AWQ"},
    ForeignTensor{".qzeros", "GPTQ or AWQ"},
    ForeignTensor{".weight.absmax", "bitsandbytes"},
    ForeignTensor{".weight.quant_map", "bitsandbytes"},
    ForeignTensor{".pre_quant_scale", "AWQ of ModelOpt"},
    ForeignTensor{".weight_zero_point", "an asymmetric integer format of compressed-tensors"},
    ForeignTensor{".weight_shape", "a packed integer format of compressed-tensors"},
    ForeignTensor{"_proj_blocks", "MXFP4"},
};

bool skipped(std::string_view name) {
    return std::any_of(kSkipped.begin(), kSkipped.end(),
                       [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string join_first(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kNamedInErrors); ++i)
        text += fmt::format("{}{}", i ? ", " : "", names[i]);
    if (names.size() > kNamedInErrors)
        text += fmt::format(" and {} more", names.size() - kNamedInErrors);
    return text;
}

class Resolver {
  public:
    Resolver(const Config& config, const Checkpoint& checkpoint)
        : config_(config), checkpoint_(checkpoint) {}

    Result<ResolvedModel> run() {
        LR_TRY(refuse_foreign());
        LR_TRY(find_prefix());
        LR_TRY(decide_tied());
        result_.model = Model::declare(config_, {});
        find_mtp();
        for (Entry& entry : result_.model.entries())
            LR_TRY(resolve_entry(entry));
        LR_TRY(report_missing());
        LR_TRY(report_unknown());
        return std::move(result_);
    }

  private:
    Failure error(Code code, std::string message) const {
        return fail(code, "{}: {}", checkpoint_.path(), message);
    }

    Status refuse_foreign() const {
        for (const TensorInfo& tensor : checkpoint_.tensors())
            for (const ForeignTensor& foreign : kForeign)
                if (tensor.name.ends_with(foreign.suffix) && !skipped(tensor.name) &&
                    !ignorable(tensor.name))
                    return error(Code::kUnsupported,
                                 fmt::format("tensor '{}' is of {}, which does not load; what "
                                             "loads: {}",
                                             tensor.name, foreign.method,
                                             checkpoint::loadable_formats()));
        return {};
    }

    // The prefix under which embed_tokens.weight is found; exactly one may hold it.
    Status find_prefix() {
        std::vector<std::string> found;
        for (std::string_view prefix : kTextPrefixes)
            if (any_stored(fmt::format("{}embed_tokens", prefix)))
                found.emplace_back(prefix);
        if (found.empty())
            return error(Code::kInvalidFile,
                         "expected embed_tokens.weight below model.language_model., "
                         "language_model.model. or model., found it nowhere");
        if (found.size() > 1)
            return error(Code::kInvalidFile,
                         fmt::format("embed_tokens.weight: expected one, found it below {} and {}",
                                     found[0], found[1]));
        result_.prefix = found[0];
        return {};
    }

    // lm_head.weight is used when it is there; an untied config must have it.
    Status decide_tied() {
        const bool head = any_stored("lm_head");
        if (!head && config_.tied.has_value() && !*config_.tied)
            return error(Code::kInvalidFile,
                         "config.json says tie_word_embeddings=false: expected lm_head.weight, "
                         "found none");
        config_.tied = !head;
        return {};
    }

    void find_mtp() {
        for (const TensorInfo& tensor : checkpoint_.tensors())
            has_mtp_ = has_mtp_ || tensor.name.starts_with("mtp.");
    }

    std::string file_name(std::string_view canonical) const {
        const bool bare = canonical.starts_with("lm_head.") || canonical.starts_with("mtp.");
        return bare ? std::string(canonical) : result_.prefix + std::string(canonical);
    }

    // X of "X.weight"; fused experts, A_log and dt_bias have no suffix.
    static std::string base_of(std::string_view name) {
        constexpr std::string_view kSuffix = ".weight";
        if (name.ends_with(kSuffix))
            name.remove_suffix(kSuffix.size());
        return std::string(name);
    }

    Status resolve_entry(Entry& entry) {
        std::vector<StoredWeight>& stored = result_.stored.emplace_back();
        if (entry.mtp && !has_mtp_)
            return {};
        if (!entry.per_expert.empty())
            entry.stored_per_expert = !any_stored(base_of(file_name(entry.sources.front().name)));
        if (!entry.stored_per_expert) {
            for (const SourceTensor& source : entry.sources)
                LR_TRY(resolve_source(source.name, source.shape, stored));
        } else {
            for (std::int64_t expert = 0; expert < entry.shape[0]; ++expert)
                for (const SourceTensor& source : entry.per_expert) {
                    const std::string name = fmt::format(fmt::runtime(source.name), expert);
                    LR_TRY(resolve_source(name, source.shape, stored));
                }
        }
        if (!missing_.empty() || stored.empty())
            return {};
        (entry.mtp ? result_.mtp_tensors : result_.text_tensors) +=
            static_cast<std::int64_t>(stored.size());
        return adopt_format(entry, stored);
    }

    bool any_stored(const std::string& base) const {
        const auto siblings = checkpoint::find_siblings(checkpoint_, base);
        return siblings.weight || siblings.weight_packed;
    }

    Status resolve_source(const std::string& canonical, const Shape& shape,
                          std::vector<StoredWeight>& stored) {
        const std::string name = file_name(canonical);
        const std::string base = base_of(name);
        const auto siblings = checkpoint::find_siblings(checkpoint_, base);
        if (!siblings.weight && !siblings.weight_packed) {
            missing_.push_back(name);
            return {};
        }
        for (const TensorInfo* tensor :
             {siblings.weight, siblings.weight_packed, siblings.weight_scale,
              siblings.weight_scale_inv, siblings.weight_scale_2, siblings.weight_global_scale,
              siblings.input_scale, siblings.input_global_scale})
            if (tensor)
                used_.insert(tensor->name);
        const Result<StoredWeight> detected = checkpoint::detect_format(base, siblings);
        if (!detected)
            return detected.error().with_context(checkpoint_.path());
        const StoredWeight& weight = *detected;
        if (!(weight.shape == shape))
            return error(Code::kInvalidFile,
                         fmt::format("{}: expected shape {}, got {}; config.json and the weights "
                                     "are of different models",
                                     name, shape.to_string(), weight.shape.to_string()));
        stored.push_back(weight);
        return {};
    }

    // All parts of an entry share one format, but where they are widened. What the step reads as
    // one dense view is widened to f32 at load; vectors and convolutions no file quantises.
    Status adopt_format(Entry& entry, const std::vector<StoredWeight>& stored) {
        const StoredFormat format = stored.front().format;
        const auto other = std::find_if(stored.begin(), stored.end(),
                                        [&](const StoredWeight& s) { return s.format != format; });
        if (other != stored.end() && !entry.widens())
            return error(Code::kUnsupported,
                         fmt::format("{}: its parts are stored in two formats, {} ({}) and {} "
                                     "({}); expected one",
                                     entry.name, stored_format_name(format),
                                     stored.front().weight->name, stored_format_name(other->format),
                                     other->weight->name));
        ++result_.found_formats[format];
        if (entry.mtp)
            return {};
        if (other != stored.end() || format != StoredFormat::kPlain)
            return adopt_quantised(entry, stored);
        entry.format = WeightFormat::kPlain;
        LR_TRY_ASSIGN(const ConstView view, stored.front().weight->view());
        entry.dtype = view.dtype;
        return {};
    }

    Status adopt_quantised(Entry& entry, const std::vector<StoredWeight>& stored) {
        if (entry.widens()) {
            entry.format = WeightFormat::kPlain;
            entry.dtype = DType::kF32;
            return {};
        }
        const StoredWeight& first = stored.front();
        if (!entry.runs_quantised())
            return error(Code::kUnsupported,
                         fmt::format("{}: stored as {}; a vector or a convolution is expected in "
                                     "BF16, F16 or F32",
                                     first.weight->name, stored_format_name(first.format)));
        if (first.factors_per_matrix() == 2 && entry.blocks.size() != 2)
            return error(Code::kInvalidFile,
                         fmt::format("tensor '{}': expected one factor for each expert, got {}: "
                                     "{} has no two halves",
                                     first.factor->name, first.factor->describe(), entry.name));
        entry.format = checkpoint::weight_format(first.format);
        return adopt_input_scale(entry, stored);
    }

    // Parts of an entry read one activation, so they get one scale: the largest. Exporters
    // calibrate them as one; an expert that calibration never reached has 0 or none.
    Status adopt_input_scale(Entry& entry, const std::vector<StoredWeight>& stored) {
        const TensorInfo* any = nullptr;
        std::int64_t with = 0;
        float smallest = 0;
        for (const StoredWeight& part : stored) {
            const Result<float> scale = checkpoint::static_input_scale(part);
            if (!scale)
                return scale.error().with_context(checkpoint_.path());
            if (!part.input_scale)
                continue;
            any = part.input_scale;
            smallest = with++ == 0 ? *scale : std::min(smallest, *scale);
            entry.input_scale = std::max(entry.input_scale, *scale);
        }
        if (any && entry.input_scale == 0)
            return error(Code::kInvalidFile,
                         fmt::format("tensor '{}': expected an input scale > 0, got 0 in all {} of "
                                     "{}",
                                     any->name, with, entry.name));
        if (any && (with < std::ssize(stored) || smallest != entry.input_scale))
            result_.input_scale_ranges.push_back(
                {entry.name, with, std::ssize(stored), smallest, entry.input_scale});
        return {};
    }

    Status report_missing() const {
        if (missing_.empty())
            return {};
        return error(Code::kInvalidFile, fmt::format("{} weights are missing: {}", missing_.size(),
                                                     join_first(missing_)));
    }

    Status report_unknown() {
        std::vector<std::string> unknown;
        for (const TensorInfo& tensor : checkpoint_.tensors()) {
            if (skipped(tensor.name) || ignorable(tensor.name)) {
                ++result_.skipped_tensors;
            } else if (is_kv_scale(tensor.name)) {
                const Result<float> scale = checkpoint::read_kv_scale(tensor);
                if (!scale)
                    return scale.error().with_context(checkpoint_.path());
                result_.kv_scales.push_back({tensor.name, *scale});
            } else if (!used_.contains(tensor.name)) {
                unknown.emplace_back(tensor.name);
            }
        }
        if (unknown.empty())
            return {};
        return error(Code::kInvalidFile,
                     fmt::format("{} tensors belong to no weight of this model: {}", unknown.size(),
                                 join_first(unknown)));
    }

    // "layers.3.self_attn.k_proj.k_scale", or without the projection, in an attention layer.
    bool is_kv_scale(std::string_view name) const {
        constexpr std::string_view kAttention = ".self_attn.";
        if (!name.ends_with(".k_scale") && !name.ends_with(".v_scale"))
            return false;
        if (name.starts_with(result_.prefix))
            name.remove_prefix(result_.prefix.size());
        const std::size_t end = name.find(kAttention);
        return end != std::string_view::npos &&
               result_.model.index(fmt::format("{}{}qkv_proj", name.substr(0, end), kAttention)) >=
                   0;
    }

    // `mtp.*` is ignored as a whole when the config has no MTP layers.
    bool ignorable(std::string_view name) const {
        return name.starts_with("mtp.") && config_.mtp_layers == 0;
    }

    Config config_;
    const Checkpoint& checkpoint_;
    ResolvedModel result_;
    bool has_mtp_ = false;
    std::vector<std::string> missing_;
    std::set<std::string_view> used_;
};

} // namespace

Result<ResolvedModel> resolve(const Config& config, const Checkpoint& checkpoint) {
    return Resolver(config, checkpoint).run();
}

} // namespace lr::model
