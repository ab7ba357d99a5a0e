// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quant_config.h"

#include "numerics/quantize.h"

#include <algorithm>
#include <array>

namespace lr::checkpoint {
namespace {

using Weights = DeclaredFormat::Weights;
using Activations = DeclaredFormat::Activations;

// The longer one first, where one begins with the other.
constexpr std::array<std::string_view, 4> kPrefixes = {
    "model.language_model.", "language_model.model.", "language_model.", "model."};

struct Algo {
    std::string_view name;
    Weights weights;
    Activations activations;
};
constexpr std::array kAlgos = {
    Algo{"NVFP4", Weights::kNvfp4, Activations::kStatic},
    Algo{"W4A16_NVFP4", Weights::kNvfp4, Activations::kPlain},
    Algo{"FP8", Weights::kFp8Tensor, Activations::kUnsaid}, // input_scale or not
    Algo{"FP8_PER_CHANNEL_PER_TOKEN", Weights::kFp8Channel, Activations::kDynamic},
    Algo{"FP8_PB_WO", Weights::kFp8Block, Activations::kUnsaid},
    Algo{"FP8_PB_REAL", Weights::kFp8Block, Activations::kDynamic},
};
constexpr std::string_view kMixed = "MIXED_PRECISION";

DeclaredFormat modelopt_format(const std::string& algo) {
    for (const Algo& row : kAlgos)
        if (row.name == algo)
            return {row.weights, row.activations, algo};
    return {Weights::kOther, Activations::kUnsaid, algo};
}

bool is_fp8(StoredFormat format) {
    return format == StoredFormat::kFp8Block || format == StoredFormat::kFp8Channel ||
           format == StoredFormat::kFp8Tensor;
}

} // namespace

bool DeclaredFormat::allows(StoredFormat format, bool input_scale) const {
    // Block weights never have one.
    if (format != StoredFormat::kPlain && format != StoredFormat::kFp8Block &&
        activations != Activations::kUnsaid && input_scale != (activations == Activations::kStatic))
        return false;
    switch (weights) {
    case Weights::kPlain:
        return format == StoredFormat::kPlain;
    case Weights::kFp8Block:
        return format == StoredFormat::kFp8Block;
    case Weights::kFp8Channel:
        return format == StoredFormat::kFp8Channel;
    case Weights::kFp8Tensor:
        return format == StoredFormat::kFp8Tensor;
    case Weights::kFp8:
        return is_fp8(format);
    case Weights::kNvfp4:
        return format == StoredFormat::kNvfp4ModelOpt || format == StoredFormat::kNvfp4Compressed;
    case Weights::kOther:
        break;
    }
    return false;
}

std::string_view canonical_module(std::string_view name) {
    for (std::string_view prefix : kPrefixes)
        if (name.starts_with(prefix))
            return name.substr(prefix.size());
    return name;
}

void ModuleList::add(const std::string& name, std::vector<std::string>& unread) {
    const bool regex = name.starts_with("re:");
    if (!regex && name.find_first_of("*?[") == std::string::npos) {
        names_.emplace(canonical_module(name));
        return;
    }
    auto pattern =
        regex ? ModulePattern::regex(std::string_view(name).substr(3)) : ModulePattern::glob(name);
    if (!pattern)
        unread.push_back(pattern.error().message());
    else
        (regex ? regexes_ : globs_).push_back(std::move(*pattern));
}

bool ModuleList::contains(std::string_view module) const {
    // Any run of whole components: "mlp.gate" is in "layers.0.mlp.gate", not in "mlp.gate_proj".
    for (std::size_t first = 0; !names_.empty() && first < module.size();) {
        for (std::size_t end = module.find('.', first);; end = module.find('.', end + 1)) {
            if (names_.contains(module.substr(first, end - first)))
                return true;
            if (end == std::string_view::npos)
                break;
        }
        const std::size_t dot = module.find('.', first);
        first = dot == std::string_view::npos ? module.size() : dot + 1;
    }
    if (globs_.empty() && regexes_.empty())
        return false;
    const auto matches = [&](std::string_view prefix) {
        std::string name = std::string(prefix).append(module);
        for (const ModulePattern& pattern : regexes_)
            if (pattern.matches(name))
                return true;
        // A glob that names a container means what is in it.
        while (!globs_.empty() && name.size() > prefix.size()) {
            for (const ModulePattern& pattern : globs_)
                if (pattern.matches(name))
                    return true;
            const std::size_t dot = name.rfind('.');
            name.resize(dot == std::string::npos ? 0 : dot);
        }
        return false;
    };
    return matches("") || std::any_of(kPrefixes.begin(), kPrefixes.end(), matches);
}

QuantizationConfig::Declared QuantizationConfig::of(std::string_view module) const {
    if (excluded_.contains(module))
        return {};
    // The module, a container of it ("mlp.experts"), or, of a stack, one of its experts.
    for (std::string_view name = module; !name.empty();
         name = name.substr(0, name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.')))
        if (const auto found = layers_.find(name); found != layers_.end())
            return {found->second};
    if (const std::size_t stack = module.rfind(".experts.");
        stack != std::string_view::npos && module.find('.', stack + 9) == std::string_view::npos) {
        const std::string_view container = module.substr(0, stack + 9);
        if (const auto found = layers_.lower_bound(container);
            found != layers_.end() && found->first.starts_with(container))
            return {found->second};
    }
    for (const auto& [modules, format] : targets_)
        if (modules.contains(module))
            return {format};
    return {every_linear_.value_or(DeclaredFormat{}), true};
}

class QuantizationReader {
  public:
    explicit QuantizationReader(QuantizationConfig& out) : out_(out) {}

    Status read(const JsonCursor& field) {
        LR_TRY_ASSIGN(out_.method, field.required_string("quant_method"));
        out_.source = field.where();
        for (const char* key : {"fmt", "quant_algo", "format"})
            if (out_.scheme.empty()) {
                LR_TRY_ASSIGN(out_.scheme, field.optional_string(key, ""));
            }
        for (const char* key : {"modules_to_not_convert", "ignore", "exclude_modules"})
            LR_TRY(read_names(field, key, out_.excluded_));
        LR_TRY(read_kv(field));
        if (out_.method == "fp8")
            return read_fp8(field);
        if (out_.method.starts_with("modelopt"))
            return read_modelopt(field);
        if (out_.method == "compressed-tensors")
            return read_groups(field);
        out_.every_linear_ = DeclaredFormat{Weights::kOther, Activations::kUnsaid, out_.method};
        return {};
    }

    // hf_quant_config.json: {"producer", "quantization": {...}}.
    Status read_modelopt_file(const JsonCursor& file) {
        LR_TRY_ASSIGN(const JsonCursor field, file.required_object("quantization"));
        out_.method = "modelopt";
        out_.source = file.where();
        LR_TRY_ASSIGN(out_.scheme, field.optional_string("quant_algo", ""));
        LR_TRY(read_names(field, "exclude_modules", out_.excluded_));
        LR_TRY(read_kv(field));
        return read_modelopt(field);
    }

    void finish() {
        for (const std::string& text : out_.unread_)
            out_.notes.push_back(
                fmt::format("{}: {}; modules are not held against the config", out_.source, text));
    }

  private:
    Status read_names(const JsonCursor& field, const char* key, ModuleList& list) {
        if (!field.has(key))
            return {};
        LR_TRY_ASSIGN(const std::vector<std::string> names, field.required_strings(key));
        for (const std::string& name : names)
            list.add(name, out_.unread_);
        return {};
    }

    Status read_kv(const JsonCursor& field) {
        LR_TRY_ASSIGN(out_.kv, field.optional_string("kv_cache_quant_algo", ""));
        LR_TRY_ASSIGN(const auto scheme, field.optional_object("kv_cache_scheme"));
        if (scheme && out_.kv.empty()) {
            LR_TRY_ASSIGN(const std::int64_t bits, scheme->optional_int("num_bits", 8));
            LR_TRY_ASSIGN(const std::string type, scheme->optional_string("type", "float"));
            out_.kv = bits == 8 && type == "float" ? "FP8" : fmt::format("{}{}", type, bits);
        }
        return {};
    }

    Result<std::optional<std::array<std::int64_t, 2>>> read_block(const JsonCursor& field,
                                                                  const char* key) {
        std::optional<std::array<std::int64_t, 2>> block;
        if (!field.has(key))
            return block;
        if (const Json& value = *field.value().find(key);
            value.is_string() && value.as_string() == "128x128")
            return std::optional(std::array<std::int64_t, 2>{128, 128});
        LR_TRY_ASSIGN(const std::vector<std::int64_t> sizes, field.required_ints(key, 1));
        if (sizes.size() != 2)
            return field.member(key).fail_expected("two sizes, as [128, 128]");
        block = {sizes[0], sizes[1]};
        return block;
    }

    static DeclaredFormat blocks(std::array<std::int64_t, 2> block, Activations activations) {
        const bool known = block == std::array<std::int64_t, 2>{128, 128};
        return {known ? Weights::kFp8Block : Weights::kOther, activations,
                fmt::format("float8 {}x{} blocks", block[0], block[1])};
    }

    Status read_fp8(const JsonCursor& field) {
        LR_TRY_ASSIGN(const std::string scheme, field.optional_string("activation_scheme", ""));
        const Activations activations = scheme == "static"    ? Activations::kStatic
                                        : scheme == "dynamic" ? Activations::kDynamic
                                                              : Activations::kUnsaid;
        LR_TRY_ASSIGN(const auto block, read_block(field, "weight_block_size"));
        out_.every_linear_ =
            block ? blocks(*block, activations)
                  : DeclaredFormat{Weights::kFp8, activations,
                                   fmt::format("float8{}", scheme.empty() ? "" : ", " + scheme)};
        return {};
    }

    Status read_modelopt(const JsonCursor& field) {
        LR_TRY_ASSIGN(const auto layers, field.optional_object("quantized_layers"));
        if (layers)
            return read_layers(*layers);
        if (!out_.scheme.empty() && out_.scheme != kMixed)
            out_.every_linear_ = modelopt_format(out_.scheme);
        else if (field.has("config_groups"))
            return read_groups(field);
        return {};
    }

    // {module: {"quant_algo"}}; a pattern stands for the modules that it matches.
    Status read_layers(const JsonCursor& layers) {
        for (const JsonMember& member : layers.value().as_object().members()) {
            LR_TRY_ASSIGN(const JsonCursor layer, layers.required_object(member.key));
            LR_TRY_ASSIGN(const std::string algo, layer.required_string("quant_algo"));
            if (member.key.find_first_of("*?[") == std::string::npos) {
                out_.layers_.insert_or_assign(std::string(canonical_module(member.key)),
                                              modelopt_format(algo));
            } else {
                out_.targets_.emplace_back(ModuleList(), modelopt_format(algo));
                out_.targets_.back().first.add(member.key, out_.unread_);
            }
        }
        return {};
    }

    Status read_groups(const JsonCursor& field) {
        LR_TRY_ASSIGN(const auto groups, field.optional_object("config_groups"));
        if (!groups)
            return {};
        for (const JsonMember& member : groups->value().as_object().members()) {
            LR_TRY_ASSIGN(const JsonCursor group, groups->required_object(member.key));
            LR_TRY_ASSIGN(const auto weights, group.optional_object("weights"));
            if (!weights)
                continue; // of activations or the KV cache alone
            LR_TRY_ASSIGN(DeclaredFormat format, read_weights(*weights));
            LR_TRY_ASSIGN(format.activations, read_activations(group));
            LR_TRY_ASSIGN(const auto targets, group.required_strings("targets"));
            ModuleList named;
            bool names = false;
            for (const std::string& target : targets) {
                if (target == "Linear")
                    out_.every_linear_ = format;
                else if (target.find_first_of(".:*") != std::string::npos || target == "lm_head") {
                    named.add(target, out_.unread_);
                    names = true;
                }
            }
            if (names)
                out_.targets_.emplace_back(std::move(named), format);
        }
        return {};
    }

    Result<DeclaredFormat> read_weights(const JsonCursor& weights) {
        LR_TRY_ASSIGN(const std::int64_t bits, weights.optional_int("num_bits", 8));
        LR_TRY_ASSIGN(const std::string type, weights.optional_string("type", "int"));
        LR_TRY_ASSIGN(const std::string strategy, weights.optional_string("strategy", ""));
        LR_TRY_ASSIGN(const std::int64_t group, weights.optional_int("group_size", 0));
        LR_TRY_ASSIGN(const auto block, read_block(weights, "block_structure"));
        DeclaredFormat format;
        format.text = fmt::format("{}{}{}{}{}", type, bits, strategy.empty() ? "" : " ", strategy,
                                  group > 0 ? fmt::format(" {}", group) : "");
        format.weights = Weights::kOther;
        if (type != "float")
            return format;
        if (bits == 4 && group == numerics::kNvfp4Block)
            format.weights = Weights::kNvfp4;
        if (bits == 8 && block)
            return blocks(*block, Activations::kUnsaid);
        if (bits == 8 && strategy == "channel")
            format.weights = Weights::kFp8Channel;
        if (bits == 8 && strategy == "tensor")
            format.weights = Weights::kFp8Tensor;
        return format;
    }

    // NVFP4 activations are "local": block scales made at run time under a factor from calibration.
    Result<Activations> read_activations(const JsonCursor& group) {
        LR_TRY_ASSIGN(const auto field, group.optional_object("input_activations"));
        if (!field)
            return Activations::kPlain;
        const Json* dynamic = field->value().find("dynamic");
        return dynamic != nullptr && dynamic->is_bool() && dynamic->as_bool()
                   ? Activations::kDynamic
                   : Activations::kStatic;
    }

    QuantizationConfig& out_;
};

Result<std::optional<QuantizationConfig>>
read_quantization_config(const JsonCursor& config, const std::optional<JsonCursor>& modelopt) {
    LR_TRY_ASSIGN(std::optional<JsonCursor> field, config.optional_object("quantization_config"));
    LR_TRY_ASSIGN(const std::optional<JsonCursor> text, config.optional_object("text_config"));
    if (!field && text) {
        LR_TRY_ASSIGN(field, text->optional_object("quantization_config"));
    }
    std::optional<QuantizationConfig> found;
    if (field) {
        QuantizationReader reader(found.emplace());
        LR_TRY(reader.read(*field));
        reader.finish();
    }
    if (!modelopt)
        return found;
    QuantizationConfig other;
    QuantizationReader reader(other);
    LR_TRY(reader.read_modelopt_file(*modelopt));
    reader.finish();
    if (!found)
        return std::optional<QuantizationConfig>(std::move(other));
    if (found->scheme != other.scheme)
        found->notes.push_back(fmt::format("{} declares {} \"{}\", {} \"{}\"; the first is used",
                                           found->source, found->method, found->scheme,
                                           other.source, other.scheme));
    if (found->kv.empty())
        found->kv = other.kv;
    return found;
}

} // namespace lr::checkpoint
