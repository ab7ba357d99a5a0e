// SPDX-License-Identifier: Apache-2.0
//
// ops/weight.h: a resident weight as ops see it, whatever the file stored.
//
// A Weight is a stack of parts along its output rows. A linear [N, K] has one part for each source
// tensor that was fused (q, k, v, z); an expert stack [L, N, K] has `parts.size() / L` parts for
// each expert, in expert order. Parts view the checkpoint's memory (or a shard of it): nothing is
// copied. numerics/weight_format.h says what the parts of each format hold.
#pragma once

#include "core/view.h"
#include "numerics/weight_format.h"

#include <cstdint>
#include <span>

namespace lr::ops {

using numerics::WeightFormat;

struct WeightPart {
    ConstView data;            // [rows, K], possibly with a row stride (a K shard)
    ConstView scale;           // as the format says; absent for kPlain and kFp8Tensor
    float global = 1.0f;       // kFp8Tensor, kNvfp4: the dequant multiplier (1/G)
    ConstView row_factor = {}; // of a device's copy alone: cuda/weights.h
};

struct Weight {
    WeightFormat format = WeightFormat::kPlain;
    Shape shape;                            // [N, K], or [L, N, K] for an expert stack
    DType dtype = DType::kBF16;             // of plain data
    std::span<const WeightPart> parts = {}; // empty until bound
    std::int32_t id = -1;                   // the graph's tensor
    float input_scale = 0.0f;               // > 0: static scale of its activations (dequant)

    bool present() const { return shape.rank() > 0; }
    bool bound() const { return !parts.empty(); }
    std::int64_t rows() const { return shape[shape.rank() - 2]; }
    std::int64_t columns() const { return shape[shape.rank() - 1]; }
};

// Bytes in memory of the whole weight, scales included; 0 when absent.
std::int64_t weight_bytes(const Weight& weight);
// The same for one expert of a stack (or the whole of a linear).
std::int64_t weight_bytes_per_expert(const Weight& weight);

} // namespace lr::ops
