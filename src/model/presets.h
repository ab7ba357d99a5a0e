// SPDX-License-Identifier: Apache-2.0
//
// model/presets.h: the dimensions of every released size, for sizing, graphs and synthetic weights.
#pragma once

#include "model/config.h"

#include <string_view>
#include <vector>

namespace lr::model {

// Names as people write them: "0.8B", "35B-A3B", "3.6-27B".
std::vector<std::string_view> preset_names();

// The preset, or an error that lists the names.
Result<Config> preset(std::string_view name);

} // namespace lr::model
