// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/quant_format.h: in which format a weight is stored. The tensors decide; what
// config.json declares is a cross-check only, because exports disagree with their own configs.
//
//   weight_packed exists                             NVFP4, compressed-tensors
//   weight is U8 and weight_scale_2 exists           NVFP4, ModelOpt
//   weight is F8_E4M3 and weight_scale_inv exists    FP8 block 128x128
//                     and weight_scale is [N], [N,1] FP8 per channel
//                     and weight_scale is block-shaped   FP8 block 128x128
//                     and weight_scale is a scalar   FP8 per tensor
//   weight is BF16, F16 or F32 without any scale     plain
// Anything else is an error that says which tensors were found.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/json.h"
#include "core/status.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lr::checkpoint {

enum class StoredFormat {
    kPlain,           // BF16, F16 or F32
    kFp8Block,        // E4M3 [.., N, K], scale [.., ceil(N/128), ceil(K/128)] BF16 or F32
    kFp8Channel,      // E4M3 [N, K], scale [N] or [N, 1] BF16 or F32
    kFp8Tensor,       // E4M3 [N, K], scale one F32 (or BF16); input_scale optional
    kNvfp4ModelOpt,   // U8 [N, K/2], scale E4M3 [N, K/16], weight_scale_2 F32 = 1/G
    kNvfp4Compressed, // U8 [N, K/2], scale E4M3 [N, K/16], weight_global_scale F32 = G
};

// "plain", "fp8-block", "fp8-channel", "fp8-tensor", "nvfp4-modelopt", "nvfp4-compressed".
std::string_view stored_format_name(StoredFormat format);

// The tensors around one linear X; nullptr where absent. They point into the checkpoint.
struct WeightSiblings {
    const TensorInfo* weight = nullptr;        // X.weight, or X itself (fused experts)
    const TensorInfo* weight_packed = nullptr; // X.weight_packed, and so on
    const TensorInfo* weight_scale = nullptr;
    const TensorInfo* weight_scale_inv = nullptr;
    const TensorInfo* weight_scale_2 = nullptr;
    const TensorInfo* weight_global_scale = nullptr;
    const TensorInfo* input_scale = nullptr;
    const TensorInfo* input_global_scale = nullptr;
};
WeightSiblings find_siblings(const Checkpoint& checkpoint, std::string_view base);

// A weight with what belongs to it, shapes and dtypes checked against each other.
struct StoredWeight {
    StoredFormat format = StoredFormat::kPlain;
    Shape shape;                              // logical [.., N, K]: K counts elements, not bytes
    const TensorInfo* weight = nullptr;       // codes or values
    const TensorInfo* scale = nullptr;        // block, channel or tensor scale; nullptr when plain
    const TensorInfo* global_scale = nullptr; // NVFP4 only
    const TensorInfo* input_scale = nullptr;  // static activation scale, optional
};

// The decision above. kNotFound when no weight is there, kInvalidFile when the siblings contradict
// each other or have the wrong shape or dtype. `base` is X, for messages.
Result<StoredWeight> detect_format(std::string_view base, const WeightSiblings& siblings);

// `quantization_config` of a config.json.
struct QuantizationConfig {
    std::string method;                               // "fp8", "modelopt", "compressed-tensors"
    std::string scheme;                               // fmt, quant_algo or format; may be empty
    std::optional<std::array<std::int64_t, 2>> block; // weight_block_size
    std::vector<std::string> excluded;                // modules_to_not_convert, ignore, ...
};

// Looks in the root and in text_config; nothing when there is none. Unknown methods are returned as
// they are; wrong types are an error.
Result<std::optional<QuantizationConfig>> read_quantization_config(const JsonCursor& config);

// What the config declares against what the tensors are (number of weights of each format). One
// sentence per disagreement; none when they agree.
std::vector<std::string>
quantization_disagreements(const std::optional<QuantizationConfig>& declared,
                           const std::map<StoredFormat, std::int64_t>& found);

} // namespace lr::checkpoint
