// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/quant_values.h: whether the numbers of a quantised weight make sense. Scales are read,
// codes are not (but those of a weight whose factor is zero).
//
//   block and channel scales   finite, >= 0. Zero is a value like another: the run is zero,
//   whatever
//                              its codes (exporters store it for dead experts and for runs too
//                              small for the scale's dtype). Subnormals are exact.
//   factors that multiply      (FP8 tensor scale, ModelOpt weight_scale_2) finite, >= 0; zero only
//                              where all codes are zero too: a dead expert, not a lost scale
//   factors that divide        (compressed-tensors weight_global_scale) finite, > 0, with a finite
//                              inverse
//   input scales               finite, >= 0, one of them > 0 and it and its inverse normal: the
//                              largest is used (an expert that calibration never reached has 0)
// Everything else is kInvalidFile with the tensor and the index of the first such value.
#pragma once

#include "checkpoint/quant_format.h"

#include <cstdint>

namespace lr::checkpoint {

struct ScaleCounts {
    std::int64_t scales = 0; // block and channel scales and factors read
    std::int64_t zeros = 0;  // of these
    std::int64_t bytes = 0;
};

// Scales and factors of one weight; adds to `counts`.
Status check_scales(const StoredWeight& weight, ScaleCounts& counts);

// The activation scale of a weight as a decode multiplier: the largest of its input scales. 0 when
// it has none.
Result<float> static_input_scale(const StoredWeight& weight);

// One finite value > 0 in F32 or BF16: a k_scale or v_scale.
Result<float> read_kv_scale(const TensorInfo& tensor);

} // namespace lr::checkpoint
