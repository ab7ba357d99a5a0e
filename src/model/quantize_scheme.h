// SPDX-License-Identifier: Apache-2.0
//
// model/quantize_scheme.h: what `liverow quantize` can make: formats, the flavors (conventions of
// names and configs) each exists in, which weights become what, and the tensors one matrix becomes.
//
//   format        flavors                      weights
//   fp8-block     hf, compressed-tensors       all linears FP8 in 128x128 blocks, BF16 scales
//   fp8-channel   compressed-tensors           all linears FP8 with one F32 scale a row
//   nvfp4         modelopt, compressed-tensors all linears NVFP4
//   nvfp4-mixed   modelopt                     routed experts NVFP4, other linears FP8 with one
//                                              scale
// "All linears" are projections of attention and GDN, FFN, shared and routed experts (TensorKind
// says which); experts-only leaves attention and GDN as they are. Router, shared_expert_gate,
// in_proj_a/b, convolution, norms, embeddings, lm_head, vision and MTP are never quantised.
#pragma once

#include "checkpoint/quant_format.h"
#include "checkpoint/safetensors_writer.h"
#include "core/status.h"
#include "model/tensor_table.h"
#include "numerics/quantize.h"

#include <string>
#include <string_view>
#include <vector>

namespace lr::model {

enum class QuantizeFormat : std::uint8_t { kFp8Block, kFp8Channel, kNvfp4, kNvfp4Mixed };
enum class QuantizeFlavor : std::uint8_t { kHf, kModelOpt, kCompressedTensors };

struct QuantizeScheme {
    QuantizeFormat format = QuantizeFormat::kFp8Block;
    QuantizeFlavor flavor = QuantizeFlavor::kHf;
    bool experts_only = false;
    numerics::BlockScales scales = numerics::BlockScales::kAmax;
    bool calibrated = false; // matrices carry a static scale of their activations
};

// Names as on the command line; an empty flavor is the format's first. kInvalidArgument for names
// and pairs that do not exist, with the list of what does, and for a search of scales or
// calibration in a format without NVFP4.
Result<QuantizeScheme> quantize_scheme(std::string_view format, std::string_view flavor,
                                       bool experts_only, numerics::BlockScales scales,
                                       bool calibrated = false);
std::vector<std::string> quantize_format_names();
std::vector<std::string> quantize_flavor_names();
std::string_view quantize_format_name(QuantizeFormat format);
std::string_view quantize_flavor_name(QuantizeFlavor flavor);

FormatPolicy quantize_policy(const QuantizeScheme& scheme);

// How the flavor stores a weight of this format (not kPlain).
checkpoint::StoredFormat stored_format(const QuantizeScheme& scheme, WeightFormat format);

// What the matrix "X.weight" [rows, columns] becomes; `base` is X. Tensors of wider elements come
// first, so that each lies aligned.
enum class StoredPart : std::uint8_t { kInput, kGlobal, kScale, kCodes };
struct StoredSpec {
    StoredPart part;
    checkpoint::TensorSpec spec;
};
std::vector<StoredSpec> stored_specs(const QuantizeScheme& scheme, WeightFormat format,
                                     const std::string& base, std::int64_t rows,
                                     std::int64_t columns);

} // namespace lr::model
