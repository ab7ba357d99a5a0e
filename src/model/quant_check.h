// SPDX-License-Identifier: Apache-2.0
//
// model/quant_check.h: what the JSON of a checkpoint declares of its quantisation against what its
// tensors are. The tensors decide; a disagreement is worth a sentence, since one of the two is
// wrong.
#pragma once

#include "checkpoint/quant_config.h"
#include "model/resolve.h"

#include <optional>
#include <string>
#include <vector>

namespace lr::model {

// "layers.*.mlp.experts.*.gate_proj" of "layers.3.mlp.experts.17.gate_proj".
std::string module_pattern(std::string_view module);

// How a weight is stored, its activations' scale included: "fp8-tensor with input_scale", "BF16".
std::string stored_text(const checkpoint::StoredWeight& weight);

// One sentence for all modules that disagree in the same way, "layers.*.self_attn.q_proj (10
// modules): declared FP8, stored BF16"; and what else is odd: patterns that cannot be read,
// activation scales that differ within a fused weight. Empty when all agree.
std::vector<std::string>
quantization_disagreements(const ResolvedModel& resolved,
                           const std::optional<checkpoint::QuantizationConfig>& declared);

// When the tensors could not be resolved (`why`) and the JSON declares a quantisation that no
// loader here knows: kUnsupported, naming it and what loads. Else Ok.
Status refuse_declared(const Model& model, const checkpoint::QuantizationConfig& declared,
                       const Status& why);

} // namespace lr::model
