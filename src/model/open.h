// SPDX-License-Identifier: Apache-2.0
//
// model/open.h: a model folder, opened: config, generation defaults, files mapped, weights found.
// No weight data is touched, but the scalars that say how activations are quantised.
#pragma once

#include "checkpoint/quant_config.h"
#include "model/resolve.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lr::model {

struct OpenModel {
    std::string folder;
    GenerationConfig generation;
    std::unique_ptr<checkpoint::Checkpoint> checkpoint; // `resolved` points into it
    ResolvedModel resolved;
    std::optional<checkpoint::QuantizationConfig> declared; // what the JSON says of quantisation
    std::vector<std::string> disagreements; // it and the tensors, in words (model/quant_check.h)

    const Model& model() const { return resolved.model; }
    const Config& config() const { return resolved.model.config(); }
};

// `folder` holds config.json and the weights.
Result<OpenModel> open_model(const std::string& folder);

} // namespace lr::model
