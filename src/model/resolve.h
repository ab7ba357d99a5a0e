// SPDX-License-Identifier: Apache-2.0
//
// model/resolve.h: finds every weight of a model in a checkpoint.
//
// Names are matched after the prefix rules of model/tensor_table.h; `model.visual.*` and `visual.*`
// are skipped
// (this engine reads text), and so is `mtp.*` when the config has no MTP layers; both are counted.
// The tensors decide formats (checkpoint/quant_format.h). Errors, each naming file and tensor: a
// weight that is missing (all are counted, the first few named), of another shape, or stored in a
// format that cannot be loaded; parts of one fused weight in different formats; an activation scale
// that is no scale; a text tensor that no weight needs; the same weight under two names; an untied
// config without lm_head.weight.
//
// What the step reads as one dense view (embeddings, in_proj_a and in_proj_b, the router, the
// shared expert's gate) becomes plain F32 where a file quantises it: engine/weights.h widens it.
// lm_head keeps its format; its activations stay plain.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/quant_format.h"
#include "model/tensor_table.h"

#include <map>
#include <string>
#include <vector>

namespace lr::model {

struct KvScale {
    std::string_view tensor;
    float value;
};

// Parts of an entry that do not agree on one activation scale: `with` of `parts` have one, from
// smallest to largest; the largest is used.
struct InputScaleRange {
    std::string entry;
    std::int64_t with, parts;
    float smallest, largest;
};

struct ResolvedModel {
    Model model; // formats and dtypes as found
    // Per entry, what files store for it: in the order of Entry::sources, or expert by expert in
    // the order of Entry::per_expert. Empty for MTP entries of a checkpoint without `mtp.*`.
    std::vector<std::vector<checkpoint::StoredWeight>> stored;

    std::string prefix; // of the text tensors: "model.language_model."
    std::int64_t text_tensors = 0, mtp_tensors = 0, skipped_tensors = 0;
    std::map<checkpoint::StoredFormat, std::int64_t> found_formats; // entries of each
    std::vector<KvScale> kv_scales; // checked and shown; the KV cache is not quantised
    std::vector<InputScaleRange> input_scale_ranges;
};

// The checkpoint must outlive the result.
Result<ResolvedModel> resolve(const Config& config, const checkpoint::Checkpoint& checkpoint);

} // namespace lr::model
