// SPDX-License-Identifier: Apache-2.0
#include "graph/path_name.h"

namespace lr::graph {

std::string path_name(const Step& step, const Node& node) {
    if (node.layer < 0)
        return node.id.starts_with("pro") ? "prologue" : "epilogue";
    const bool gdn = step.layers[static_cast<std::size_t>(node.layer)] == model::LayerKind::kGdn;
    return fmt::format("{}-{}", step.shape.phase == Phase::kPrefill ? "prefill" : "decode",
                       gdn ? "gdn" : "attention");
}

} // namespace lr::graph
