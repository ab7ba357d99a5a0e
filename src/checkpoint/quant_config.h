// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/quant_config.h: what a checkpoint's JSON says about its quantisation, module by
// module.
//
// Read are config.json's `quantization_config` (in the root or in text_config) and ModelOpt's
// hf_quant_config.json. Where both are there, the first decides and what they say differently is
// noted; the KV setting may be in either.
//
//   fp8                 every linear, in weight_block_size blocks; not modules_to_not_convert
//   modelopt            quant_algo for every linear; MIXED_PRECISION: quantized_layers for theirs;
//                       not exclude_modules (ignore)
//   compressed-tensors  config_groups: targets ("Linear", names, "re:" patterns); not ignore
//
// A name means a module, what lies below it, and it does so under any of the prefixes that exports
// use: `model.language_model.`, `language_model.model.`, `language_model.`, `model.` or none. Names
// with * ? [ are globs.
#pragma once

#include "checkpoint/quant_format.h"
#include "checkpoint/quant_pattern.h"
#include "core/json.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lr::checkpoint {

struct DeclaredFormat {
    enum class Weights { kPlain, kFp8Block, kFp8Channel, kFp8Tensor, kFp8, kNvfp4, kOther };
    // kPlain: not quantised; kStatic: a scale from calibration is in the file.
    enum class Activations { kUnsaid, kPlain, kDynamic, kStatic };

    Weights weights = Weights::kPlain;
    Activations activations = Activations::kUnsaid;
    std::string text = "not quantised"; // as the config puts it: "NVFP4", "float8 channel"

    // A weight of this format, whose activations have a scale in the file or not, is what was
    // meant.
    bool allows(StoredFormat format, bool input_scale) const;
};

// "layers.0.mlp.gate" of "model.language_model.layers.0.mlp.gate".
std::string_view canonical_module(std::string_view name);

// Names and patterns of modules.
class ModuleList {
  public:
    // Patterns that cannot be read are kept in `unread`.
    void add(const std::string& name, std::vector<std::string>& unread);
    // `module` is canonical.
    bool contains(std::string_view module) const;

  private:
    std::set<std::string, std::less<>> names_;
    std::vector<ModulePattern> globs_, regexes_;
};

class QuantizationConfig {
  public:
    std::string method; // "fp8", "modelopt", "compressed-tensors", or whatever else is there
    std::string scheme; // fmt, quant_algo or format; may be empty
    std::string source; // the file that says so
    std::string kv;     // declared KV cache format, "FP8"; empty: none
    std::vector<std::string> notes; // patterns that cannot be read, files that differ

    // What is declared for a module (its canonical name). By default means that no name or pattern
    // singles it out: then it holds for linears alone.
    struct Declared {
        DeclaredFormat format;
        bool by_default = false;
    };
    Declared of(std::string_view module) const;
    // Every module can be told: no pattern is unread.
    bool complete() const { return unread_.empty(); }

  private:
    friend class QuantizationReader;
    ModuleList excluded_;
    std::map<std::string, DeclaredFormat, std::less<>> layers_;  // canonical names
    std::vector<std::pair<ModuleList, DeclaredFormat>> targets_; // in the order of the file
    std::optional<DeclaredFormat> every_linear_;
    std::vector<std::string> unread_;
};

// `config` is config.json, `modelopt` hf_quant_config.json where there is one. Nothing when neither
// declares anything. Unknown methods are returned as they are; wrong types are an error.
Result<std::optional<QuantizationConfig>>
read_quantization_config(const JsonCursor& config, const std::optional<JsonCursor>& modelopt = {});

} // namespace lr::checkpoint
