// SPDX-License-Identifier: Apache-2.0
//
// model/open.h: a model folder, opened: config, generation defaults, files mapped, weights found.
// No weight data is touched.
#pragma once

#include "model/resolve.h"

#include <memory>
#include <string>

namespace lr::model {

struct OpenModel {
    std::string folder;
    GenerationConfig generation;
    std::unique_ptr<checkpoint::Checkpoint> checkpoint; // `resolved` points into it
    ResolvedModel resolved;

    const Model& model() const { return resolved.model; }
    const Config& config() const { return resolved.model.config(); }
};

// `folder` holds config.json and the weights.
Result<OpenModel> open_model(const std::string& folder);

} // namespace lr::model
