// SPDX-License-Identifier: Apache-2.0
//
// graph/path_name.h: which of the kernel graph's paths a node belongs to, by name.
#pragma once

#include "graph/step.h"

namespace lr::graph {

// "prefill-gdn", "prefill-attention", "decode-gdn", "decode-attention"; "prologue" and "epilogue"
// outside of layers.
std::string path_name(const Step& step, const Node& node);

} // namespace lr::graph
