// SPDX-License-Identifier: Apache-2.0
//
// model/quantize_config.h: what config.json and hf_quant_config.json say about quantised weights.
#pragma once

#include "core/json.h"
#include "model/quantize_scheme.h"

#include <optional>
#include <string>

namespace lr::model {

// The names a checkpoint gives its parts.
struct ModuleNames {
    std::string text_prefix = "model.language_model."; // of the text tensors
    std::string vision;                                // "model.visual"; empty: no such tensors
    bool mtp = false;                                  // `mtp.*` tensors are there
};

// config.json's `quantization_config`: how each entry of `model` is stored, and which modules are
// not quantised.
Json quantization_config(const QuantizeScheme& scheme, const Model& model,
                         const ModuleNames& names);

// hf_quant_config.json, for the flavor that has one.
std::optional<Json> hf_quant_config(const QuantizeScheme& scheme, const Model& model,
                                    const ModuleNames& names);

} // namespace lr::model
