// SPDX-License-Identifier: Apache-2.0
#include "model/quantize_config.h"

#include "core/check.h"
#include "core/version.h"

#include <set>
#include <utility>

namespace lr::model {
namespace {

constexpr std::int64_t kGroup = numerics::kNvfp4Block;

std::string module_of(const SourceTensor& source, std::string_view prefix) {
    std::string_view name = source.name;
    constexpr std::string_view kSuffix = ".weight";
    if (name.ends_with(kSuffix))
        name.remove_suffix(kSuffix.size());
    return fmt::format("{}{}", prefix, name);
}

// Matches every module below `module`, or of that name.
std::string whole(QuantizeFlavor flavor, std::string_view module) {
    switch (flavor) {
    case QuantizeFlavor::kHf:
        return std::string(module);
    case QuantizeFlavor::kModelOpt:
        return fmt::format("{}*", module);
    case QuantizeFlavor::kCompressedTensors:
        return fmt::format("re:.*{}\\..*", module.substr(module.rfind('.') + 1));
    }
    return "";
}

// "layers.3.mlp.gate" as the pattern "re:.*\.mlp\.gate$". Readers of compressed-tensors compare
// with the names of their own modules, which begin differently in each; what follows the layer is
// the same.
std::string in_any_layer(std::string_view module) {
    if (module.starts_with("layers.")) {
        module.remove_prefix(std::string_view("layers.").size());
        module.remove_prefix(module.find('.') + 1);
    }
    std::string pattern = "re:.*\\.";
    for (char c : module)
        pattern += c == '.' ? "\\." : std::string(1, c);
    return pattern + "$";
}

// The matrices that stay as they were. lm_head is a module of readers even where it is tied.
Json plain_modules(QuantizeFlavor flavor, const Model& model, const ModuleNames& names) {
    JsonArray modules;
    std::set<std::string> known;
    const auto add = [&](std::string name) {
        if (known.insert(name).second)
            modules.emplace_back(std::move(name));
    };
    for (const Entry& entry : model.entries()) {
        if (entry.mtp || entry.kind == TensorKind::kLmHead ||
            entry.format != WeightFormat::kPlain || entry.shape.rank() < 2)
            continue;
        for (const SourceTensor& source : entry.sources)
            add(flavor == QuantizeFlavor::kCompressedTensors
                    ? in_any_layer(module_of(source, ""))
                    : module_of(source, names.text_prefix));
    }
    add("lm_head");
    if (names.mtp)
        add(whole(flavor, "mtp"));
    if (!names.vision.empty())
        add(whole(flavor, names.vision));
    return Json(std::move(modules));
}

Json list(std::initializer_list<Json> values) {
    return Json(JsonArray(values));
}

Json block_shape() {
    return list({Json(numerics::kFp8Block), Json(numerics::kFp8Block)});
}

Json hf_config(const Model& model, const ModuleNames& names) {
    return Json::object(
        {{"quant_method", Json("fp8")},
         {"fmt", Json("e4m3")},
         {"activation_scheme", Json("dynamic")},
         {"weight_block_size", block_shape()},
         {"modules_to_not_convert", plain_modules(QuantizeFlavor::kHf, model, names)}});
}

// --- ModelOpt ---

std::string_view modelopt_algo(const QuantizeScheme& scheme, WeightFormat format) {
    if (format != WeightFormat::kNvfp4)
        return "FP8"; // with input_scale or without
    return scheme.calibrated ? "NVFP4" : "W4A16_NVFP4";
}

// Module by module; routed experts by their container.
Json quantized_layers(const QuantizeScheme& scheme, const Model& model, const ModuleNames& names) {
    std::vector<JsonMember> layers;
    std::string container;
    for (const Entry& entry : model.entries()) {
        if (entry.format == WeightFormat::kPlain)
            continue;
        std::vector<JsonMember> members = {
            {"quant_algo", Json(modelopt_algo(scheme, entry.format))}};
        if (entry.format == WeightFormat::kNvfp4)
            members.push_back({"group_size", Json(kGroup)});
        const Json format = Json::object(std::move(members));
        for (const SourceTensor& source : entry.sources) {
            std::string module = module_of(source, names.text_prefix);
            if (entry.kind == TensorKind::kRouted) {
                module.resize(module.rfind('.'));
                if (module == container)
                    continue;
                container = module;
            }
            layers.push_back({std::move(module), format});
        }
    }
    return Json::object(std::move(layers));
}

bool mixed(const QuantizeScheme& scheme) {
    return scheme.format == QuantizeFormat::kNvfp4Mixed;
}

Json producer() {
    return Json::object({{"name", Json("liverow")}, {"version", Json(kVersion)}});
}

// What both files of a ModelOpt checkpoint say; they differ in the name of the list.
std::vector<JsonMember> modelopt_members(const QuantizeScheme& scheme, const Model& model,
                                         const ModuleNames& names, const char* excluded) {
    std::vector<JsonMember> members = {
        {"quant_algo",
         Json(mixed(scheme) ? "MIXED_PRECISION" : modelopt_algo(scheme, WeightFormat::kNvfp4))},
        {"group_size", Json(kGroup)},
        {excluded, plain_modules(QuantizeFlavor::kModelOpt, model, names)}};
    if (mixed(scheme))
        members.push_back({"quantized_layers", quantized_layers(scheme, model, names)});
    return members;
}

Json modelopt_config(const QuantizeScheme& scheme, const Model& model, const ModuleNames& names) {
    std::vector<JsonMember> members = modelopt_members(scheme, model, names, "ignore");
    members.insert(members.begin(), {"quant_method", Json("modelopt")});
    members.push_back({"producer", producer()});
    return Json::object(std::move(members));
}

// --- compressed-tensors ---

std::vector<JsonMember> float_args(int bits, const char* strategy, Json dynamic) {
    return {{"num_bits", Json(bits)},
            {"type", Json("float")},
            {"symmetric", Json(true)},
            {"strategy", Json(strategy)},
            {"dynamic", std::move(dynamic)}};
}

std::vector<JsonMember> nvfp4_args(Json dynamic) {
    std::vector<JsonMember> args = float_args(4, "tensor_group", std::move(dynamic));
    args.push_back({"group_size", Json(kGroup)});
    args.push_back({"scale_dtype", Json("torch.float8_e4m3fn")});
    return args;
}

struct CompressedGroup {
    const char* format;
    std::vector<JsonMember> weights, activations; // activations empty: not quantised
};

CompressedGroup compressed_group(const QuantizeScheme& scheme) {
    switch (scheme.format) {
    case QuantizeFormat::kFp8Block: {
        CompressedGroup group = {"float-quantized", float_args(8, "block", Json(false)),
                                 float_args(8, "group", Json(true))};
        group.weights.push_back({"block_structure", block_shape()});
        group.activations.push_back({"group_size", Json(numerics::kFp8Group)});
        return group;
    }
    case QuantizeFormat::kFp8Channel:
        return {"float-quantized", float_args(8, "channel", Json(false)),
                float_args(8, "token", Json(true))};
    case QuantizeFormat::kNvfp4: {
        CompressedGroup group = {"nvfp4-pack-quantized", nvfp4_args(Json(false)), {}};
        if (scheme.calibrated) // "local": block scales at run time, under a factor of the file
            group.activations = nvfp4_args(Json("local"));
        return group;
    }
    case QuantizeFormat::kNvfp4Mixed:
        break;
    }
    LR_CHECK(!mixed(scheme));
    return {};
}

Json compressed_config(const QuantizeScheme& scheme, const Model& model, const ModuleNames& names) {
    CompressedGroup group = compressed_group(scheme);
    const Json activations =
        group.activations.empty() ? Json() : Json::object(std::move(group.activations));
    const Json group_0 = Json::object({{"targets", list({Json("Linear")})},
                                       {"format", Json(group.format)},
                                       {"weights", Json::object(std::move(group.weights))},
                                       {"input_activations", activations},
                                       {"output_activations", Json()}});
    return Json::object(
        {{"quant_method", Json("compressed-tensors")},
         {"format", Json(group.format)},
         {"quantization_status", Json("compressed")},
         {"config_groups", Json::object({{"group_0", group_0}})},
         {"ignore", plain_modules(QuantizeFlavor::kCompressedTensors, model, names)},
         {"kv_cache_scheme", Json()}});
}

} // namespace

Json quantization_config(const QuantizeScheme& scheme, const Model& model,
                         const ModuleNames& names) {
    switch (scheme.flavor) {
    case QuantizeFlavor::kHf:
        return hf_config(model, names);
    case QuantizeFlavor::kModelOpt:
        return modelopt_config(scheme, model, names);
    case QuantizeFlavor::kCompressedTensors:
        return compressed_config(scheme, model, names);
    }
    return Json();
}

std::optional<Json> hf_quant_config(const QuantizeScheme& scheme, const Model& model,
                                    const ModuleNames& names) {
    if (scheme.flavor != QuantizeFlavor::kModelOpt)
        return std::nullopt;
    std::vector<JsonMember> members = modelopt_members(scheme, model, names, "exclude_modules");
    members.push_back({"kv_cache_quant_algo", Json()});
    return Json::object(
        {{"producer", producer()}, {"quantization", Json::object(std::move(members))}});
}

} // namespace lr::model
