// SPDX-License-Identifier: Apache-2.0
//
// model/resolve.h: finds every weight of a model in a checkpoint.
//
// Names are matched after the prefix rules of model/tensor_table.h; `model.visual.*` and `visual.*`
// are skipped
// (this engine reads text), and so is `mtp.*` when the config has no MTP layers; both are counted.
// The tensors decide formats; config.json's quantization_config is a cross-check whose
// disagreements are reported. Errors, each naming file and tensor: a weight that is missing (all
// are counted, the first few named), of another shape, or stored in a format that cannot be loaded;
// parts of one fused weight in different formats; a text tensor that no weight needs; the same
// weight under two names; an untied config without lm_head.weight.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_format.h"
#include "model/tensor_table.h"

#include <map>
#include <string>
#include <vector>

namespace lr::model {

struct ResolvedModel {
    Model model; // formats and dtypes as found
    // Per entry, what files store for it: in the order of Entry::sources, or expert by expert in
    // the order of Entry::per_expert. Empty for MTP entries of a checkpoint without `mtp.*`.
    std::vector<std::vector<checkpoint::StoredWeight>> stored;

    std::string prefix; // of the text tensors: "model.language_model."
    std::int64_t text_tensors = 0, mtp_tensors = 0, skipped_tensors = 0;
    std::map<checkpoint::StoredFormat, std::int64_t> found_formats; // entries of each
    std::vector<std::string> disagreements; // declared against found quantisation, in words
};

// The checkpoint must outlive the result.
Result<ResolvedModel> resolve(const Config& config, const checkpoint::Checkpoint& checkpoint);

} // namespace lr::model
