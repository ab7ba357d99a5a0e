// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/quant_format.h: in which format a weight is stored. The tensors decide; what the
// config declares is a cross-check only (checkpoint/quant_config.h), because exports disagree with
// their own configs.
//
//   weight_packed exists                             NVFP4, compressed-tensors
//   weight is U8 and weight_scale_2 exists           NVFP4, ModelOpt
//   weight is F8_E4M3 and weight_scale_inv exists    FP8 block 128x128
//                     and weight_scale is [N], [N,1] FP8 per channel
//                     and weight_scale is block-shaped   FP8 block 128x128
//                     and weight_scale is a scalar   FP8 per tensor
//   weight is BF16, F16 or F32 without any scale     plain
// Anything else is an error that says which tensors were found.
//
// A stack of experts X [E, N, K] has no ".weight"; its siblings are spelled X_weight_scale or
// X_scale, X_weight_scale_2 or X_scale_2, and so on. Its factors (tensor scales, NVFP4 globals) are
// one value, [E], or [E, 2]: gate and up apart.
#pragma once

#include "checkpoint/checkpoint.h"
#include "core/status.h"
#include "numerics/weight_format.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lr::checkpoint {

enum class StoredFormat {
    kPlain,           // BF16, F16 or F32
    kFp8Block,        // E4M3 [.., N, K], scale [.., ceil(N/128), ceil(K/128)] BF16 or F32
    kFp8Channel,      // E4M3 [.., N, K], scale [.., N] or [.., N, 1] BF16 or F32
    kFp8Tensor,       // E4M3 [.., N, K], factor F32 or BF16: the decode multiplier
    kNvfp4ModelOpt,   // U8 [.., N, K/2], scale E4M3 [.., N, K/16], factor F32 = 1/G
    kNvfp4Compressed, // U8 [.., N, K/2], scale E4M3 [.., N, K/16], factor F32 = G
};

// "plain", "fp8-block", "fp8-channel", "fp8-tensor", "nvfp4-modelopt", "nvfp4-compressed".
std::string_view stored_format_name(StoredFormat format);
// What ops call it: the two NVFP4 flavors are one.
numerics::WeightFormat weight_format(StoredFormat format);
// The list of what loads, for messages.
std::string_view loadable_formats();

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
    const TensorInfo* again = nullptr; // one of these under a second spelling
};
WeightSiblings find_siblings(const Checkpoint& checkpoint, std::string_view base);

// A weight with what belongs to it, shapes and dtypes checked against each other.
struct StoredWeight {
    StoredFormat format = StoredFormat::kPlain;
    Shape shape;                             // logical [.., N, K]: K counts elements, not bytes
    const TensorInfo* weight = nullptr;      // codes or values
    const TensorInfo* scale = nullptr;       // block or channel scale
    const TensorInfo* factor = nullptr;      // FP8 tensor scale, NVFP4 global: one, [E] or [E, 2]
    const TensorInfo* input_scale = nullptr; // static activation scale, optional: one or [E]

    // Matrices in it: E of a stack, else 1.
    std::int64_t matrices() const {
        return format != StoredFormat::kPlain && shape.rank() == 3 ? shape[0] : 1;
    }
    // Factors of each matrix: 2 where its upper and lower half have one each.
    std::int64_t factors_per_matrix() const;
    // What the file stores as a factor or an input scale, as a decode multiplier:
    // compressed-tensors NVFP4 stores the inverse.
    float decode_multiplier(float stored) const;
    // Decode multiplier of a matrix (of its half, where they differ); 1 where there is none.
    float decode_factor(std::int64_t matrix, std::int64_t half = 0) const;
};

// The decision above. kNotFound when no weight is there, kInvalidFile when the siblings contradict
// each other or have the wrong shape or dtype. `base` is X, for messages.
Result<StoredWeight> detect_format(std::string_view base, const WeightSiblings& siblings);

// Element i of a BF16, F16 or F32 tensor at any alignment.
float float_at(const TensorInfo& tensor, std::int64_t i);

} // namespace lr::checkpoint
