// SPDX-License-Identifier: Apache-2.0
#include "model/quant_check.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace lr::model {
namespace {

using checkpoint::DeclaredFormat;
using checkpoint::QuantizationConfig;
using checkpoint::StoredFormat;
using checkpoint::StoredWeight;

// Modules that a quantiser may touch.
bool is_linear(const Entry& entry) {
    return entry.quantisable() || entry.kind == TensorKind::kPlainLinear ||
           entry.kind == TensorKind::kLmHead;
}

// The module of a file's tensor: "layers.0.mlp.gate" of "model.layers.0.mlp.gate.weight".
std::string_view module_of(std::string_view tensor) {
    std::string_view module = checkpoint::canonical_module(tensor);
    for (std::string_view suffix : {".weight_packed", ".weight", "_weight_packed", "_packed"})
        if (module.ends_with(suffix)) {
            module.remove_suffix(suffix.size());
            break;
        }
    return module;
}

// What an entry's module is declared to be. The default of a config is about linears: not about the
// embedding, nor, unless it is quantised, about a stack of experts, which is no linear to most
// quantisers.
DeclaredFormat expected(const QuantizationConfig& declared, const Entry& entry,
                        const StoredWeight& weight, std::string_view module) {
    const QuantizationConfig::Declared found = declared.of(module);
    const bool plain_stack =
        weight.shape.rank() == 3 && weight.format == StoredFormat::kPlain && is_linear(entry);
    if (found.by_default && (!is_linear(entry) || plain_stack))
        return {};
    return found.format;
}

std::string declared_text(const DeclaredFormat& format) {
    using Activations = DeclaredFormat::Activations;
    if (format.weights == DeclaredFormat::Weights::kPlain)
        return format.text;
    switch (format.activations) {
    case Activations::kUnsaid:
        break;
    case Activations::kPlain:
        return format.text + ", weights only";
    case Activations::kDynamic:
        return format.text + ", dynamic activations";
    case Activations::kStatic:
        return format.text + ", static activations";
    }
    return format.text;
}

// Counts modules by pattern and by what is said and found.
class Differences {
  public:
    void add(std::string_view module, std::string declared, std::string stored) {
        ++count_[{module_pattern(module), std::move(declared), std::move(stored)}];
    }

    // Siblings that differ alike share a sentence: "layers.*.self_attn.{q_proj,k_proj}".
    std::vector<std::string> sentences() const {
        std::map<std::tuple<std::string, std::string, std::string, std::int64_t>,
                 std::vector<std::string>>
            groups;
        for (const auto& [key, count] : count_) {
            const auto& [pattern, declared, stored] = key;
            const std::size_t dot = pattern.rfind('.');
            const std::size_t leaf = dot == std::string::npos ? 0 : dot + 1;
            groups[{pattern.substr(0, leaf), declared, stored, count}].push_back(
                pattern.substr(leaf));
        }
        std::vector<std::string> texts;
        for (const auto& [key, leaves] : groups) {
            const auto& [parent, declared, stored, count] = key;
            const std::int64_t modules = count * std::ssize(leaves);
            texts.push_back(fmt::format(
                "{}{} ({} module{}): declared {}, stored {}", parent,
                leaves.size() == 1 ? leaves.front() : fmt::format("{{{}}}", fmt::join(leaves, ",")),
                modules, modules == 1 ? "" : "s", declared, stored));
        }
        return texts;
    }

  private:
    std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> count_;
};

std::int64_t quantised_entries(const ResolvedModel& resolved) {
    std::int64_t count = 0;
    for (const auto& [format, entries] : resolved.found_formats)
        count += format == StoredFormat::kPlain ? 0 : entries;
    return count;
}

void compare_modules(const ResolvedModel& resolved, const QuantizationConfig& declared,
                     std::vector<std::string>& sentences) {
    Differences differences;
    const std::vector<Entry>& entries = resolved.model.entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!is_linear(entries[i]) && entries[i].kind != TensorKind::kEmbedding)
            continue;
        for (const StoredWeight& weight : resolved.stored[i]) {
            const std::string_view module = module_of(weight.weight->name);
            const DeclaredFormat format = expected(declared, entries[i], weight, module);
            if (!format.allows(weight.format, weight.input_scale != nullptr))
                differences.add(module, declared_text(format), stored_text(weight));
        }
    }
    for (std::string& text : differences.sentences())
        sentences.push_back(fmt::format("{}: {}", declared.source, text));
}

void compare_input_scales(const ResolvedModel& resolved, std::vector<std::string>& sentences) {
    std::map<std::string, std::vector<const InputScaleRange*>> groups;
    for (const InputScaleRange& range : resolved.input_scale_ranges)
        groups[fmt::format("{} of {}", range.with, range.parts) + module_pattern(range.entry)]
            .push_back(&range);
    for (const auto& [key, ranges] : groups) {
        const InputScaleRange& r = *ranges.front();
        sentences.push_back(fmt::format(
            "{} ({} weight{}): {} of {} parts have an input_scale, in the first from {} to {}; the "
            "largest is used",
            module_pattern(r.entry), ranges.size(), ranges.size() == 1 ? "" : "s", r.with, r.parts,
            r.smallest, r.largest));
    }
}

} // namespace

std::string module_pattern(std::string_view module) {
    std::string pattern;
    while (!module.empty()) {
        const std::size_t dot = std::min(module.find('.'), module.size());
        const std::string_view part = module.substr(0, dot);
        const bool number = part.find_first_not_of("0123456789") == std::string_view::npos;
        pattern += fmt::format("{}{}", pattern.empty() ? "" : ".", number ? "*" : part);
        module.remove_prefix(std::min(dot + 1, module.size()));
    }
    return pattern;
}

std::string stored_text(const StoredWeight& weight) {
    if (weight.format == StoredFormat::kPlain)
        return std::string(weight.weight->file_dtype);
    if (weight.format == StoredFormat::kFp8Block)
        return std::string(stored_format_name(weight.format));
    return fmt::format("{} {} input_scale", stored_format_name(weight.format),
                       weight.input_scale != nullptr ? "with" : "without");
}

std::vector<std::string>
quantization_disagreements(const ResolvedModel& resolved,
                           const std::optional<QuantizationConfig>& declared) {
    std::vector<std::string> sentences;
    const std::int64_t quantised = quantised_entries(resolved);
    if (!declared) {
        for (const auto& [format, count] : resolved.found_formats)
            if (format != StoredFormat::kPlain)
                sentences.push_back(fmt::format(
                    "config.json declares no quantization, but {} weights are stored as {}", count,
                    stored_format_name(format)));
    } else {
        sentences = declared->notes;
        if (quantised == 0)
            sentences.push_back(
                fmt::format("{} declares quantization '{}', but every weight is stored plain",
                            declared->source, declared->method));
        else if (declared->complete())
            compare_modules(resolved, *declared, sentences);
    }
    compare_input_scales(resolved, sentences);
    return sentences;
}

Status refuse_declared(const Model& model, const QuantizationConfig& declared, const Status& why) {
    for (const Entry& entry : model.entries())
        for (const SourceTensor& source : entry.sources) {
            const std::string_view module = module_of(source.name);
            const DeclaredFormat format = declared.of(module).format;
            if (!is_linear(entry) || format.weights != DeclaredFormat::Weights::kOther)
                continue;
            return fail(Code::kUnsupported,
                        "{} declares {}{} for {}, which does not load; what loads: {}. ({})",
                        declared.source, declared.method,
                        format.text == declared.method ? "" : " " + format.text, module,
                        checkpoint::loadable_formats(), why.message());
        }
    return {};
}

} // namespace lr::model
